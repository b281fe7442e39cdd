import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { dynamoTable } from "../../../lib/adapters/dynamo/dynamo-table.ts";
import { dispatcherFunction, workerFunction } from "../../../lib/compose/functions.ts";
import { runKey } from "../../../lib/core/items.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { type EmbeddedServices, embeddedServices, manifestOf } from "../../support/embedded-services.ts";
import { jobsFile } from "../../support/jobs-file.ts";
import { drain } from "../../support/receive.ts";

const manifest = manifestOf(
  definition({ name: "side-by-side", schedules: ["* * * * *"], overlap: "allow" }),
  definition({ name: "one-at-a-time", schedules: ["* * * * *"] }),
);

let services: EmbeddedServices;
let worker: ReturnType<typeof workerFunction>;
let requests: string[] = [];
let lines: MockInstance<typeof process.stdout.write>;

/** Every command that goes through the clients, by its name. */
const countCommands = ({ db, sqs }: { readonly db: DynamoDBClient; readonly sqs: SQSClient }): void => {
  db.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        note(commandName, () => next(args)),
    STEP,
  );
  sqs.middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        note(commandName, () => next(args)),
    STEP,
  );
};

const STEP = { step: "initialize" } as const;

const note = <Answer>(name: string | undefined, call: () => Answer): Answer => {
  requests.push(String(name));
  return call();
};

const dispatcher = () =>
  dispatcherFunction(services.config, manifest, { db: services.db, sqs: services.sqs });

beforeAll(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  services = await embeddedServices();
  countCommands(services);
  const file = await jobsFile({
    "side-by-side": "async () => ({ deletedCount: 3 })",
    "one-at-a-time": "async () => ({ deletedCount: 3 })",
  });
  const clients = { db: services.db, sqs: services.sqs };
  worker = workerFunction(services.config, manifest, { pool: "default", jobsFile: file, clients });
  await worker.ready();
});
beforeEach(() => {
  requests = [];
  lines = vi.spyOn(process.stdout, "write").mockReturnValue(true);
});
afterEach(() => {
  lines.mockRestore();
});
afterAll(async () => {
  await worker.close();
  await services.close();
});

/** Slots lie in the near past: now is the emulators' business, not the test's. */
const slotIso = `${new Date().toISOString().slice(0, 17)}00Z`;

const runOnce = async (job: string) => {
  const event = { ...schedulerInput([job]), scheduledTime: slotIso };
  await dispatcher()(event, { awsRequestId: `request-${job}` });
  await drain(services.sqs, services.config.queueUrls["default"] ?? "", worker.handler);
  const key = runKey({ subject: job, slotKey: slotIso.replace("Z", ".000Z") });
  const run = await dynamoTable(services.db, services.config.tableName).get(key, { consistent: true });
  requests.pop();
  return run;
};

const count = (...names: readonly string[]): number => requests.filter((name) => names.includes(name)).length;

test.each([
  ["side-by-side", 3],
  ["one-at-a-time", 4],
])("a succeeded run of %s costs %i writes, one read, one send and one log line", async (job, writes) => {
  const run = await runOnce(job);
  expect(run).toMatchObject({ st: "succeeded", result: { deletedCount: 3 } });
  expect({
    writes: count("UpdateItemCommand", "PutItemCommand", "DeleteItemCommand"),
    reads: count("GetItemCommand", "QueryCommand", "BatchGetItemCommand"),
    sends: count("SendMessageCommand", "SendMessageBatchCommand"),
    hidden: count("ChangeMessageVisibilityCommand"),
    logLines: lines.mock.calls.filter(([text]) => String(text).startsWith("{")).length,
  }).toEqual({ writes, reads: 1, sends: 1, hidden: 0, logLines: 1 });
});
