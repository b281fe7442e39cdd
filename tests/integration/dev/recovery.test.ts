import { expect, test } from "vitest";
import { descendants, endOf, gatedJob, makeGate, makeProject, readyDev, runJob } from "./support.ts";

const setup = async () => {
  const gate = await makeGate();
  const project = makeProject({ "jobs/gated.ts": gatedJob(1) });
  return { gate, project, dev: await readyDev({ project }) };
};

test.each([
  ["worker", 'worker "default"', "worker.ts"],
  ["control process", "the control process", "control.ts"],
  ["emulator process", "the emulator process", "emulators.ts"],
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
