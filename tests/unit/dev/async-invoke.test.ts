import { expect, test } from "vitest";
import { type FailureRecord, makeAsyncInvoke } from "../../../cli/dev/async-invoke.ts";
import { handClock } from "./hand-clock.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

const setup = (failures: number) => {
  const clock = handClock("2026-10-08T02:00:00Z");
  const requests: string[] = [];
  const kept: FailureRecord[] = [];
  const invoke = makeAsyncInvoke({
    functionArn: "arn:aws:lambda:us-east-1:000000000000:function:belfry-dev-dispatcher",
    handler: async (_event, { awsRequestId }) => {
      requests.push(awsRequestId);
      if (requests.length <= failures) throw new RangeError(`try ${requests.length}`);
    },
    retryWaitsMs: [60_000, 120_000],
    onFailure: async (record) => {
      kept.push(record);
    },
    clock,
    timers: clock,
    report: () => undefined,
  });
  return { clock, requests, kept, invoke };
};

test("an event whose handler throws is tried again after one minute and two, under the same request id", async () => {
  const { clock, invoke, kept, requests } = setup(2);
  invoke.send({ n: 1 });
  await settled();
  clock.advance(59_999);
  await settled();
  expect(requests).toHaveLength(1);
  clock.advance(1);
  await settled();
  expect(requests).toHaveLength(2);
  clock.advance(120_000);
  await settled();
  expect(requests).toHaveLength(3);
  expect(new Set(requests).size).toBe(1);
  expect(kept).toEqual([]);
});

test("after the third throw the event is kept as Lambda's failure destination has it", async () => {
  const { clock, invoke, kept } = setup(3);
  invoke.send({ n: 1 });
  await settled();
  clock.advance(60_000);
  await settled();
  clock.advance(120_000);
  await settled();
  expect(kept).toMatchObject([
    {
      version: "1.0",
      timestamp: "2026-10-08T02:03:00.000Z",
      requestContext: { condition: "RetriesExhausted", approximateInvokeCount: 3 },
      requestPayload: { n: 1 },
      responseContext: { statusCode: 200, functionError: "Unhandled" },
      responsePayload: { errorType: "RangeError", errorMessage: "try 3" },
    },
  ]);
});

test("a stop waits for the invocation under way and begins no other", async () => {
  const clock = handClock("2026-10-08T02:00:00Z");
  const running = Promise.withResolvers<void>();
  let begun = 0;
  const invoke = makeAsyncInvoke({
    functionArn: "arn",
    handler: async () => {
      begun += 1;
      await running.promise;
    },
    retryWaitsMs: [],
    onFailure: async () => undefined,
    clock,
    timers: clock,
    report: () => undefined,
  });
  invoke.send({});
  let isStopped = false;
  const stopping = invoke.stop().then(() => {
    isStopped = true;
  });
  invoke.send({});
  await settled();
  expect({ begun, isStopped }).toEqual({ begun: 1, isStopped: false });
  running.resolve();
  await stopping;
});
