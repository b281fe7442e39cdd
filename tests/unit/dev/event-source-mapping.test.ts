import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import { expect, test } from "vitest";
import { doneOf, type MappingOptions, startMapping } from "../../../cli/dev/event-source-mapping.ts";
import { handClock } from "./hand-clock.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

const message = (messageId: string) => ({
  messageId,
  receiptHandle: `receipt-${messageId}`,
  body: `body of ${messageId}`,
  md5OfBody: "0".repeat(32),
  attributes: {
    ApproximateReceiveCount: "3",
    SentTimestamp: "1791424800000",
    SenderId: "000000000000",
    ApproximateFirstReceiveTimestamp: "1791424800001",
  },
  messageAttributes: {},
});

type Message = ReturnType<typeof message>;

/** A queue whose receives are answered by hand. */
const handQueue = () => {
  const asked: { max: number; answer: (messages: Message[]) => void; fail: (error: Error) => void }[] = [];
  const removed: string[] = [];
  const givenBack: string[] = [];
  return {
    asked,
    removed,
    givenBack,
    source: {
      receive: (max: number) => {
        const { promise, resolve, reject } = Promise.withResolvers<Message[]>();
        asked.push({ max, answer: resolve, fail: reject });
        return promise;
      },
      remove: async (receiptHandle: string) => {
        removed.push(receiptHandle);
      },
      giveBack: async (receiptHandle: string) => {
        givenBack.push(receiptHandle);
      },
    },
  };
};

const setup = (
  handler: (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>,
  options: Partial<MappingOptions> = {},
) => {
  const queue = handQueue();
  const clock = handClock("2026-10-08T02:00:00Z");
  const lines: string[] = [];
  const mapping = startMapping({
    source: queue.source,
    queueArn: "arn:aws:sqs:us-east-1:000000000000:belfry-dev-default",
    region: "us-east-1",
    functionName: "belfry-dev-worker-default",
    functionTimeoutMs: 90_000,
    handler,
    concurrency: 2,
    clock,
    timers: clock,
    report: (line) => lines.push(line),
    ...options,
  });
  return { ...queue, clock, lines, mapping };
};

test("the function gets the event and the context that Lambda gives it", async () => {
  const seen: { event: SQSEvent; context: Context; remainingMs: number }[] = [];
  const { asked } = setup(async (event, context) => {
    seen.push({ event, context, remainingMs: context.getRemainingTimeInMillis() });
    return undefined;
  });
  asked[0]?.answer([message("m1")]);
  await settled();
  expect(seen[0]?.event).toEqual({
    Records: [
      {
        ...message("m1"),
        eventSource: "aws:sqs",
        eventSourceARN: "arn:aws:sqs:us-east-1:000000000000:belfry-dev-default",
        awsRegion: "us-east-1",
      },
    ],
  });
  expect(seen[0]?.remainingMs).toBe(90_000);
  expect(seen[0]?.context).toMatchObject({
    functionName: "belfry-dev-worker-default",
    awsRequestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
});

test("what the function does not report as failed is deleted", async () => {
  const { asked, removed } = setup(async () => ({ batchItemFailures: [{ itemIdentifier: "m2" }] }), {
    batchSize: 3,
    concurrency: 1,
  });
  asked[0]?.answer([message("m1"), message("m2"), message("m3")]);
  await settled();
  expect(removed).toEqual(["receipt-m1", "receipt-m3"]);
});

test("a function that throws keeps its whole batch, and it is said", async () => {
  const { asked, lines, removed } = setup(async () => {
    throw new Error("out of order");
  });
  asked[0]?.answer([message("m1")]);
  await settled();
  expect(removed).toEqual([]);
  expect(lines).toEqual([expect.stringContaining("out of order")]);
});

test.each([
  ["none reported", { batchItemFailures: [] }, ["m1", "m2"]],
  ["no answer at all", undefined, ["m1", "m2"]],
  ["one reported", { batchItemFailures: [{ itemIdentifier: "m1" }] }, ["m2"]],
  ["an unknown identifier", { batchItemFailures: [{ itemIdentifier: "other" }] }, []],
  ["an empty identifier", { batchItemFailures: [{ itemIdentifier: "" }] }, []],
])("of a batch of two, with %s, the done ones are known", (_name, answer, done) => {
  expect(doneOf([message("m1"), message("m2")], answer).map(({ messageId }) => messageId)).toEqual(done);
});

test("no more invocations run at once than the concurrency, and no more messages are taken", async () => {
  const running: PromiseWithResolvers<undefined>[] = [];
  const { asked } = setup(() => {
    const invocation = Promise.withResolvers<undefined>();
    running.push(invocation);
    return invocation.promise;
  });
  expect(asked.map(({ max }) => max)).toEqual([2]);
  asked[0]?.answer([message("m1")]);
  await settled();
  expect(asked.map(({ max }) => max)).toEqual([2, 1]);
  asked[1]?.answer([message("m2")]);
  await settled();
  expect(running).toHaveLength(2);
  expect(asked).toHaveLength(2);
  running[0]?.resolve(undefined);
  await settled();
  expect(asked.map(({ max }) => max)).toEqual([2, 1, 1]);
});

test("a queue that goes away is tried again after growing waits; where it stays away, that and its return are said once", async () => {
  const { asked, clock, lines } = setup(async () => undefined);
  for (const [index, waitMs] of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000].entries()) {
    expect(lines).toHaveLength(index < 5 ? 0 : 1);
    asked[index]?.fail(new Error("refused"));
    await settled();
    expect(clock.waits()).toEqual([waitMs]);
    clock.advance(waitMs);
    await settled();
  }
  asked[8]?.answer([]);
  await settled();
  expect(lines).toEqual([
    expect.stringContaining("does not answer, trying on: refused"),
    expect.stringContaining("answers again"),
  ]);
});

test("a stop begins no receive, gives back what the last one brought, and waits for running invocations", async () => {
  const running = Promise.withResolvers<undefined>();
  const { asked, givenBack, mapping, removed } = setup(() => running.promise);
  asked[0]?.answer([message("m1")]);
  await settled();
  let isStopped = false;
  const stopping = mapping.stop().then(() => {
    isStopped = true;
  });
  asked[1]?.answer([message("m2")]);
  await settled();
  expect({ isStopped, givenBack, received: asked.length }).toEqual({
    isStopped: false,
    givenBack: ["receipt-m2"],
    received: 2,
  });
  running.resolve(undefined);
  await stopping;
  expect(removed).toEqual(["receipt-m1"]);
});
