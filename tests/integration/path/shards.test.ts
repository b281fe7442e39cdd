import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { dynamoTable } from "../../../lib/adapters/dynamo/dynamo-table.ts";
import { systemClock } from "../../../lib/adapters/system/system.ts";
import { makeReadRun } from "../../../lib/app/inspect/read-run.ts";
import { dispatcherFunction, workerFunction } from "../../../lib/compose/functions.ts";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { type EmbeddedServices, embeddedServices, manifestOf } from "../../support/embedded-services.ts";
import { jobsFile } from "../../support/jobs-file.ts";
import { drain } from "../../support/receive.ts";

/** Runs with shards over the wire protocols, their code in a worker thread. */

const SLOT_MS = Math.floor(Date.now() / 60_000) * 60_000;
const scheduledTime = new Date(SLOT_MS).toISOString();

const jobOf = (name: string, shards: JobDefinition["shards"]): JobDefinition =>
  definition({
    name,
    schedules: ["* * * * *"],
    overlap: "allow",
    retry: { ...definition({ name: "x" }).retry, retries: 0 },
    ...(shards === undefined ? {} : { shards }),
  });
const manifest = manifestOf(
  jobOf("customers", { joins: true }),
  jobOf("halves", { count: 2, joins: false }),
  jobOf("twice", { joins: false }),
);

let services: EmbeddedServices;
let worker: ReturnType<typeof workerFunction>;

beforeAll(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  services = await embeddedServices();
  const file = await jobsFile({});
  const library = new URL("../../../lib/index.ts", import.meta.url);
  await writeFile(
    file,
    `import { defineJob } from ${JSON.stringify(library.href)};
    export default {
      customers: defineJob({
        shards: async function* ({ slot }) {
          for (let n = 0; n < 600; n++) yield { key: "customer-" + n, input: { n, slot } };
        },
        handler: async ({ shard, once }) => {
          if (shard.key !== "customer-" + shard.input.n || shard.count !== 600) throw new Error("mixed up");
          if (shard.index % 100 === 0) await once("mail", () => shard.input.n);
        },
        join: async ({ shards }) => shards,
      }),
      halves: defineJob({ shards: 2, handler: async ({ shard }) => {
        if (shard.index === 1) throw new TypeError("no second half");
      } }),
      twice: defineJob({ shards: () => ["a", "b", "a"], handler: async () => undefined }),
    };`,
  );
  const clients = { db: services.db, sqs: services.sqs };
  worker = workerFunction(services.config, manifest, { pool: "default", jobsFile: file, clients });
  await worker.ready();
});

afterAll(async () => {
  vi.restoreAllMocks();
  await worker.close();
  await services.close();
});

/** Delivers the slot, and works on every message until none is left. */
const play = async (job: string) => {
  const dispatcher = dispatcherFunction(services.config, manifest, { db: services.db, sqs: services.sqs });
  await dispatcher({ ...schedulerInput([job]), scheduledTime }, { awsRequestId: `request-${job}` });
  const url = services.config.queueUrls["default"] ?? "";
  while ((await drain(services.sqs, url, worker.handler)) > 0);
  const table = dynamoTable(services.db, services.config.tableName);
  const readRun = makeReadRun({ table, clock: systemClock, jobs: services.jobs(manifest) });
  return readRun({ subject: job, slotKey: slotKeyOf(SLOT_MS) });
};

test("a list goes from the job's code through the table and the queue to each call of its handler", async () => {
  expect(await play("customers")).toMatchObject({
    state: "succeeded",
    result: { total: 600, done: 600, failed: 0 },
    shards: { total: 600, done: 600, failed: 0 },
  });
});

test("a shard that fails is shown with its error and its stack, and its run is dead", async () => {
  expect(await play("halves")).toMatchObject({
    state: "dead",
    error: { name: "ShardsFailed", message: expect.stringContaining("1 of 2 shards failed") },
    shards: {
      done: 1,
      failed: 1,
      dead: [
        { key: "1", error: { name: "TypeError", message: "no second half", stack: expect.any(String) } },
      ],
    },
  });
});

test("a list with a key twice ends the run before any shard starts, and says what to do", async () => {
  const run = await play("twice");
  expect(run).toMatchObject({ state: "dead", attempts: [{ n: 1, outcome: "threw" }] });
  expect(run).not.toHaveProperty("shards");
  expect(run?.error?.message).toBe(
    'shards: the key "a" is there twice, as entry 0 and entry 2; give each shard a key of its own',
  );
});
