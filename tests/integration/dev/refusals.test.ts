import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  endOf,
  gatedJob,
  makeGate,
  makeProject,
  readyDev,
  runJob,
  startDev,
  temporaryFolder,
} from "./support.ts";

const JOBS = { "jobs/gated.ts": gatedJob(1) };

/** It ended with 2, said it in a line and perhaps a hint, and showed no stack trace. */
const expectRefusal = async (dev: Awaited<ReturnType<typeof startDev>>, pattern: RegExp): Promise<void> => {
  expect(await dev.exited).toEqual({ code: 2, signal: null });
  expect(dev.output()).toMatch(pattern);
  expect(dev.output()).not.toMatch(/^\s+at /m);
  expect(dev.output().trim().split("\n").length).toBeLessThanOrEqual(2);
};

test("a second start on the same port or the same data changes nothing, and the first one goes on", async () => {
  const gate = await makeGate();
  const project = makeProject(JOBS);
  const dev = await readyDev({ project });
  const other = join(temporaryFolder(), "other");
  await expectRefusal(
    await startDev({ project, port: dev.port, args: ["--data", other] }),
    /port \d+ is in use/,
  );
  expect(existsSync(other)).toBe(false);
  await expectRefusal(await startDev({ project }), /belongs to a running stack \(process \d+, port \d+\)/);
  const runId = await runJob(dev, "gated", { gate: gate.url });
  (await gate.next()).open();
  expect(await endOf(dev, runId)).toMatchObject({ state: "succeeded" });
});

test("a port that another program has is refused before the data folder is made", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.close();
  });
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  const project = makeProject(JOBS);
  await expectRefusal(await startDev({ project, port }), /is in use/);
  expect(readdirSync(project)).not.toContain(".belfry");
});

test("a data folder that cannot be made is refused", async () => {
  const file = join(temporaryFolder(), "file");
  writeFileSync(file, "");
  await expectRefusal(
    await startDev({ project: makeProject(JOBS), args: ["--data", join(file, "data")] }),
    /cannot be made/,
  );
});

test("faults in job files end the start with a line for each", async () => {
  const project = makeProject({
    "jobs/one.ts":
      'import { defineJob } from "belfry"; export default defineJob({ schedule: "0 99 * * *", handler: () => 1 });',
    "jobs/two.ts": 'import { defineJob } from "belfry"; export default defineJob({ schedule: "0 2 * * *" });',
  });
  const dev = await startDev({ project });
  expect(await dev.exited).toEqual({ code: 2, signal: null });
  expect(dev.output()).toMatch(/one\.ts/);
  expect(dev.output()).toMatch(/two\.ts/);
  expect(dev.output()).not.toMatch(/^\s+at /m);
});

test("an endpoint beyond this machine is refused without the flag", async () => {
  await expectRefusal(
    await startDev({
      project: makeProject(JOBS),
      environment: { AWS_ENDPOINT_URL_SQS: "https://sqs.eu-west-1.amazonaws.com" },
    }),
    /not this machine; with --allow-remote-endpoint/,
  );
});

test("without the key of this start the router answers nothing", async () => {
  const dev = await readyDev({ project: makeProject(JOBS) });
  const bare = await fetch(`http://127.0.0.1:${dev.port}/v1/jobs`);
  expect(bare.status).toBe(401);
  expect((await dev.ask("GET", "/v1/jobs")).status).toBe(200);
});
