/**
 * One side of the comparison of workers, in a process of its own: `message-process.ts <side> <network or clients>`.
 * Sends its parent the processor time of each message, all threads of the process counted. Messages come one at a time,
 * as a pool's queue hands them out. With `clients` the SDK's own work is left out too: its clients' `send` answers.
 */
import { BatchProcessor, EventType, processPartialResponse } from "@aws-lambda-powertools/batch";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { Logger } from "@aws-lambda-powertools/logger";
import { DynamoDBClient, type DynamoDBClientConfig, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { SQSClient, type SQSClientConfig } from "@aws-sdk/client-sqs";
import middy from "@middy/core";
import type { Context, SQSEvent, SQSRecord } from "aws-lambda";
import { CLIENT_OPTIONS } from "../lib/compose/deps.ts";
import { dispatcherFunction, workerFunction } from "../lib/compose/functions.ts";
import { schedulerInput } from "../lib/core/runs/scheduler-event.ts";
import { EMBEDDED_TIMINGS } from "../lib/core/settings.ts";
import { DAY_MS, isoOf, MINUTE_MS, shortIsoOf } from "../lib/core/time.ts";
import { definition } from "../tests/support/definitions.ts";
import { manifestOf } from "../tests/support/embedded-services.ts";
import { TEST_CREDENTIALS } from "../tests/support/embedded-table.ts";
import { jobsFile } from "../tests/support/jobs-file.ts";
import { stubTransport } from "./stub-transport.ts";

const [side = "belfry", stubbed = "network"] = process.argv.slice(2);
const WARM = 1_500;
const MEASURED = 2_500;
const COUNT = WARM + MEASURED;

const transport = stubTransport();
const client = {
  region: "us-east-1",
  credentials: TEST_CREDENTIALS,
  endpoint: "http://stub",
  requestHandler: transport.handler,
};
const isOurs = side === "belfry";
const own = { ...client, ...(isOurs ? CLIENT_OPTIONS : {}) };
const db = new DynamoDBClient(own as unknown as DynamoDBClientConfig);
const sqs = new SQSClient({ ...own, md5: false } as unknown as SQSClientConfig);

if (stubbed === "clients") for (const each of [db, sqs]) Object.assign(each, { send: transport.send });

type Handle = (event: SQSEvent) => Promise<unknown>;

interface Worker {
  readonly handle: Handle;
  readonly bodies: readonly string[];
  /** Processor time that a dispatch took; only ours has any. */
  readonly dispatchUs?: number;
}

/** Processor time of all threads of this process, without the stub's own. */
const cpuUsOf = async (act: () => Promise<void>): Promise<number> => {
  const stubUs = transport.ownUs();
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return user + system - (transport.ownUs() - stubUs);
};

const RESULT = { deletedCount: 3 };
const DEFINITION = definition({
  name: "job",
  schedules: ["* * * * *"],
  overlap: "allow",
  startDeadlineMs: 30 * DAY_MS,
});

/** The worker function as it is: middy, its thread, the log line with its metrics. */
const belfry = async (): Promise<Worker> => {
  const manifest = manifestOf(DEFINITION);
  const url = "http://stub/000000000000/default";
  const config = {
    ...EMBEDDED_TIMINGS,
    service: "bench",
    stage: "dev",
    region: "us-east-1",
    tableName: "table",
    queueUrls: { default: url },
    deadLetterUrls: { default: url },
    dispatchFailuresUrl: url,
  };
  const clients = { db, sqs };
  const dispatch = dispatcherFunction(config, manifest, clients);
  const firstMs = Math.floor(Date.now() / MINUTE_MS - COUNT) * MINUTE_MS;
  const dispatchFrom = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n++) {
      const scheduledTime = shortIsoOf(firstMs + n * MINUTE_MS);
      await dispatch({ ...schedulerInput(["job"]), scheduledTime }, { awsRequestId: `request-${n}` });
    }
  };
  await dispatchFrom(0, WARM);
  const dispatchUs = (await cpuUsOf(() => dispatchFrom(WARM, COUNT))) / MEASURED;
  const file = await jobsFile({ job: `async () => (${JSON.stringify(RESULT)})` });
  const worker = workerFunction(config, manifest, { pool: "default", jobsFile: file, clients });
  await worker.ready();
  const handle: Handle = (event) => worker.handler(event, { awsRequestId: "request" });
  return { handle, bodies: transport.sent, dispatchUs };
};

/** As large as ours. */
const messageBodies = (): readonly string[] =>
  Array.from({ length: COUNT }, (_, n) =>
    JSON.stringify({
      v: 1,
      subject: "job",
      slotKey: isoOf(n * MINUTE_MS),
      epoch: 1,
      trigger: "schedule",
      queuedAtMs: Date.now(),
    }),
  );

/** The same by Powertools: a claim before, the result after, partial failures, one line of the same facts. */
const powertools = async (): Promise<Worker> => {
  const logger = new Logger({ serviceName: "bench", logLevel: "INFO" });
  const persistenceStore = new DynamoDBPersistenceLayer({ tableName: "table", awsSdkV3Client: db });
  const config = new IdempotencyConfig({ eventKeyJmesPath: "[subject, slotKey]" });
  const idempotent = makeIdempotent(async (_body: unknown) => RESULT, { persistenceStore, config });
  const work = async ({ body }: SQSRecord): Promise<typeof RESULT> => {
    const message = JSON.parse(body);
    const startedAt = Date.now();
    const result = await idempotent(message);
    const durationMs = Date.now() - startedAt;
    logger.info("run", { ...message, result, durationMs, state: "succeeded" });
    return result;
  };
  const processor = new BatchProcessor(EventType.SQS);
  const handler = middy<SQSEvent, unknown, Error, Context>().handler((event, context) => {
    config.registerLambdaContext(context);
    return processPartialResponse(event, work, processor, { context });
  });
  const context = { awsRequestId: "request", getRemainingTimeInMillis: () => 60_000 } as Context;
  return { handle: (event) => handler(event, context), bodies: messageBodies() };
};

/** What nobody who claims before and stores after can do without: the message read, and two calls of the SDK. */
const bare = async (): Promise<Worker> => {
  const name = { "#s": "status" };
  const handle: Handle = async ({ Records }) => {
    for (const { body } of Records) {
      const { subject, slotKey } = JSON.parse(body);
      const Key = { id: { S: `${subject}#${slotKey}` } };
      const claim = { ":s": { S: "INPROGRESS" }, ":e": { N: String(Date.now() + DAY_MS) } };
      await db.send(
        new UpdateItemCommand({
          TableName: "table",
          Key,
          UpdateExpression: "SET #s = :s, expiration = :e",
          ConditionExpression: "attribute_not_exists(id)",
          ExpressionAttributeNames: name,
          ExpressionAttributeValues: claim,
        }),
      );
      await db.send(
        new UpdateItemCommand({
          TableName: "table",
          Key,
          UpdateExpression: "SET #s = :s, #d = :d",
          ExpressionAttributeNames: { ...name, "#d": "data" },
          ExpressionAttributeValues: { ":s": { S: "COMPLETED" }, ":d": { M: { deletedCount: { N: "3" } } } },
        }),
      );
    }
  };
  return { handle, bodies: messageBodies() };
};

const eventsOf = (bodies: readonly string[]): readonly SQSEvent[] =>
  bodies.map((body, index) => ({
    Records: [
      {
        messageId: String(index),
        receiptHandle: "receipt",
        body,
        attributes: {
          ApproximateReceiveCount: "1",
          SentTimestamp: String(Date.now()),
          SenderId: "",
          ApproximateFirstReceiveTimestamp: String(Date.now()),
        },
        messageAttributes: {},
        md5OfBody: "",
        eventSource: "aws:sqs",
        eventSourceARN: "arn:aws:sqs:us-east-1:000000000000:default",
        awsRegion: "us-east-1",
      },
    ],
  }));

const SIDES: { readonly [side: string]: () => Promise<Worker> } = { belfry, powertools, bare };
const make = SIDES[side];
if (make === undefined) throw new Error(`no side "${side}"`);
const { handle, bodies, dispatchUs } = await make();
const events = eventsOf(bodies);
for (const event of events.slice(0, WARM)) await handle(event);
const calls = transport.calls();
const cpuUs = await cpuUsOf(async () => {
  for (const event of events.slice(WARM)) await handle(event);
});
process.send?.({
  cpuUs: cpuUs / MEASURED,
  calls: (transport.calls() - calls) / MEASURED,
  ...(dispatchUs === undefined ? {} : { dispatchUs }),
});
process.disconnect?.();
process.exit(0);
