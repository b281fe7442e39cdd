import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { allGone, descendants, endOf, gatedJob, makeGate, makeProject, readyDev, runJob } from "./support.ts";

const workers = (pid: number | undefined): readonly number[] =>
  descendants(pid ?? 0)
    .filter(({ command }) => command.endsWith("worker.ts"))
    .map((process) => process.pid);

test("an edited job is loaded: new runs are the new version's, a running attempt keeps its own, a new pool gets a worker", async () => {
  const gate = await makeGate();
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  const dev = await readyDev({ project });
  const old = workers(dev.child.pid);
  const first = await runJob(dev, "gated", { gate: gate.url });
  const firstHandler = await gate.next();

  writeFileSync(join(project, "jobs", "gated.ts"), "export default nonsense");
  await dev.line(/not reloaded/);
  writeFileSync(join(project, "jobs", "gated.ts"), gatedJob(2));
  writeFileSync(join(project, "jobs", "other.ts"), gatedJob(2));
  await dev.line(/reloaded: gated, other/);

  const second = await runJob(dev, "gated", { gate: gate.url });
  const third = await runJob(dev, "other", { gate: gate.url });
  for (const handler of [await gate.next(), await gate.next()]) {
    expect(handler.version).toBe(2);
    handler.open();
  }
  expect((await endOf(dev, second)).result).toMatchObject({ version: 2 });
  expect((await endOf(dev, third)).result).toMatchObject({ version: 2 });
  firstHandler.open();
  expect((await endOf(dev, first)).result).toMatchObject({ version: 1 });
  await allGone(old);
  expect(workers(dev.child.pid)).toHaveLength(1);

  writeFileSync(
    join(project, "belfry.config.ts"),
    'import { defineConfig } from "belfry"; export default defineConfig({ pools: { slow: { concurrency: 2 } } });',
  );
  writeFileSync(join(project, "jobs", "third.ts"), gatedJob(3).replace("overlap", 'pool: "slow", overlap'));
  await dev.line(/reloaded: gated, other, third/);
  const fourth = await runJob(dev, "third", { gate: gate.url });
  (await gate.next()).open();
  expect((await endOf(dev, fourth)).result).toMatchObject({ version: 3 });
});

test("a jobs folder that was away is watched again when it is back", async () => {
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  const dev = await readyDev({ project });
  renameSync(join(project, "jobs"), join(project, "elsewhere"));
  await dev.line(/the project has no such folder/);
  renameSync(join(project, "elsewhere"), join(project, "jobs"));
  await dev.line(/nothing to reload/);
  writeFileSync(join(project, "jobs", "gated.ts"), gatedJob(2));
  await dev.line(/reloaded: gated/);
});
