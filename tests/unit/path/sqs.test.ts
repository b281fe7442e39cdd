import type { SQSRecord } from "aws-lambda";
import { expect, test } from "vitest";
import { Unavailable } from "../../../lib/core/errors.ts";
import { messageText, type RunMessage } from "../../../lib/core/runs/message.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { redispatchEach } from "../../../lib/inbound/dispatch-failures.ts";
import { settleEach } from "../../../lib/inbound/sqs.ts";
import type { Settlement } from "../../../lib/ports/run-queue.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, setup } from "../../support/path.ts";

const NOW = "2026-12-31T23:59:59Z";
const QUEUE_ARN = "arn:aws:sqs:eu-west-1:000000000000:default";
const QUEUE_URL = "https://queue.test/default";
const job = definition({ name: "report", schedules: ["* * * * *"], overlap: "allow" });

const recordOf = (messageId: string, body: string, eventSourceARN = QUEUE_ARN): SQSRecord => ({
  messageId,
  receiptHandle: `receipt of ${messageId}`,
  body,
  attributes: {
    ApproximateReceiveCount: "1",
    SentTimestamp: String(msOf("2026-12-31T23:59:00Z")),
    SenderId: "dispatcher",
    ApproximateFirstReceiveTimestamp: "0",
  },
  messageAttributes: {},
  md5OfBody: "",
  eventSource: "aws:sqs",
  eventSourceARN,
  awsRegion: "eu-west-1",
});

const textOf = (slotIso: string, changes: Partial<RunMessage> = {}): string =>
  messageText({ ...at("report", slotIso), epoch: 1, trigger: "schedule", queuedAtMs: 1, ...changes });

/** A handler that judges each message as the test says, by its epoch. */
const make = (judge: (message: RunMessage) => Promise<Settlement>) => {
  const env = setup({ now: NOW, jobs: [job] });
  const hidden: unknown[] = [];
  const handler = settleEach(
    {
      ...env.deps,
      deliveries: {
        hide: async (delivered, seconds) => {
          hidden.push([delivered, seconds]);
          return { hidden: true };
        },
      },
      queueUrlOf: (arn) => (arn === QUEUE_ARN ? QUEUE_URL : undefined),
    },
    judge,
  );
  return { env, hidden, handle: (...Records: readonly SQSRecord[]) => handler({ Records: [...Records] }) };
};

const failedIds = (...ids: readonly string[]) => ({
  batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })),
});

test("each message of a batch is settled on its own", async () => {
  const settlements: Settlement[] = [
    { kind: "delete" },
    { kind: "return" },
    { kind: "return", afterMs: 60_000 },
    { kind: "delete" },
  ];
  const { handle, hidden } = make(async ({ epoch }) => settlements[epoch - 1] ?? { kind: "delete" });
  const answer = await handle(
    ...settlements.map((_, index) => recordOf(`m${index}`, textOf(NOW, { epoch: index + 1 }))),
  );
  expect(answer).toEqual(failedIds("m1", "m2"));
  expect(hidden).toEqual([[{ queueUrl: QUEUE_URL, receiptHandle: "receipt of m2" }, 60]]);
});

test("the messages of a batch are worked on one after another, so that a kill meets one run", async () => {
  const judging: number[] = [];
  const { handle } = make(async ({ epoch }) => {
    judging.push(epoch);
    await Promise.resolve();
    judging.push(-epoch);
    return { kind: "delete" };
  });
  await handle(...[1, 2, 3].map((epoch) => recordOf(`m${epoch}`, textOf(NOW, { epoch }))));
  expect(judging).toEqual([1, -1, 2, -2, 3, -3]);
});

test.each([
  ["an error", () => Promise.reject(new Unavailable("test", "the table is down"))],
  [
    "an error before the first await",
    () => {
      throw new TypeError("a bug");
    },
  ],
])("a message that meets %s comes back alone", async (_what, judge) => {
  const { env, handle } = make(({ epoch }) => (epoch === 1 ? judge() : Promise.resolve({ kind: "delete" })));
  expect(await handle(recordOf("bad", textOf(NOW)), recordOf("good", textOf(NOW, { epoch: 2 })))).toEqual(
    failedIds("bad"),
  );
  expect(env.codes()).toEqual(["message-failed"]);
});

test.each([
  ["no JSON", "}{"],
  ["a text", '"report"'],
  ["an unknown version", textOf(NOW).replace('"v":1', '"v":2')],
  ["no subject", textOf(NOW).replace('"subject"', '"job"')],
  ["no attempt set", textOf(NOW).replace('"epoch":1', '"epoch":0')],
  ["no trigger", textOf(NOW).replace('"schedule"', '"moon"')],
  ["a slot that is none", textOf(NOW).replace("2026-12-31T23:59:59.000Z", "2026-13-31")],
  [
    "a slot that is none, asked for by hand",
    textOf(NOW, { trigger: "manual" }).replace("2026-12-31T23:59:59.000Z", "soon"),
  ],
])("a message with %s ends as a record of its own, and spares its batch", async (_what, body) => {
  let judged = 0;
  const { env, handle } = make(async () => {
    judged += 1;
    return { kind: "delete" };
  });
  const bad = recordOf("poison", body);
  expect(await handle(bad, recordOf("good", textOf(NOW)))).toEqual(failedIds());
  expect(await handle(bad)).toEqual(failedIds());
  expect(judged).toBe(1);
  const kept = env.table.items();
  expect(kept).toMatchObject([{ pk: "P#2026-12-31", sk: "2026-12-31T23:59:00.000Z~poison", body }]);
  expect(kept[0]).toHaveProperty("expiresAtS");
});

test("a message that cannot be read is not deleted before it is kept", async () => {
  const { env, handle } = make(async () => ({ kind: "delete" }));
  env.fail("write", "down");
  expect(await handle(recordOf("poison", "}{"))).toEqual(failedIds("poison"));
  expect(await handle(recordOf("poison", "}{"))).toEqual(failedIds());
});

test("of a big unreadable message the beginning is kept", async () => {
  const { env, handle } = make(async () => ({ kind: "delete" }));
  await handle(recordOf("poison", "x".repeat(100_000)));
  expect(String(env.table.items()[0]?.["body"])).toHaveLength(4_096);
});

test.each([
  [0, 1],
  [1, 1],
  [1_001, 2],
  [90_000, 90],
  [12 * 3_600_000 - 1_200_000, 42_000],
  [12 * 3_600_000 - 1_199_999, 42_000],
  [30 * 24 * 3_600_000, 42_000],
])("a wait of %i ms hides the message for %i s", async (afterMs, seconds) => {
  const { handle, hidden } = make(async () => ({ kind: "return", afterMs }));
  await handle(recordOf("m", textOf(NOW)));
  expect(hidden).toMatchObject([[{ receiptHandle: "receipt of m" }, seconds]]);
});

test("a message of a queue that nobody knows comes back with the queue's own visibility", async () => {
  const { handle, hidden } = make(async () => ({ kind: "return", afterMs: 5_000 }));
  expect(await handle(recordOf("m", textOf(NOW), "arn:aws:sqs:eu-west-1:0:other"))).toEqual(failedIds("m"));
  expect(hidden).toEqual([]);
});

// What a dispatcher could not do comes to a queue of its own.

const SLOT = "2026-12-31T23:59:00Z";
const event = { ...schedulerInput(["report"]), scheduledTime: SLOT };

test.each([
  ["a schedule's own dead letter", JSON.stringify(event)],
  ["a failed invocation", JSON.stringify({ requestContext: {}, requestPayload: event })],
])("%s is dispatched again under the identity it had", async (_what, body) => {
  const env = setup({ now: NOW, jobs: [job] });
  const redispatch = redispatchEach(env.deps);
  expect(await redispatch({ Records: [recordOf("m", body)] })).toEqual(failedIds());
  expect(await env.run(at("report", SLOT))).toMatchObject({ st: "queued" });
  expect(await redispatch({ Records: [recordOf("m", body), recordOf("copy", body)] })).toEqual(failedIds());
  expect((await env.run(at("report", SLOT)))?.["dup"]).toHaveProperty("size", 1);
});

test.each([
  ["no JSON", "}{"],
  ["an event that is none of ours", JSON.stringify({ requestPayload: { hello: 1 } })],
  ["a job that nobody knows", JSON.stringify({ ...event, subjects: ["gone"] })],
])("%s among the dispatch failures is kept as poison", async (_what, body) => {
  const env = setup({ now: NOW, jobs: [job] });
  expect(await redispatchEach(env.deps)({ Records: [recordOf("m", body)] })).toEqual(failedIds());
  expect(env.table.items()).toMatchObject([{ pk: "P#2026-12-31", body }]);
});

test("what still cannot be dispatched comes back, alone", async () => {
  const env = setup({ now: NOW, jobs: [job] });
  env.fail("get", "down");
  const records = [recordOf("m1", JSON.stringify(event)), recordOf("m2", JSON.stringify(event))];
  expect(await redispatchEach(env.deps)({ Records: records })).toEqual(failedIds("m1"));
  expect(env.codes()).toContain("message-failed");
});

test("a claim that no invocation could send is sent by its failure record, under the request that claimed", async () => {
  const env = setup({ now: NOW, jobs: [job] });
  env.fail("send", "down");
  await expect(env.deliver(SLOT, ["report"], "request-7")).rejects.toThrow();
  const body = JSON.stringify({ requestContext: { requestId: "request-7" }, requestPayload: event });
  await redispatchEach(env.deps)({ Records: [recordOf("m", body)] });
  expect(env.sent).toHaveLength(1);
  expect(await env.run(at("report", SLOT))).not.toHaveProperty("dup");
});
