/** Checkpoints, remembered effects, progress and pieces over the emulators' wire protocols, in real worker threads. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { dynamoTable } from "../../../lib/adapters/dynamo/dynamo-table.ts";
import { systemClock } from "../../../lib/adapters/system/system.ts";
import { makeReadRun } from "../../../lib/app/inspect/read-run.ts";
import { retryRun } from "../../../lib/app/operate/operator.ts";
import { composeDeps } from "../../../lib/compose/deps.ts";
import { dispatcherFunction, workerFunction } from "../../../lib/compose/functions.ts";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { type EmbeddedServices, embeddedServices, manifestOf } from "../../support/embedded-services.ts";
import { jobsFile } from "../../support/jobs-file.ts";
import { drain } from "../../support/receive.ts";

const HANDLERS = {
  pieces: `async ({ checkpoint, once, progress, continueLater }) => {
    const done = (await checkpoint.load()) ?? [];
    if (done.length === 4) return done;
    const next = await once("piece " + done.length, () => ({ piece: done.length }));
    progress(done.length + 1, 4);
    return continueLater([...done, next]);
  }`,
  resumes: `async ({ checkpoint, once, trigger }) => {
    const before = await checkpoint.load();
    const mail = await once("mail", () => "sent in attempt " + (before === undefined ? 1 : 2));
    await checkpoint.save({ tries: (before?.tries ?? 0) + 1 });
    await checkpoint.save({ tries: (before?.tries ?? 0) + 1 });
    if (before === undefined) throw new Error("not yet");
    return { mail, state: await checkpoint.load() };
  }`,
};

const jobOf = (name: string, changes: Partial<JobDefinition> = {}): JobDefinition =>
  definition({
    name,
    schedules: ["* * * * *"],
    retry: { ...definition({ name }).retry, retries: 0 },
    ...changes,
  });
const resumes = jobOf("resumes", { overlap: "allow" });
const manifest = manifestOf(jobOf("pieces"), resumes);
const slotMs = Math.floor(Date.now() / 60_000) * 60_000;
const scheduledTime = `${new Date(slotMs).toISOString().slice(0, 19)}Z`;

let services: EmbeddedServices;
let worker: ReturnType<typeof workerFunction>;

beforeAll(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  services = await embeddedServices();
  const clients = { db: services.db, sqs: services.sqs };
  const file = await jobsFile(HANDLERS);
  worker = workerFunction(services.config, manifest, { pool: "default", jobsFile: file, clients });
  await worker.ready();
});
afterAll(async () => {
  vi.restoreAllMocks();
  await worker.close();
  await services.close();
});

const work = (): Promise<number> =>
  drain(services.sqs, services.config.queueUrls["default"] ?? "", worker.handler);

const deliver = (job: string) =>
  dispatcherFunction(services.config, manifest, { db: services.db, sqs: services.sqs })(
    { ...schedulerInput([job]), scheduledTime },
    { awsRequestId: `request-${job}` },
  );

const show = (subject: string) =>
  makeReadRun({
    table: dynamoTable(services.db, services.config.tableName),
    clock: systemClock,
    jobs: services.jobs(manifest),
  })({ subject, slotKey: slotKeyOf(slotMs) });

test("a run goes on from piece to piece by a message each, and ends with all of them", async () => {
  await deliver("pieces");
  for (let piece = 1; piece <= 4; piece++) {
    expect(await work()).toBe(1);
    expect(await show("pieces")).toMatchObject({
      state: "queued",
      pieces: piece + 1,
      progress: { done: piece, total: 4 },
    });
  }
  expect(await work()).toBe(1);
  expect(await show("pieces")).toMatchObject({
    state: "succeeded",
    result: [{ piece: 0 }, { piece: 1 }, { piece: 2 }, { piece: 3 }],
    progress: { done: 4, total: 4 },
    pieces: 5,
  });
  expect(await work()).toBe(0);
});

test("a retry of a dead run finds its checkpoint and its effects", async () => {
  await deliver("resumes");
  await work();
  expect(await show("resumes")).toMatchObject({ state: "dead", error: { message: "not yet" } });
  const deps = composeDeps(services.config, manifest, { db: services.db, sqs: services.sqs });
  await retryRun(deps, { job: resumes, occurrence: { subject: "resumes", slotKey: slotKeyOf(slotMs) } });
  await work();
  expect(await show("resumes")).toMatchObject({
    state: "succeeded",
    result: { mail: "sent in attempt 1", state: { tries: 2 } },
  });
});
