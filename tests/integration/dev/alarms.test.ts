import { expect, test } from "vitest";
import { descendants, makeProject, readyDev, runJob } from "./support.ts";

const FAILING = `
import { defineJob } from "belfry";
export default defineJob({ retry: { retries: 0 }, handler: () => { throw new Error("no luck"); } });
`;

test("the alarms of a deployment are judged here too: a dead run rings", async () => {
  const dev = await readyDev({ project: makeProject({ "jobs/failing.ts": FAILING }) });
  await runJob(dev, "failing", {});
  await dev.line(/alarm runs-dead rings: A run has used up its attempts/);
  // Nothing else was wrong.
  expect(dev.output().match(/alarm [a-z-]+ rings/g)).toEqual(["alarm runs-dead rings"]);
}, 60_000);

test("a killed worker is an error of its function, as it is on Lambda", async () => {
  const dev = await readyDev({ project: makeProject({ "jobs/failing.ts": FAILING }) });
  const victim = descendants(dev.child.pid ?? 0).find(({ command }) => command.endsWith("worker.ts"));
  process.kill(victim?.pid ?? 0, "SIGKILL");
  await dev.line(/alarm worker-errors rings/);
  // Through the notifier, as SNS would bring it; and it is shown until it is over.
  await dev.line(/alert \(notify\).*worker-errors/);
  const { body } = await dev.ask("GET", "/v1/alarms");
  expect(body).toMatchObject({
    alarms: [{ key: "worker-errors", about: "machinery", topic: "notify", since: expect.any(String) }],
  });
}, 60_000);
