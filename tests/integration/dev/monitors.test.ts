import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { cli } from "../cli/stack.ts";
import { makeProject, readyDev } from "./support.ts";

const MONITOR = `
import { monitor } from "belfry";
export default monitor({ schedule: "0 0 1 1 *", owner: "team-a" });
`;

const JOB = `
import { defineJob } from "belfry";
export default defineJob({ handler: () => undefined });
`;

test("a job that runs elsewhere tells its start and its exit code by the command line, and no one here runs it", async () => {
  const project = makeProject({ "jobs/backup.ts": MONITOR, "jobs/local.ts": JOB });
  const dev = await readyDev({ project });
  await dev.line(/backup\s+runs elsewhere; its pings: http:/);
  const belfry = (...args: readonly string[]) => cli(args, { cwd: project, data: `${project}/.belfry` });

  expect((await belfry("list")).stdout).toMatch(/backup .*, pinged from elsewhere /);
  const started = await belfry("heartbeat", "backup", "start", "--json");
  expect(started).toMatchObject({ code: 0 });
  const { run } = JSON.parse(started.stdout) as { readonly run: { readonly runId: string } };
  expect(run).toMatchObject({ job: "backup", state: "running", trigger: "ping" });

  const failed = await belfry("heartbeat", "backup", "2", "--message", "disk full");
  expect(failed).toMatchObject({ code: 0, stdout: expect.stringContaining(`dead ${run.runId}`) });
  const shown = await belfry("show", run.runId, "--json");
  expect(JSON.parse(shown.stdout)).toMatchObject({
    state: "dead",
    error: { name: "ExitCode", message: "it ended with exit code 2: disk full" },
  });
  await dev.line(/alert \(notify\) \[dev\] backup/);

  expect(await belfry("heartbeat", "backup", "--json")).toMatchObject({ code: 0 });
  const again = await belfry("heartbeat", "backup", "ok");
  expect(again.stdout).toContain("known already: succeeded");
  const counted = await belfry("show", run.runId, "--json");
  expect(JSON.parse(counted.stdout)).toMatchObject({ state: "succeeded", duplicates: 1 });

  expect(await belfry("run", "backup")).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("backup is a monitor: it runs elsewhere"),
  });
  expect(await belfry("heartbeat", "local")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("local is no monitor"),
  });
  expect(await belfry("heartbeat", "backup", "finished")).toMatchObject({ code: 2 });
}, 120_000);

test("a host that has no belfry pings by curl alone, and its address outlives the stack", async () => {
  const project = makeProject({ "jobs/backup.ts": MONITOR, "jobs/local.ts": JOB });
  const dev = await readyDev({ project });
  const [, address = ""] = /its pings: (\S+)/.exec(await dev.line(/its pings: /)) ?? [];
  const belfry = (...args: readonly string[]) => cli(args, { cwd: project, data: `${project}/.belfry` });
  expect(await belfry("heartbeat", "backup", "--url")).toMatchObject({ code: 0, stdout: `${address}\n` });
  expect(await belfry("heartbeat", "local", "--url")).toMatchObject({ code: 2 });

  const shell = (command: string) =>
    promisify(execFile)("sh", ["-c", command], {
      cwd: project,
      env: { ...process.env, PING: address },
    });
  const curl = "curl -fsS --max-time 10";
  const started = await shell(`${curl} $PING/start`);
  expect(JSON.parse(started.stdout)).toMatchObject({ duplicate: false });
  await shell(`(echo 'disk full'; exit 3) > out.txt; ${curl} --data-binary @out.txt $PING/$?`);
  const { runId } = JSON.parse(started.stdout) as { readonly runId: string };
  const shown = await belfry("show", runId, "--json");
  expect(JSON.parse(shown.stdout)).toMatchObject({
    state: "dead",
    error: { message: "it ended with exit code 3: disk full" },
  });

  await expect(shell(`${curl} $PING/done`)).rejects.toMatchObject({ code: 22 });
  await expect(shell(`${curl} \${PING}x`)).rejects.toMatchObject({ code: 22 });
  const logs = readdirSync(`${project}/.belfry/logs`).map((file) =>
    readFileSync(`${project}/.belfry/logs/${file}`, "utf8"),
  );
  const key = address.split("/").at(-1) ?? "";
  expect(key).toHaveLength(43);
  expect(logs.filter((log) => log.includes("ping-refused"))).toHaveLength(1);
  expect(logs.filter((log) => log.includes(key))).toEqual([]);

  dev.child.kill("SIGTERM");
  expect(await dev.exited).toMatchObject({ code: 0 });
  const again = await readyDev({ project });
  expect(await again.line(/its pings: /)).toContain(new URL(address).pathname);
}, 120_000);
