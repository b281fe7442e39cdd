import { expect, test } from "vitest";
import { allGone, descendants, endOf, gatedJob, makeGate, makeProject, readyDev, runJob } from "./support.ts";

const setup = async () => {
  const gate = await makeGate();
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  return { gate, project, dev: await readyDev({ project }) };
};

test("kill -9 of the supervisor ends every child, and the next start takes up what was running and what was queued", async () => {
  const { dev, gate, project } = await setup();
  const running = await runJob(dev, "gated", { gate: gate.url });
  await gate.next();
  const pids = descendants(dev.child.pid ?? 0).map(({ pid }) => pid);
  const queued = await runJob(dev, "gated", { gate: gate.url });
  dev.child.kill("SIGKILL");
  await dev.exited;
  await allGone(pids);

  const next = await readyDev({ project });
  const openAll = async (): Promise<void> => {
    for (;;) (await gate.next()).open();
  };
  void openAll();
  expect(await endOf(next, queued)).toMatchObject({ state: "succeeded" });
  expect(await endOf(next, running)).toMatchObject({ state: "succeeded" });
}, 60_000);

test.each([
  ["worker", 'worker "default"', "worker.ts"],
  ["control process", "the control process", "control.ts"],
  ["emulator process", "the emulators", "emulators.ts"],
])("a killed %s is said, started again, and works", async (_name, spoken, entry) => {
  const { dev, gate } = await setup();
  const victim = descendants(dev.child.pid ?? 0).find(({ command }) => command.endsWith(entry));
  process.kill(victim?.pid ?? 0, "SIGKILL");
  await dev.line(new RegExp(`${spoken} ended by itself \\(SIGKILL\\)`));
  await dev.line(new RegExp(`${spoken} runs again`));
  const runId = await runJob(dev, "gated", { gate: gate.url });
  (await gate.next()).open();
  expect(await endOf(dev, runId)).toMatchObject({ state: "succeeded" });
});
