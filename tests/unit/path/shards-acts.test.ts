import { expect, test } from "vitest";
import { makeReadRun } from "../../../lib/app/inspect/read-run.ts";
import { makeOperator } from "../../../lib/app/operate/operator.ts";
import { judgeDeadLetter } from "../../../lib/app/path/dead-letters.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, onRun } from "../../support/path.ts";
import {
  indexIn,
  isPart,
  LOST_SEAT,
  NOW,
  onBucket,
  onStride,
  SLOT,
  sharded,
  wide,
} from "../../support/shard-path.ts";

/** What people, other slots and dead letters do to a run that has shards. */

const once = { ...sharded({}).retry, retries: 0 };

const make = (shards: Parameters<typeof sharded>[0], changes: Parameters<typeof sharded>[1] = {}) => {
  const job = sharded(shards, changes);
  const made = wide(job);
  const pointed = { job, occurrence: made.run };
  const show = () => makeReadRun(made.env.deps)(made.run);
  return { ...made, job, pointed, show, operator: makeOperator(made.env.deps) };
};

/** A run of which these shards fail, played until it is dead. */
const died = async (
  count: number,
  failing: readonly number[],
  changes: Parameters<typeof sharded>[1] = {},
) => {
  const made = make({ count }, { retry: once, ...changes });
  made.env.handle((request) =>
    failing.includes(indexIn(request)) ? failure("no such host") : { kind: "returned" },
  );
  await made.begin();
  await made.playAll();
  made.env.handle(() => ({ kind: "returned" }));
  return made;
};

test("show tells how many shards are done, failed and running, and why the failed ones did", async () => {
  const { env, begin, next, show } = make({ count: 5 }, { retry: once });
  await begin();
  await next();
  expect(await show()).toMatchObject({
    state: "running",
    shards: { total: 5, done: 0, failed: 0, running: 0, waiting: 0, dead: [] },
  });
  env.handle((request) => (indexIn(request) === 0 ? failure("no such host") : { kind: "returned" }));
  await next();
  await next();
  env.handle(undefined);
  void next();
  await env.settle();
  expect((await show())?.shards).toEqual({
    total: 5,
    done: 1,
    failed: 1,
    running: 1,
    waiting: 0,
    dead: [
      {
        index: 0,
        key: "0",
        input: null,
        attempts: 1,
        failedAt: "2026-10-08T02:00:01Z",
        error: expect.objectContaining({ name: "TypeError", message: "no such host" }),
      },
    ],
  });
});

test("the record of a run that is over knows its shards without its buckets", async () => {
  const { env, show } = await died(130, [7]);
  env.fail("get", "down", onBucket);
  env.pass("get", onBucket);
  await expect(show()).rejects.toThrow("get is down");
  expect((await show())?.shards).toMatchObject({ total: 130, done: 129, failed: 1, running: 0 });
});

test("show tells the attempts at the shards from those at the join, and of a run in its shards that none goes on", async () => {
  const { env, begin, next, playAll, show } = make({ count: 2, joins: true });
  await begin();
  await next();
  expect((await show())?.attempts).toMatchObject([{ n: 1, part: "shards", outcome: "returned" }]);
  await next();
  await next();
  env.handle(undefined);
  void next();
  await env.settle();
  expect((await show())?.attempts).toMatchObject([
    { n: 1, part: "shards", outcome: "returned" },
    { n: 1, part: "join", outcome: "running" },
  ]);
  env.lastAttempt().end({ kind: "returned" });
  await playAll();
  expect((await show())?.attempts.map(({ part }) => part)).toEqual(["shards", "join"]);
});

test("show names the shards that failed by the buckets, however many more had failed before a retry", async () => {
  const failed = Array.from({ length: 100 }, (_, index) => index);
  const { env, operator, pointed, playAll, show } = await died(130, failed);
  expect((await show())?.shards?.dead.map(({ index }) => index)).toEqual(failed.slice(0, 20));
  env.handle((request) => (indexIn(request) === 99 ? failure("no such host") : { kind: "returned" }));
  await operator.retry(pointed);
  await playAll();
  const before = env.calls.length;
  expect((await show())?.shards).toMatchObject({ done: 129, failed: 1, dead: [{ index: 99 }] });
  // Its record and error, three buckets, and the error of one shard.
  expect(env.calls.slice(before)).toHaveLength(6);
});

test("a retry carries out the shards that failed, and no other, and the run succeeds", async () => {
  const { env, operator, pointed, playAll, stored, handled } = await died(70, [3, 66]);
  const before = handled().length;
  await operator.retry(pointed);
  await playAll();
  expect(
    handled()
      .slice(before)
      .sort((a, b) => a - b),
  ).toEqual([3, 66]);
  expect(env.attempts.slice(before).map(({ request }) => request.attempt)).toEqual([1, 1]);
  expect(await stored()).toMatchObject({ st: "succeeded", ep: 2 });
});

test("a retry may be for one of the failed shards; the run is judged by what is left", async () => {
  const { operator, pointed, playAll, stored, handled, show } = await died(8, [2, 5]);
  await operator.retry(pointed, ["5"]);
  await playAll();
  expect(handled().slice(8)).toEqual([5]);
  expect(await stored()).toMatchObject({ st: "dead", reason: "1 of 8 shards failed" });
  expect((await show())?.shards?.dead.map(({ key }) => key)).toEqual(["2"]);
  await expect(operator.retry(pointed, ["5"])).rejects.toThrow('no shard "5" has failed');
});

test.each([
  ["has not failed", ["4"], 'no shard "4" has failed'],
  ["is none", ["berlin"], 'no shard "berlin" has failed'],
  ["is one of too many", Array.from({ length: 21 }, (_, n) => String(n)), "21 shards are too many to name"],
])("a shard to be retried that %s is refused, and nothing is done", async (_what, keys, message) => {
  const { operator, pointed, stored } = await died(8, [2, 5]);
  await expect(operator.retry(pointed, keys)).rejects.toThrow(message);
  expect(await stored()).toMatchObject({ st: "dead", ep: 1 });
});

test("the shards of a run without any, or of one that goes on, cannot be retried", async () => {
  const { env, begin, next, operator, pointed } = make({ count: 3 });
  await begin();
  await next();
  await expect(operator.retry(pointed)).rejects.toThrow("it is on its way");
  const single = definition({ name: "single" });
  await env.put({ pk: "J#single", sk: `R#${at("single", SLOT).slotKey}` }, { st: "dead", ep: 1 });
  await expect(operator.retry({ job: single, occurrence: at("single", SLOT) }, ["1"])).rejects.toThrow(
    "has no shards",
  );
});

test("after a retry the end of an older attempt set counts nothing", async () => {
  const { env, operator, pointed, next, stored } = await died(2, [0, 1]);
  const [, first] = env.sent;
  await operator.retry(pointed);
  await next();
  expect(await stored()).toMatchObject({ st: "running", ph: "shards", ep: 2 });
  if (first === undefined) throw new Error("a shard was sent");
  // It starts the shard, which nobody else has, and counts its end for its own set alone.
  expect(await env.work(first.message)).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ st: "running", ph: "shards" });
  await next();
  await next();
  expect(await stored()).toMatchObject({ st: "queued", ph: "join" });
});

test("an attempt that lost its lease does not forgive what has failed since", async () => {
  const { env, operator, pointed, next, playAll, stored } = await died(2, [0]);
  await operator.retry(pointed);
  const message = env.lastSent();
  env.meanwhile("write", onBucket, async () => {
    // Between its look and its write another attempt takes the run, forgives, sends, and the shard fails again.
    await env.moveBy(120_000);
    env.handle(() => failure());
    await env.work(message);
    await env.work(env.lastSent());
  });
  await next();
  await playAll();
  expect(await stored()).toMatchObject({ st: "dead", reason: "1 of 2 shards failed" });
});

test("a shard that fails again before its retry was all sent stays failed, and its bucket is counted once", async () => {
  const { env, operator, pointed, next, playAll, stored, handled } = await died(70, [3, 66]);
  await operator.retry(pointed);
  const message = env.lastSent();
  const before = handled().length;
  env.handle((request) => (indexIn(request) === 3 ? failure("no such host") : { kind: "returned" }));
  env.meanwhile("write", onRun, async () => undefined);
  // The attempt has sent both, and loses its lease before it can say so; meanwhile one of the two fails once more.
  env.meanwhile("write", onRun, async () => {
    await next();
    env.handle(() => ({ kind: "returned" }));
    await env.moveBy(120_000);
    await env.work(message);
  });
  await next();
  await playAll();
  expect(
    handled()
      .slice(before)
      .sort((a, b) => a - b),
  ).toEqual([3, 66]);
  expect(await stored()).toMatchObject({ st: "dead", ep: 2, reason: "1 of 70 shards failed" });
});

test("a shard that fails for the first time before its retry was all sent stays failed too, and the run is joined after it", async () => {
  const { env, begin, operator, pointed, next, playAll, stored, handled } = make(
    { count: 3 },
    { retry: { ...once, crashes: 3 } },
  );
  await begin();
  await next();
  await operator.cancel(pointed, "not today");
  await next();
  await next();
  await next();
  await operator.retry(pointed);
  const message = env.lastSent();
  env.handle((request) => (indexIn(request) === 2 ? failure("no such host") : { kind: "returned" }));
  env.meanwhile("write", onRun, async () => undefined);
  // The attempt has sent all, and loses its lease before it can say so; meanwhile all are over.
  env.meanwhile("write", onRun, async () => {
    for (let shard = 0; shard < 3; shard++) await next();
    env.handle(() => ({ kind: "returned" }));
    await env.moveBy(120_000);
    await env.work(message);
  });
  await next();
  await playAll();
  expect(handled()).toEqual([0, 1, 2]);
  expect(await stored()).toMatchObject({ st: "dead", ep: 2, reason: "1 of 3 shards failed" });
});

test("a run in its shards that is cancelled ends at once, and no shard of it starts any more", async () => {
  const { env, begin, next, operator, pointed, stored, playAll, handled } = make(
    { count: 3 },
    { overlap: "skip" },
  );
  await begin();
  await next();
  await next();
  expect(await operator.cancel(pointed, "not today")).toBe("cancelled");
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "not today", badKey: expect.any(String) });
  expect(await env.lock("wide")).toMatchObject({ held: 0 });
  await playAll();
  expect(handled()).toEqual([0]);
});

test("a cancelled run that is retried carries out what was not done", async () => {
  const { begin, next, operator, pointed, stored, playAll, handled } = make({ count: 3 });
  await begin();
  await next();
  await next();
  await operator.cancel(pointed, "not today");
  await operator.retry(pointed);
  await playAll();
  expect(handled().sort()).toEqual([0, 1, 2]);
  expect(await stored()).toMatchObject({ st: "succeeded", ep: 2 });
});

test("a run that is asked to stop while it sends its shards is cancelled, and what was sent does not start", async () => {
  const { env, begin, next, operator, pointed, stored, playAll, handled } = make({ count: 30 });
  await begin();
  env.meanwhile(
    "write",
    ({ sk }) => sk.startsWith("R#"),
    async () => undefined,
  );
  env.meanwhile(
    "write",
    ({ sk }) => sk.startsWith("R#"),
    async () => undefined,
  );
  env.meanwhile("write", onRun, async () => {
    expect(await operator.cancel(pointed, "not today")).toBe("stopping");
  });
  expect(await next()).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ st: "cancelled" });
  await playAll();
  expect(handled()).toEqual([]);
});

test("with replace, a newer slot ends a run in its shards, and runs after it", async () => {
  const { env, begin, next, stored } = make({ count: 3 }, { overlap: "replace", schedules: ["* * * * *"] });
  await begin();
  await next();
  await env.moveBy(60_000);
  await env.deliver("2026-10-08T02:01:00Z", ["wide"], "request-2");
  expect(await stored()).toMatchObject({ st: "cancelled", reason: "replaced" });
  expect(env.lastSent()).toMatchObject({ slotKey: "2026-10-08T02:01:00.000Z" });
});

test("a message for the run itself, while its shards are on their way, is deleted", async () => {
  const { env, begin, next, stored } = make({ count: 3 });
  await begin();
  const message = env.lastSent();
  await next();
  expect(await env.work(message)).toEqual({ kind: "delete" });
  expect(await judgeDeadLetter(env.deps, message)).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ st: "running", ph: "shards" });
});

const letterOf = async (shard: Parameters<typeof sharded>[0] = { count: 2 }) => {
  const made = make(shard);
  await made.begin();
  await made.next();
  const message = made.waiting()[0];
  if (message === undefined) throw new Error("a shard was sent");
  return { ...made, message };
};

test("a dead letter of a shard that may start is sent back, and one that is in live hands is left", async () => {
  const { env, message, putBucket } = await letterOf();
  const sent = env.sent.length;
  expect(await judgeDeadLetter(env.deps, message)).toEqual({ kind: "delete" });
  expect(env.sent).toHaveLength(sent + 1);
  await putBucket(0, { "l#0": { owner: "somebody", leaseUntilMs: Date.parse(NOW) + 30_000, starts: 1 } });
  expect(await judgeDeadLetter(env.deps, message)).toMatchObject({ kind: "return" });
});

test("a dead letter of a shard that lost its worker once too often ends it", async () => {
  const { env, message, putBucket, stored } = await letterOf({ count: 1 });
  await putBucket(0, { "l#0": { ...LOST_SEAT, crashes: 1 } });
  expect(await judgeDeadLetter(env.deps, message)).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ st: "queued", ph: "join" });
});

test("a dead letter of a shard whose run is over is dropped", async () => {
  const { env, message, playAll } = await letterOf();
  await playAll();
  expect(await judgeDeadLetter(env.deps, message)).toEqual({ kind: "delete" });
});

test("the steps after a shard's end are done again by its message, whatever a crash left out", async () => {
  const { env, begin, next, stored, waiting } = make({ count: 1 });
  await begin();
  await next();
  const [message] = waiting();
  if (message === undefined) throw new Error("a shard was sent");
  env.fail("write", "down", onStride);
  await expect(next()).rejects.toThrow("write is down");
  expect(await stored()).toMatchObject({ ph: "shards" });
  env.fail("write", "lost", onStride);
  await expect(env.work(message)).rejects.toThrow("the answer of write was lost");
  expect(await env.work(message)).toEqual({ kind: "delete" });
  expect(await stored()).toMatchObject({ st: "queued", ph: "join" });
  expect(isPart("shard")(env.lastAttempt().request)).toBe(true);
});
