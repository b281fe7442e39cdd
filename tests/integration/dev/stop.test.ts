import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  allGone,
  BIN,
  descendants,
  endOf,
  gatedJob,
  makeGate,
  makeProject,
  readyDev,
  runJob,
} from "./support.ts";

const pidOf = (dev: { child: { pid?: number | undefined } }): number => dev.child.pid ?? 0;

test("Ctrl-C lets a running attempt finish, leaves no process, and the record is there at the next start", async () => {
  const gate = await makeGate();
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  const dev = await readyDev({ project });
  const runId = await runJob(dev, "gated", { gate: gate.url });
  const handler = await gate.next();
  const pids = descendants(pidOf(dev)).map(({ pid }) => pid);
  expect(pids.length).toBeGreaterThanOrEqual(3);
  // As a terminal does it: to every process of the group.
  for (const pid of [pidOf(dev), ...pids]) process.kill(pid, "SIGINT");
  await dev.line(/stopping/);
  handler.open();
  expect(await dev.exited).toEqual({ code: 0, signal: null });
  expect(dev.output()).toContain("stopped");
  await allGone(pids);
  expect(existsSync(join(project, ".belfry", "dev.json"))).toBe(false);

  const next = await readyDev({ project });
  expect(await endOf(next, runId)).toMatchObject({
    state: "succeeded",
    result: { version: 1, said: "go" },
    attempts: [{ n: 1 }],
  });
});

test("a second Ctrl-C, a while after the first, ends the running attempt at once", async () => {
  const gate = await makeGate();
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  const dev = await readyDev({ project });
  await runJob(dev, "gated", { gate: gate.url });
  await gate.next();
  const pids = descendants(pidOf(dev)).map(({ pid }) => pid);
  dev.child.kill("SIGINT");
  await dev.line(/stopping/);
  const again = setInterval(() => dev.child.kill("SIGINT"), 100);
  await dev.line(/ending it now/);
  clearInterval(again);
  expect(await dev.exited).toEqual({ code: 130, signal: null });
  await allGone(pids);
});

test.each<[string, (npm: number) => void]>([
  ["kill of the npm process", (npm) => process.kill(npm, "SIGTERM")],
  // npm passes on what the terminal has sent to everybody already: one Ctrl-C, two signals.
  ["Ctrl-C at npm start", (npm) => process.kill(-npm, "SIGINT")],
])("%s lets a running attempt finish, and no process is left", async (_name, end) => {
  const gate = await makeGate();
  const project = makeProject({
    "package.json": JSON.stringify({
      type: "module",
      scripts: { start: `exec '${process.execPath}' '${BIN}' dev` },
    }),
    "jobs/gated.ts": gatedJob(1),
  });
  const dev = await readyDev({ project, command: ["npm", "start", "--"], isGroup: true });
  await runJob(dev, "gated", { gate: gate.url });
  const handler = await gate.next();
  const pids = descendants(pidOf(dev)).map(({ pid }) => pid);
  end(pidOf(dev));
  await dev.line(/stopping/);
  handler.open();
  await dev.line(/^stopped$/);
  await dev.exited;
  await allGone(pids);
  expect(dev.output()).toMatch(/gated~\S+ {2}succeeded/);
});

test("kill -9 of the npm process, which no signal tells us, ends the stack too", async () => {
  const project = makeProject({
    "package.json": JSON.stringify({
      type: "module",
      scripts: { start: `exec '${process.execPath}' '${BIN}' dev` },
    }),
    "jobs/gated.ts": gatedJob(1),
  });
  const dev = await readyDev({ project, command: ["npm", "start", "--"] });
  const pids = descendants(pidOf(dev)).map(({ pid }) => pid);
  expect(pids.length).toBeGreaterThanOrEqual(4);
  dev.child.kill("SIGKILL");
  await allGone(pids);
});

test("a temporary stack runs beside another one, and leaves nothing behind", async () => {
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  await readyDev({ project });
  const dev = await readyDev({ project, args: ["--ephemeral"] });
  const folder = /data (\S+), removed at the end/.exec(dev.output())?.[1] ?? "";
  expect(existsSync(folder)).toBe(true);
  dev.child.kill("SIGHUP");
  expect(await dev.exited).toEqual({ code: 0, signal: null });
  expect(existsSync(folder)).toBe(false);
});
