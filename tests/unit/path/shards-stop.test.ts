import { expect, test } from "vitest";
import { makeOperator } from "../../../lib/app/operate/operator.ts";
import { judgeDeadLetter } from "../../../lib/app/path/dead-letters.ts";
import { look } from "../../../lib/app/watchdog/looks.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { failure, onRun } from "../../support/path.ts";
import { LOST_SEAT, onBucket, sharded, wide } from "../../support/shard-path.ts";

/** How a run ends whose shards may be at work. Lease 60 s, renewed at 30 s, bound 30 s. */

const once = { ...sharded({}).retry, retries: 0, crashes: 0 };

const make = (shards: Parameters<typeof sharded>[0], changes: Parameters<typeof sharded>[1] = {}) => {
  const job = sharded(shards, changes);
  const made = wide(job);
  const pointed = { job, occurrence: made.run };
  const operator = makeOperator(made.env.deps);
  return {
    ...made,
    job,
    operator,
    cancel: () => operator.cancel(pointed, "not today"),
    retry: () => operator.retry(pointed),
    lookOnce: async () => look(made.env.deps, { job, occurrence: made.run, run: await made.stored() }),
  };
};

/** The first shard is at work, and the others are on their way. */
const atWork = async (shards: Parameters<typeof sharded>[0], changes: Parameters<typeof sharded>[1] = {}) => {
  const made = make(shards, changes);
  await made.begin();
  await made.next();
  made.env.handle(undefined);
  const settled = made.next();
  await made.env.settle();
  return { ...made, settled };
};

test("a run that is cancelled while a shard is at work goes on, and has its lock, until the shard is told at its renewal", async () => {
  const { env, cancel, settled, stored, lookOnce, playAll, handled } = await atWork(
    { count: 3 },
    { overlap: "skip" },
  );
  expect(await cancel()).toBe("stopping");
  expect(await stored()).toMatchObject({ st: "running", ph: "stop", reason: "not today" });
  expect(await stored()).not.toHaveProperty("badKey");
  await env.moveBy(29_999);
  expect(env.lastAttempt().stops).toEqual([]);
  await lookOnce();
  expect(await stored()).toMatchObject({ st: "running" });
  expect(await env.lock("wide")).toMatchObject({ held: 1 });
  await env.moveBy(1);
  expect(env.lastAttempt().stops).toEqual(["cancelled"]);
  expect(await settled).toEqual({ kind: "delete" });
  await lookOnce();
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "not today", badKey: expect.any(String) });
  expect(await stored()).not.toHaveProperty("endsAs");
  expect(await env.lock("wide")).toMatchObject({ held: 0 });
  await playAll();
  expect(handled()).toEqual([0]);
});

test("to be stopped with its run is neither a crash nor a failure of a shard: the retry has it again", async () => {
  const { env, cancel, retry, settled, bucketOf, lookOnce, playAll, stored, handled } = await atWork(
    { count: 1 },
    { onUnknown: "park", retry: once },
  );
  await cancel();
  await env.moveBy(30_000);
  await settled;
  expect((await bucketOf(0))?.["l#0"]).toEqual({ starts: 1 });
  await lookOnce();
  env.handle(() => ({ kind: "returned" }));
  await retry();
  await playAll();
  expect(handled()).toEqual([0, 0]);
  expect(await stored()).toMatchObject({ st: "succeeded", ep: 2 });
});

test("a shard that is done before it is told stays done", async () => {
  const { env, cancel, retry, settled, lookOnce, playAll, stored, handled } = await atWork({ count: 2 });
  await cancel();
  env.lastAttempt().end({ kind: "returned" });
  expect(await settled).toEqual({ kind: "delete" });
  await lookOnce();
  expect(await stored()).toMatchObject({ st: "cancelled" });
  env.handle(() => ({ kind: "returned" }));
  await retry();
  await playAll();
  expect(handled()).toEqual([0, 1]);
});

test("a stopped run waits no longer for a shard whose worker is gone than its lease and the bound", async () => {
  const { env, begin, next, cancel, putBucket, lookOnce, stored } = make({ count: 1 });
  await begin();
  await next();
  await putBucket(0, { "l#0": { ...LOST_SEAT, leaseUntilMs: env.now() + 60_000 } });
  expect(await cancel()).toBe("stopping");
  await env.moveBy(90_000);
  await lookOnce();
  expect(await stored()).toMatchObject({ st: "running" });
  await env.moveBy(1);
  await lookOnce();
  expect(await stored()).toMatchObject({ st: "cancelled" });
});

test.each([
  ["read", "get"],
  ["stopped", "write"],
] as const)(
  "where whoever cancels a run dies before its shards are %s, the watchdog goes on",
  async (_, port) => {
    const { env, begin, next, cancel, lookOnce, playAll, stored, handled } = make({ count: 2 });
    await begin();
    await next();
    env.fail(port, "down", onBucket);
    await expect(cancel()).rejects.toThrow(`${port} is down`);
    expect(await stored()).toMatchObject({ st: "running", ph: "stop" });
    await lookOnce();
    expect(await stored()).toMatchObject({ st: "cancelled" });
    await playAll();
    expect(handled()).toEqual([]);
  },
);

test("with replace, a newer slot runs when no shard of the one before it is at work", async () => {
  const { env, settled, stored, lookOnce } = await atWork(
    { count: 3 },
    { overlap: "replace", schedules: ["* * * * *"] },
  );
  await env.deliver("2026-10-08T02:01:00Z", ["wide"], "request-2");
  const sent = env.sent.length;
  expect(await stored()).toMatchObject({ st: "running", reason: "replaced" });
  await env.moveBy(30_000);
  await settled;
  await lookOnce();
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "replaced" });
  expect(env.sent).toHaveLength(sent + 1);
  expect(env.lastSent()).toMatchObject({ slotKey: "2026-10-08T02:01:00.000Z" });
});

/** The attempt that sends is given an answer for two of three batches; shards of those are on their way. */
const halfSent = async (changes: Parameters<typeof sharded>[1]) => {
  const made = make({ count: 30 }, { overlap: "skip", ...changes });
  const { env } = made;
  await made.begin();
  const { queue } = env.deps;
  const sendBatch = (pool: string, messages: readonly RunMessage[]) =>
    messages.some(({ shard }) => (shard?.index ?? 0) >= 20)
      ? Promise.resolve(messages.map(() => ({ kind: "unconfirmed" }) as const))
      : queue.sendBatch(pool, messages);
  const planned = env.workWith({ queue: { ...queue, sendBatch } }, env.lastSent());
  await env.settle();
  const [first] = env.sent.slice(1);
  if (first === undefined) throw new Error("nothing was sent");
  return { ...made, planned, first: first.message };
};

test("a run that dies while it sends its shards stops those it sent, and is dead when none is at work", async () => {
  const { env, planned, first, stored, lookOnce, playAll, handled } = await halfSent({ retry: once });
  env.handle(undefined);
  const working = env.work(first);
  await env.moveBy(15_000);
  expect(await planned).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ st: "running", ph: "stop", endsAs: "dead", attempts: 1 });
  expect(await env.lock("wide")).toMatchObject({ held: 1 });
  await env.moveBy(15_000);
  expect(await working).toEqual({ kind: "delete" });
  await lookOnce();
  expect(await stored()).toMatchObject({
    st: "dead",
    reason: "1 attempt failed",
    error: { message: expect.stringContaining("did not confirm 10 of 10 shards") },
    badKey: expect.any(String),
  });
  expect(await env.lock("wide")).toMatchObject({ held: 0 });
  const before = handled().length;
  await playAll();
  expect(handled()).toHaveLength(before);
});

test("one that is retried then sends all that is not done", async () => {
  const { env, planned, first, retry, stored, playAll, handled } = await halfSent({ retry: once });
  await env.work(first);
  await env.moveBy(15_000);
  await planned;
  expect(await stored()).toMatchObject({ st: "dead" });
  await retry();
  await playAll();
  expect(handled().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, index) => index));
  expect(await stored()).toMatchObject({ st: "succeeded", ep: 2 });
});

test("a run that waits to send the rest of its shards is cancelled, and those that were sent do not start", async () => {
  const { env, planned, cancel, stored, playAll, handled } = await halfSent({});
  await env.moveBy(15_000);
  expect(await planned).toMatchObject({ kind: "return" });
  expect(await stored()).toMatchObject({ st: "waiting", ph: "send" });
  expect(await cancel()).toBe("cancelled");
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "not today" });
  expect(await env.lock("wide")).toMatchObject({ held: 0 });
  await playAll();
  expect(handled()).toEqual([]);
});

/** Its worker is gone while it sends: nobody renews its lease, and one shard of it has a lease for longer. */
const lostWhileSending = async () => {
  const made = await halfSent({ retry: once });
  await made.putBucket(0, { "l#0": { owner: "x", starts: 1, leaseUntilMs: made.env.now() + 120_000 } });
  await made.env.put(
    { pk: "J#wide", sk: `R#${made.run.slotKey}` },
    { leaseUntilMs: made.env.now() - 30_001, fence: 7 },
  );
  return made;
};

test.each([
  [
    "whoever takes it over",
    ({ env }: Awaited<ReturnType<typeof lostWhileSending>>, message: RunMessage) => env.work(message),
  ],
  [
    "the dead-letters function",
    ({ env }: Awaited<ReturnType<typeof lostWhileSending>>, message: RunMessage) =>
      judgeDeadLetter(env.deps, message),
  ],
] as const)(
  "a run that lost its worker once too often while it sent is ended by %s, and not before its shards",
  async (_, meet) => {
    const made = await lostWhileSending();
    const { env, stored, lookOnce } = made;
    const [own] = env.sent;
    if (own === undefined) throw new Error("the run was sent");
    expect(await meet(made, own.message)).toEqual({ kind: "delete" });
    expect(await stored()).toMatchObject({ st: "running", ph: "stop", endsAs: "dead" });
    await env.moveBy(150_001);
    await lookOnce();
    expect(await stored()).toMatchObject({ st: "dead" });
    expect(await env.lock("wide")).toMatchObject({ held: 0 });
  },
);

test("a list that is refused ends its run at once: nothing of it was sent", async () => {
  const { env, begin, next, stored } = make({}, { retry: once });
  env.handle(() => failure("no customers"));
  await begin();
  await next();
  expect(await stored()).toMatchObject({ st: "dead" });
  expect(await stored()).not.toHaveProperty("ph");
});

test.each([
  ["is told at its renewal", undefined],
  ["is done", { kind: "returned" }],
  ["fails for good", { ...failure("no such host"), permanent: true }],
  ["fails and would be tried again", failure("busy")],
  ["would go on later", { kind: "continue" }],
] as const)("the last shard of a stopped run that %s ends the run, and frees its lock", async (_, end) => {
  const { env, cancel, settled, stored } = await atWork({ count: 2 }, { overlap: "skip" });
  expect(await cancel()).toBe("stopping");
  if (end === undefined) await env.moveBy(30_000);
  else env.lastAttempt().end(end);
  await settled;
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "not today" });
  expect(await env.lock("wide")).toMatchObject({ held: 0 });
});

test("where whoever cancels a parked run dies between the two steps, the watchdog ends it", async () => {
  const job = sharded({ count: 2 }, { onUnknown: "park", overlap: "skip" });
  const { env, run, begin, stored } = wide(job);
  await watch(env.deps);
  await begin();
  await env.put(
    { pk: "J#wide", sk: `R#${run.slotKey}` },
    { st: "parked", ep: 1, fence: 1, plan: 1, total: 2, ph: "send" },
  );
  env.fail("get", "down", onBucket);
  const cancelled = makeOperator(env.deps).cancel({ job, occurrence: run }, "not today");
  await expect(cancelled).rejects.toThrow("get is down");
  expect(await stored()).toMatchObject({ st: "running", ph: "stop", endsAs: "cancelled" });
  for (let minute = 0; minute < 5; minute++) {
    await env.moveBy(60_000);
    await watch(env.deps);
  }
  expect(await stored()).toMatchObject({ st: "cancelled" });
});

/** The next attempt lists its shards and sends some of them, when the queue is gone; so it has failed, and the run waits. */
const planInVain = async ({ env, next }: ReturnType<typeof make>): Promise<void> => {
  const isSend = ({ pk }: { readonly pk: string }) => pk === "default";
  for (let sent = 0; sent < 10; sent++) env.pass("send", isSend);
  // Twenty messages, each tried six times.
  env.fail("send", "down", isSend, 120);
  const planned = next();
  await env.moveBy(30_000);
  expect(await planned).toMatchObject({ kind: "return" });
};

test("a queued run that is cancelled while an attempt of it sends some shards in vain stops those first", async () => {
  const made = make({ count: 30 });
  const { env, begin, next, cancel, stored, handled } = made;
  await begin();
  env.meanwhile("write", onRun, () => planInVain(made));
  expect(await cancel()).toBe("cancelled");
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "not today" });
  await next();
  expect(handled()).toEqual([]);
});

test("with replace, a queued run whose attempt sends some shards in vain, just when it is replaced, stops those first", async () => {
  const made = make({ count: 30 }, { overlap: "replace", schedules: ["* * * * *"] });
  const { env, begin, next, stored, handled } = made;
  await begin();
  env.pass("write", onRun);
  env.meanwhile("write", onRun, () => planInVain(made));
  await env.deliver("2026-10-08T02:01:00Z", ["wide"], "request-2");
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "replaced" });
  await next();
  expect(handled()).toEqual([]);
});
