import { expect, test } from "vitest";
import { look } from "../../../lib/app/watchdog/looks.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { MINUTE_MS } from "../../../lib/core/time.ts";
import { onBucket, onStride, sharded, wide } from "../../support/shard-path.ts";

/** What the watchdog mends of a run whose shards are on their way. Timeout 5 minutes, lease 60 s, bound 30 s. */

const STALL_MS = 5 * MINUTE_MS + 90_000;

const open = async (shards: Parameters<typeof sharded>[0], changes: Parameters<typeof sharded>[1] = {}) => {
  const job = sharded(shards, changes);
  const made = wide(job);
  await made.begin();
  await made.next();
  const { env, run } = made;
  const lookOnce = async (): Promise<(number | undefined)[]> => {
    const before = env.sent.length;
    await look(env.deps, { job, occurrence: run, run: await made.stored() });
    return env.sent.slice(before).map(({ message }) => message.shard?.index);
  };
  return { ...made, job, lookOnce };
};

test("shards that have not started are a backlog, and sent again only after none has ended for an attempt's time", async () => {
  const { env, lookOnce, next } = await open({ count: 3 });
  expect(await lookOnce()).toEqual([]);
  await env.moveBy(STALL_MS - 1);
  expect(await lookOnce()).toEqual([]);
  await next();
  await env.moveBy(1);
  expect(await lookOnce()).toEqual([]);
  await env.moveBy(STALL_MS);
  expect(await lookOnce()).toEqual([1, 2]);
  // Then after twice as long, and again from the first wait once something ends.
  await env.moveBy(STALL_MS);
  expect(await lookOnce()).toEqual([]);
  await env.moveBy(STALL_MS);
  expect(await lookOnce()).toEqual([1, 2]);
  await next();
  await lookOnce();
  await env.moveBy(STALL_MS);
  expect(await lookOnce()).toEqual([2]);
});

test("a shard that lost its worker is sent again at once, one under a live lease is not", async () => {
  const { env, lookOnce, putBucket } = await open({ count: 2 });
  const seat = { owner: "x", starts: 1 };
  await putBucket(0, {
    "l#0": { ...seat, leaseUntilMs: env.now() - 30_001 },
    "l#1": { ...seat, leaseUntilMs: env.now() - 30_000 },
  });
  expect(await lookOnce()).toEqual([0]);
});

test("a shard that waits is sent again a minute after it was due", async () => {
  const { env, lookOnce, putBucket } = await open({ count: 1 });
  await putBucket(0, { "l#0": { starts: 1, attempts: 1, dueAtMs: env.now() } });
  await env.moveBy(MINUTE_MS - 1);
  expect(await lookOnce()).toEqual([]);
  await env.moveBy(1);
  expect(await lookOnce()).toEqual([0]);
});

test("where only so many may be in flight, only lanes in which nobody is busy are helped", async () => {
  const { env, lookOnce, putBucket } = await open({ count: 6, maxInFlight: 2 });
  await putBucket(0, {
    done: new Set(["1"]),
    "l#2": { owner: "x", starts: 1, leaseUntilMs: env.now() + 10 * STALL_MS },
  });
  await lookOnce();
  await env.moveBy(STALL_MS);
  // Shard 2 is at work in the lane of 0, 2, 4; in the other one, 1 is done.
  expect(await lookOnce()).toEqual([3]);
});

test("a step that a crash left out is made up for, and the run is joined", async () => {
  const { env, lookOnce, next, stored } = await open({ count: 1 });
  env.fail("write", "down", onStride);
  await expect(next()).rejects.toThrow("write is down");
  await lookOnce();
  expect(await stored()).toMatchObject({ st: "queued", ph: "join" });
  expect(env.lastSent()).toMatchObject({ epoch: 1 });
  expect(env.lastSent()).not.toHaveProperty("shard");
});

test("a join whose message was lost is asked for again", async () => {
  const { env, lookOnce, next, stored } = await open({ count: 1 });
  env.fail("send", "down");
  await expect(next()).rejects.toThrow("send is down");
  expect(await stored()).toMatchObject({ st: "queued", ph: "join" });
  const sent = env.sent.length;
  await lookOnce();
  expect(env.sent).toHaveLength(sent + 1);
});

test("of two passes that look at once, one sends", async () => {
  const { env, lookOnce, job, run, stored } = await open({ count: 2 });
  await lookOnce();
  await env.moveBy(STALL_MS);
  const seen = await stored();
  const before = env.sent.length;
  await look(env.deps, { job, occurrence: run, run: seen });
  await look(env.deps, { job, occurrence: run, run: seen });
  expect(env.sent.length - before).toBe(2);
});

test("a pass of the watchdog follows a run in its shards, from look to look, to its end", async () => {
  const { env, stored, putBucket, lookOnce } = await open({ count: 2 });
  await watch(env.deps);
  await lookOnce();
  await putBucket(0, { done: new Set(["0", "1"]) });
  for (let minute = 0; minute < 8; minute++) {
    await env.moveBy(MINUTE_MS);
    await watch(env.deps);
  }
  expect(await stored()).toMatchObject({ st: "queued", ph: "join" });
});

test("a run in its shards is not stuck, and costs its looks no more than its buckets", async () => {
  const { env, lookOnce } = await open({ count: 640 });
  env.calls.length = 0;
  await lookOnce();
  expect(env.calls.filter((call) => call === "get B")).toHaveLength(10);
  expect(env.notices.map(({ code }) => code)).not.toContain("stuck");
  expect(onBucket({ pk: "", sk: "B" })).toBe(true);
});
