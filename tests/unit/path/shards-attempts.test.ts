import { expect, test } from "vitest";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { onBucket, sharded, wide } from "../../support/shard-path.ts";

/** Stories of one shard's attempt, and of the sending: what happens between a look, a lease and a record. */

const shardSent = (messages: readonly RunMessage[], index: number): RunMessage => {
  const found = messages.find(({ shard }) => shard?.index === index);
  if (found === undefined) throw new Error(`shard ${index} was not sent`);
  return found;
};

const open = async (shards: Parameters<typeof sharded>[0]) => {
  const made = wide(sharded(shards));
  await made.begin();
  await made.next();
  return { ...made, message: (index: number) => shardSent(made.waiting(), index) };
};

test("a shard's start whose answer was lost is known as its own", async () => {
  const { env, message, handled } = await open({ count: 1 });
  env.fail("write", "repeated", onBucket);
  expect(await env.work(message(0))).toEqual({ kind: "delete" });
  expect(handled()).toEqual([0]);
});

test("a worker that slept over its lease does not begin the shard", async () => {
  const { env, message, handled } = await open({ count: 1 });
  env.meanwhile("write", onBucket, async () => env.skew(60_000));
  expect(await env.work(message(0))).toEqual({ kind: "return", afterMs: 30_000 });
  expect(handled()).toEqual([]);
});

test("a shard's end whose answer was lost is no stale one", async () => {
  const { env, message, bucketOf } = await open({ count: 2 });
  env.handle(undefined);
  const visit = env.work(message(0));
  await env.settle();
  env.fail("write", "repeated", onBucket);
  env.lastAttempt().end({ kind: "returned" });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await bucketOf(0)).toMatchObject({ done: new Set(["0"]) });
  expect(env.codes()).not.toContain("stale-result");
});

test("a shard's message stays until its end is stored", async () => {
  const { env, message } = await open({ count: 2 });
  env.handle(undefined);
  const visit = env.work(message(0));
  await env.settle();
  env.fail("write", "down", onBucket, 3);
  env.lastAttempt().end({ kind: "returned" });
  await expect(visit).rejects.toThrow("write is down");
});

test("a shard whose lease could not be renewed is stopped, and records nothing", async () => {
  const { env, message, bucketOf } = await open({ count: 2 });
  env.handle(undefined);
  const visit = env.work(message(0));
  await env.settle();
  env.fail("write", "down", onBucket, 100);
  await env.moveBy(55_000);
  expect(env.lastAttempt().stops).toEqual(["the lease could not be renewed"]);
  expect(await visit).toEqual({ kind: "return", afterMs: 90_000 });
  expect(await bucketOf(0)).toMatchObject({ "l#0": { starts: 1 } });
});

test("a shard whose lease another worker took is recorded by that one alone", async () => {
  const { env, message, putBucket, bucketOf } = await open({ count: 2 });
  env.handle(undefined);
  const visit = env.work(message(0));
  await env.settle();
  await putBucket(0, { "l#0": { owner: "next", leaseUntilMs: env.now() + 60_000, starts: 2 } });
  env.lastAttempt().end({ kind: "returned" });
  expect(await visit).toEqual({ kind: "return" });
  expect(await bucketOf(0)).not.toHaveProperty("done");
  expect(env.codes()).toContain("stale-result");
});

test("a shard that continues later asks for its next piece, which has its state and all attempts", async () => {
  const { env, message, next } = await open({ count: 1 });
  const sent = env.sent.length;
  env.handle(() => ({ kind: "continue", state: { row: 7 } }));
  expect(await next()).toEqual({ kind: "delete" });
  expect(env.sent).toHaveLength(sent + 1);
  env.handle(undefined);
  void env.work(message(0));
  await env.settle();
  expect(await env.lastAttempt().services.loadState()).toEqual({ row: 7 });
  expect(env.lastAttempt().request.attempt).toBe(1);
});

test("a shard that snoozes waits, and has failed no attempt", async () => {
  const { env, message, bucketOf } = await open({ count: 1 });
  env.handle(() => ({ kind: "snooze", waitMs: 5_000 }));
  expect(await env.work(message(0))).toEqual({ kind: "return", afterMs: 5_000 });
  expect(await bucketOf(0)).toMatchObject({ "l#0": { starts: 1, snoozes: 1, dueAtMs: env.now() + 5_000 } });
});

test("a shard that cancels itself has failed with its reason, and is not tried again", async () => {
  const { env, message, stored } = await open({ count: 1 });
  env.handle(() => ({ kind: "cancel", reason: "no such customer" }));
  expect(await env.work(message(0))).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ ph: "join" });
  const dead = env.table.items().find(({ sk }) => String(sk).includes("#dead#"));
  expect(String(dead?.["value"])).toContain("no such customer");
});

test("with a limit in flight, the end of a shard sends nothing where its lane has somebody at work", async () => {
  const { env, message, putBucket } = await open({ count: 9, maxInFlight: 3 });
  await putBucket(0, { "l#3": { owner: "x", starts: 1, leaseUntilMs: env.now() + 60_000 } });
  const sent = env.sent.length;
  await env.work(message(0));
  expect(env.sent).toHaveLength(sent);
});

test("with a limit in flight, the end of a shard passes over what is over in its lane", async () => {
  const { env, message, putBucket } = await open({ count: 9, maxInFlight: 3 });
  await putBucket(0, { done: new Set(["3"]) });
  await env.work(message(0));
  expect(env.lastSent().shard).toMatchObject({ index: 6 });
});

test("with a limit in flight, the next shard of a list comes with its own key and input", async () => {
  const made = wide(sharded({ maxInFlight: 1 }));
  await made.begin();
  made.env.handle(undefined);
  const listing = made.next();
  await made.env.settle();
  const { services, end } = made.env.lastAttempt();
  await services.addShards([{ key: "a", input: 1 }, { key: "b" }]);
  end({ kind: "returned" });
  await listing;
  made.env.handle(() => ({ kind: "returned" }));
  await made.next();
  expect(made.env.lastSent().shard).toEqual({ plan: 1, index: 1, total: 2, key: "b" });
});

test("a join whose message could not be sent is asked for by the shard's message when that comes again", async () => {
  const { env, message, stored, next } = await open({ count: 1 });
  const first = message(0);
  env.fail("send", "down");
  await expect(next()).rejects.toThrow("send is down");
  expect(await stored()).toMatchObject({ st: "queued", ph: "join" });
  const sent = env.sent.length;
  expect(await env.work(first)).toEqual({ kind: "delete" });
  expect(env.sent).toHaveLength(sent + 1);
});

test("what is noted as sent has been sent, and a later attempt goes on from there", async () => {
  const { env, begin, stored, playAll, run, waiting } = wide(sharded({ count: 4_097 }));
  await begin();
  const plan = env.lastSent();
  const queue = {
    ...env.deps.queue,
    sendBatch: async (_pool: string, messages: readonly RunMessage[]) =>
      messages.map(() => ({ kind: "unconfirmed", reason: "the key is disabled" }) as const),
  };
  const visit = env.workWith({ queue }, plan);
  await env.moveBy(20_000);
  expect(await visit).toMatchObject({ kind: "return" });
  expect(await stored()).toMatchObject({
    st: "waiting",
    ph: "send",
    sent: 0,
    attempts: 1,
    error: { message: "the queue did not confirm 10 of 10 shards: the key is disabled" },
  });
  await env.moveBy(60_000);
  expect(await env.work(plan)).toEqual({ kind: "delete" });
  expect(waiting().filter(({ shard }) => shard !== undefined)).toHaveLength(4_097);
  expect(await env.run(run)).toMatchObject({ ph: "shards", attempts: 0 });
  await playAll();
  expect(await stored()).toMatchObject({ st: "succeeded" });
});

test("an attempt that goes on with the sending leaves out what somebody has begun", async () => {
  const { env, begin, playAll, stored, run, putBucket } = wide(sharded({ count: 3 }));
  await begin();
  await env.put({ pk: "J#wide", sk: `R#${run.slotKey}` }, { plan: 1, total: 3, ph: "send", sent: 0 });
  await putBucket(0, {
    done: new Set(["0"]),
    "l#1": { owner: "x", starts: 1, leaseUntilMs: env.now() + 60_000 },
  });
  await env.work(env.lastSent());
  expect(env.sent.slice(1).map(({ message }) => message.shard?.index)).toEqual([2]);
  await playAll();
  expect(await stored()).toMatchObject({ ph: "shards" });
});
