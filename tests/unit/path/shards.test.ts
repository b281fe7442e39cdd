import { expect, test } from "vitest";
import { itemBytes } from "../../support/item-size.ts";
import { failure } from "../../support/path.ts";
import { indexIn, isPart, LOST_SEAT, sharded, wide } from "../../support/shard-path.ts";

const fail = (): never => {
  throw new Error("a shard was sent");
};

const countsOf = (calls: readonly string[]) => ({
  writes: calls.filter((call) => call.startsWith("write ")).length,
  reads: calls.filter((call) => !call.startsWith("write ") && !call.startsWith("send ")).length,
});

test("a run is split, each shard is carried out once, and the run succeeds when all are over", async () => {
  const { env, begin, next, playAll, stored, handled } = wide(sharded({ count: 5 }));
  await begin();
  expect(await next()).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ st: "running", ph: "shards", total: 5 });
  expect(await stored()).not.toHaveProperty("leaseUntilMs");
  expect(env.sent.slice(1).map(({ message }) => message.shard)).toEqual(
    [0, 1, 2, 3, 4].map((index) => ({ plan: 1, index, total: 5 })),
  );
  await playAll();
  expect(handled()).toEqual([0, 1, 2, 3, 4]);
  expect(await stored()).toMatchObject({ st: "succeeded", ph: "join" });
});

test("a shard is told which it is, and which of how many", async () => {
  const { env, begin, playAll } = wide(sharded({ count: 2 }));
  await begin();
  await playAll();
  expect(env.attempts.map(({ request }) => request.part)).toEqual([
    { kind: "shard", index: 0, count: 2, key: "0" },
    { kind: "shard", index: 1, count: 2, key: "1" },
  ]);
});

test("a shard costs two writes, no read, and a send; and the join one write for each 64 of them", async () => {
  const { env, begin, next, playAll, stored } = wide(sharded({ count: 640 }));
  await begin();
  await next();
  env.calls.length = 0;
  await playAll();
  // Ten buckets and one stride are counted; the run is queued for its end, started and finished.
  expect(countsOf(env.calls)).toEqual({ writes: 2 * 640 + 10 + 1 + 3, reads: 0 });
  expect(env.calls.filter((call) => call.startsWith("send ")).length).toBe(1);
  expect(await stored()).toMatchObject({ st: "succeeded" });
});

test("no record of a run with 4,096 shards, each in a worker's hands, is over 1 KB", async () => {
  const { env, begin, next, waiting } = wide(sharded({ count: 4_096 }));
  await begin();
  await next();
  env.handle(undefined);
  // More of them are side by side in one bucket than ever are: the first eight of its seats.
  for (const message of waiting().slice(0, 8 * 64)) void env.work(message);
  await env.settle();
  const sizes = env.table.items().map((item) => itemBytes(item));
  expect(Math.max(...sizes)).toBeLessThan(1_024);
});

test("what the job lists is stored before anything is sent, with its inputs in the messages", async () => {
  const { env, begin, next, stored, waiting } = wide(sharded({}));
  await begin();
  env.handle(undefined);
  const listing = next();
  await env.settle();
  const { request, services, end } = env.lastAttempt();
  expect(isPart("list")(request)).toBe(true);
  await services.addShards([{ key: "eu", input: { zone: 1 } }, { key: "us" }]);
  await services.addShards([{ key: "cn", input: "x" }]);
  expect(waiting()).toEqual([]);
  end({ kind: "returned", result: 3 });
  expect(await listing).toEqual({ kind: "delete" });
  expect(waiting().map(({ shard }) => shard)).toEqual([
    { plan: 1, index: 0, total: 3, key: "eu", input: { zone: 1 } },
    { plan: 1, index: 1, total: 3, key: "us" },
    { plan: 1, index: 2, total: 3, key: "cn", input: "x" },
  ]);
  expect(await stored()).toMatchObject({ ph: "shards", total: 3, listed: true });
});

test("a run whose job lists nothing is over at once, and its hook is called all the same", async () => {
  const { env, begin, playAll, stored } = wide(sharded({ joins: true }));
  env.handle(({ part }) => ({ kind: "returned", result: part?.kind === "join" ? "sum" : 0 }));
  await begin();
  await playAll();
  expect(await stored()).toMatchObject({ st: "succeeded", total: 0, result: "sum" });
});

test("the hook is called once, after the last shard, with how many are done", async () => {
  const { env, begin, playAll, stored } = wide(sharded({ count: 70, joins: true }));
  env.handle((request) => ({ kind: "returned", ...(isPart("join")(request) ? { result: 70 } : {}) }));
  await begin();
  await playAll();
  const joins = env.attempts.filter(({ request }) => isPart("join")(request));
  expect(joins.map(({ request }) => request.part)).toEqual([
    { kind: "join", shards: { total: 70, done: 70, failed: 0 } },
  ]);
  expect(env.attempts.at(-1)).toBe(joins[0]);
  expect(await stored()).toMatchObject({ st: "succeeded", result: 70 });
});

test("a shard that fails waits and is tried again, and its run waits for it", async () => {
  const { env, begin, playAll, stored, waiting, bucketOf } = wide(sharded({ count: 3 }));
  env.handle((request) =>
    indexIn(request) === 1 && request.attempt === 1 ? failure() : { kind: "returned" },
  );
  await begin();
  await playAll();
  const shard = env.sent.find(({ message }) => message.shard?.index === 1)?.message;
  if (shard === undefined) throw new Error("no such shard");
  expect(await bucketOf(1)).toMatchObject({ "l#1": { starts: 1, attempts: 1, dueAtMs: expect.any(Number) } });
  expect(await env.work(shard)).toEqual({ kind: "return", afterMs: 60_000 });
  await env.moveBy(60_000);
  expect(await env.work(shard)).toEqual({ kind: "delete" });
  expect(env.lastAttempt().request).toMatchObject({ attempt: 2 });
  expect(waiting()).toHaveLength(1);
  await playAll();
  expect(await stored()).toMatchObject({ st: "succeeded" });
});

test("a shard that used up its attempts is dead with its input and its error, and so is the run", async () => {
  const { env, begin, playAll, stored } = wide(
    sharded({ count: 3 }, { retry: { ...sharded({}).retry, retries: 0 } }),
  );
  env.handle((request) => (indexIn(request) === 1 ? failure("no such host") : { kind: "returned" }));
  await begin();
  await playAll();
  expect(await stored()).toMatchObject({
    st: "dead",
    reason: "1 of 3 shards failed",
    error: { name: "ShardsFailed" },
    badKey: expect.any(String),
  });
  const dead = env.table.items().find(({ sk }) => String(sk).includes("#dead#"));
  expect(JSON.parse(String(dead?.["value"]))).toMatchObject({
    index: 1,
    attempts: 1,
    error: { name: "TypeError", message: "no such host" },
  });
});

test.each([
  ["a count", { count: 1 }, "succeeded"],
  ["a share", { percent: 34 }, "succeeded"],
  ["a share that is too small", { percent: 33 }, "dead"],
  ["none", undefined, "dead"],
])(
  "with %s of failures that are tolerated, a run with one of three is %s",
  async (_what, tolerance, state) => {
    const job = sharded(
      { count: 3, joins: true, ...(tolerance === undefined ? {} : { tolerance }) },
      { retry: { ...sharded({}).retry, retries: 0 } },
    );
    const { env, begin, playAll, stored } = wide(job);
    env.handle((request) => (indexIn(request) === 1 ? failure() : { kind: "returned" }));
    await begin();
    await playAll();
    expect(await stored()).toMatchObject({ st: state });
    expect(env.attempts.some(({ request }) => isPart("join")(request))).toBe(state === "succeeded");
  },
);

test("at most as many shards as may be are in flight, and the end of each sends the next of its lane", async () => {
  const { begin, next, waiting, stored, handled, playAll } = wide(sharded({ count: 7, maxInFlight: 3 }));
  await begin();
  await next();
  expect(waiting().map(({ shard }) => shard?.index)).toEqual([0, 1, 2]);
  await next();
  expect(waiting().map(({ shard }) => shard?.index)).toEqual([1, 2, 3]);
  await playAll();
  expect(handled()).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(await stored()).toMatchObject({ st: "succeeded" });
});

test("of a batch only what is not confirmed is sent again, and what the queue refuses is dead with its reason", async () => {
  const { env, begin, stored, playAll, handled } = wide(sharded({ count: 4 }));
  await begin();
  const batches: number[][] = [];
  const { sendBatch } = env.deps.queue;
  const first = ["sent", "refused", "unconfirmed", "sent"] as const;
  const queue = {
    ...env.deps.queue,
    sendBatch: async (pool: string, messages: Parameters<typeof sendBatch>[1]) => {
      batches.push(messages.map(({ shard }) => shard?.index ?? -1));
      if (batches.length > 1) return sendBatch(pool, messages);
      await sendBatch(
        pool,
        messages.filter((_, index) => first[index] === "sent"),
      );
      return first.map((kind) =>
        kind === "refused" ? { kind, reason: "InvalidMessageContents" } : { kind },
      );
    },
  };
  const planning = env.workWith({ queue }, env.lastSent());
  await env.moveBy(1_000);
  expect(await planning).toEqual({ kind: "delete" });
  expect(batches).toEqual([[0, 1, 2, 3], [2]]);
  env.sent.shift();
  await playAll();
  expect(handled()).toEqual([0, 3, 2]);
  expect(await stored()).toMatchObject({ st: "dead", reason: "1 of 4 shards failed" });
  const dead = env.table.items().find(({ sk }) => String(sk).includes("#dead#"));
  expect(String(dead?.["value"])).toContain("InvalidMessageContents");
});

test("a message of a shard that is over, or in other hands, does nothing", async () => {
  const { env, begin, next, waiting } = wide(sharded({ count: 2 }));
  await begin();
  await next();
  const [first, second] = waiting();
  if (first === undefined || second === undefined) throw new Error("two shards were sent");
  expect(await env.work(first)).toEqual({ kind: "delete" });
  expect(await env.work(first)).toEqual({ kind: "delete" });
  env.handle(undefined);
  const running = env.work(second);
  await env.settle();
  const attempts = env.attempts.length;
  expect(await env.work(second)).toMatchObject({ kind: "return" });
  expect(env.attempts).toHaveLength(attempts);
  env.lastAttempt().end({ kind: "returned" });
  await running;
});

test("a shard whose worker was lost is taken over, which is a crash and no attempt", async () => {
  const { env, begin, next, waiting, bucketOf, putBucket } = wide(sharded({ count: 1 }));
  await begin();
  await next();
  await putBucket(0, { "l#0": LOST_SEAT });
  env.handle(undefined);
  void env.work(waiting()[0] ?? fail());
  await env.settle();
  expect(await bucketOf(0)).toMatchObject({ "l#0": { starts: 2, crashes: 1 } });
  expect(env.lastAttempt().request).toMatchObject({ attempt: 2 });
});

test.each([
  ["lost its worker once too often", { ...LOST_SEAT, crashes: 1 }, "retry"],
  ["lost its worker and must not be repeated", LOST_SEAT, "park"],
] as const)("a shard that %s is dead", async (_what, seat, onUnknown) => {
  const { env, begin, next, waiting, stored, putBucket, playAll } = wide(
    sharded({ count: 1 }, { onUnknown }),
  );
  await begin();
  await next();
  await putBucket(0, { "l#0": seat });
  expect(await env.work(waiting()[0] ?? fail())).toEqual({ kind: "delete" });
  expect(env.attempts).toEqual([]);
  await playAll();
  expect(await stored()).toMatchObject({ st: "dead", reason: "1 of 1 shards failed" });
});

test("a shard that is cut off and must not be repeated is dead at once, and the others go on", async () => {
  const { env, begin, playAll, stored, handled } = wide(sharded({ count: 2 }, { onUnknown: "park" }));
  const error = { name: "ProcessExit", message: "the handler called process.exit(0)" };
  env.handle((request) => (indexIn(request) === 0 ? { kind: "exited", error } : { kind: "returned" }));
  await begin();
  await playAll();
  expect(handled()).toEqual([0, 1]);
  expect(await stored()).toMatchObject({ st: "dead", reason: "1 of 2 shards failed" });
});
