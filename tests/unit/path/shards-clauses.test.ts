import { describe, expect, test } from "vitest";
import { finish } from "../../../lib/core/runs/transitions.ts";
import {
  countStride,
  keepList,
  noteSeen,
  openShards,
  queueJoin,
  sentUpTo,
} from "../../../lib/core/shards/fan-out.ts";
import { seatIn } from "../../../lib/core/shards/seats.ts";
import {
  endShard,
  failLostShard,
  failShard,
  failUnsent,
  forgiveShards,
  putOffShard,
  renewShard,
  startShard,
} from "../../../lib/core/shards/shard-writes.ts";
import {
  bucketSize,
  bucketsOf,
  indexOfShard,
  placeOfShard,
  shardReader,
  strideCount,
} from "../../../lib/core/shards/shards.ts";
import { cancelShards, endStopped, putOffEnd, stopBucket } from "../../../lib/core/shards/stop.ts";
import { applied, holds, type Item, type Write } from "../../../lib/core/write.ts";
import { at } from "../../support/path.ts";

/** Each clause of the conditions under which shards, and runs that have some, change. */

const NOW_MS = 1_000_000;
const BOUND_MS = 30_000;
const KEY = { pk: "x", sk: "x" };
const occurrence = at("wide", "2026-10-08T02:00:00Z");
const shard = { occurrence, plan: 3, place: { stride: 0, bucket: 1, seat: 7 } };
const holding = { at: shard, token: "me", epoch: 2 };
const bucket = { occurrence, plan: 3, stride: 0, bucket: 1 };

const accepts = (write: Write, item: Item | undefined): boolean =>
  holds(write.condition, item && { ...KEY, ...item });

type Row = readonly [what: string, item: Item | undefined, accepted: boolean];
const judged = (write: Write, rows: readonly Row[]): void => {
  test.each(rows)("%s", (_what, item, accepted) => {
    expect(accepts(write, item)).toBe(accepted);
  });
};

const wanted = {
  at: shard,
  epoch: 2,
  token: "me",
  nowMs: NOW_MS,
  clockBoundMs: BOUND_MS,
  leaseUntilMs: NOW_MS + 60_000,
};
const held = (changes: Item = {}): Item => ({
  "l#7": { owner: "gone", leaseUntilMs: NOW_MS - BOUND_MS - 1, starts: 4, ...changes },
});
const seenSeat = () => {
  const seat = seatIn(held(), 7);
  if (seat === undefined) throw new Error("no seat");
  return seat;
};

describe("the first start of a shard", () => {
  judged(startShard({ ...wanted, seen: undefined }), [
    ["is accepted where nobody has had it", undefined, true],
    ["is accepted where others are done", { done: new Set(["6"]), failed: new Set(["8"]) }, true],
    ["is refused where it is done", { done: new Set(["7"]) }, false],
    ["is refused where it has failed", { failed: new Set(["7"]) }, false],
    ["is refused where somebody has it", held({ leaseUntilMs: NOW_MS }), false],
    ["is refused where somebody has had it", { "l#7": { starts: 1 } }, false],
    ["is accepted where an earlier attempt set was stopped", { least: 2 }, true],
    ["is refused where its attempt set was stopped", { least: 3 }, false],
  ]);
});

describe("a later start of a shard", () => {
  const later = startShard({ ...wanted, seen: seenSeat() });
  judged(later, [
    ["is accepted where the lease ended beyond the bound", held(), true],
    ["is refused in the last millisecond of the bound", held({ leaseUntilMs: NOW_MS - BOUND_MS }), false],
    ["is refused under a live lease", held({ leaseUntilMs: NOW_MS + 1 }), false],
    ["is refused where somebody has started it since", held({ starts: 5 }), false],
    ["is refused where it is done", { ...held(), done: new Set(["7"]) }, false],
    ["is refused where it has failed", { ...held(), failed: new Set(["7"]) }, false],
    ["is refused where its run was stopped", { ...held(), least: 3 }, false],
    ["is accepted where it waits and is due", { "l#7": { starts: 4, dueAtMs: NOW_MS } }, true],
    ["is refused before it is due", { "l#7": { starts: 4, dueAtMs: NOW_MS + 1 } }, false],
    ["is accepted where it was forgiven", { "l#7": { starts: 4 } }, true],
  ]);

  test("has a fence of its own, and counts the crash of the worker that it finds gone", () => {
    const item = applied(later, { ...KEY, ...held() });
    expect(item["l#7"]).toEqual({ owner: "me", leaseUntilMs: NOW_MS + 60_000, starts: 5, crashes: 1 });
  });

  test("after a wait keeps the failed attempts, and counts no crash", () => {
    const seen = { ...seenSeat(), owner: undefined, leaseUntilMs: undefined, attempts: 2 };
    const item = applied(startShard({ ...wanted, seen }), KEY);
    expect(item["l#7"]).toEqual({ owner: "me", leaseUntilMs: NOW_MS + 60_000, starts: 5, attempts: 2 });
  });
});

describe("the end of a shard as lost once too often", () => {
  judged(failLostShard(wanted, seenSeat()), [
    ["is accepted where the lease ended beyond the bound", held(), true],
    ["is refused in the last millisecond of the bound", held({ leaseUntilMs: NOW_MS - BOUND_MS }), false],
    ["is refused where somebody has started it since", held({ starts: 5 }), false],
    ["is refused where it is done", { ...held(), done: new Set(["7"]) }, false],
  ]);
});

const mine = (changes: Item = {}): Item => held({ owner: "me", ...changes });
const next = { ...seenSeat(), dueAtMs: NOW_MS };

test.each([
  ["ends it", endShard(holding)],
  ["fails it", failShard(holding, 4)],
  ["puts it off", putOffShard(holding, next)],
  ["renews its lease", renewShard(holding, NOW_MS)],
])("only who has a shard %s, whenever its lease ended", (_what, write) => {
  expect(accepts(write, mine())).toBe(true);
  expect(accepts(write, held({ owner: "next" }))).toBe(false);
  expect(accepts(write, { "l#7": { starts: 4 } })).toBe(false);
  expect(accepts(write, undefined)).toBe(false);
});

test("a lease of a shard is not renewed when its run was stopped", () => {
  expect(accepts(renewShard(holding, NOW_MS), { ...mine(), least: 2 })).toBe(true);
  expect(accepts(renewShard(holding, NOW_MS), { ...mine(), least: 3 })).toBe(false);
});

test("a shard that failed keeps its count of starts, and nobody has it", () => {
  const item = applied(failShard(holding, 4), { ...KEY, ...mine() });
  expect(item).toMatchObject({ failed: new Set(["7"]), "l#7": { starts: 4 } });
  expect(seatIn(item, 7)).toMatchObject({ starts: 4, owner: undefined, leaseUntilMs: undefined });
});

test("a shard that is done leaves nothing but that", () => {
  const item = applied(endShard(holding), { ...KEY, ...mine() });
  expect(item).toMatchObject({ done: new Set(["7"]) });
  expect(seatIn(item, 7)).toBeUndefined();
});

describe("a shard whose message the queue refused", () => {
  judged(failUnsent(shard, NOW_MS), [
    ["has failed where nobody has had it", undefined, true],
    ["is left where somebody has it", held(), false],
    ["is left where it is done", { done: new Set(["7"]) }, false],
  ]);
});

describe("failed shards are forgiven", () => {
  judged(forgiveShards(bucket, [7], { epoch: 9, nowMs: NOW_MS }), [
    ["where nobody did so before", { failed: new Set(["7"]) }, true],
    ["after an earlier attempt set", { forgiven: 8 }, true],
    ["not twice in the same one", { forgiven: 9 }, false],
    ["not after a later one", { forgiven: 10 }, false],
  ]);
});

describe("the shards of an attempt set are stopped", () => {
  judged(stopBucket(bucket, 2, NOW_MS), [
    ["where nobody did so", undefined, true],
    ["where an earlier set was", { least: 2 }, true],
    ["not where a later one was", { least: 3 }, false],
  ]);
});

const running: Item = { st: "running", fence: 5, ep: 2 };

describe("a list becomes the run's", () => {
  judged(keepList({ occurrence, fence: 5 }, { total: 3, listed: true }), [
    ["under the fence of who made it", running, true],
    ["not under another", { ...running, fence: 6 }, false],
    ["not where there is one", { ...running, plan: 4 }, false],
    ["not when the run is over", { ...running, st: "cancelled" }, false],
  ]);
});

describe("what is sent is noted", () => {
  judged(sentUpTo({ occurrence, fence: 5 }, 4_096), [
    ["under the fence of who sends", running, true],
    ["not under another", { ...running, fence: 6 }, false],
  ]);
});

describe("the shards are left to themselves", () => {
  judged(openShards({ occurrence, fence: 5 }, { tries: [] }), [
    ["after they were sent", { ...running, ph: "send" }, true],
    ["after they were sent again", running, true],
    ["not by another", { ...running, ph: "send", fence: 6 }, false],
    ["not twice", { ...running, ph: "shards" }, false],
    ["not when the run is to stop", { ...running, ph: "send", cancelAtMs: 1 }, false],
  ]);
});

const fan = { occurrence, plan: 3, total: 3, listed: false };

describe("a complete stride is counted", () => {
  judged(countStride(fan, { epoch: 2, stride: 0, strideItem: KEY }), [
    ["in its attempt set", { ...running, plan: 3 }, true],
    ["not in a later one", { ...running, plan: 3, ep: 3 }, false],
    ["not for another list", { ...running, plan: 4 }, false],
  ]);
});

const inShards: Item = { ...running, ph: "shards" };

describe("a run is joined", () => {
  judged(queueJoin(occurrence, 2, NOW_MS), [
    ["from its shards", inShards, true],
    ["not while they are sent", { ...running, ph: "send" }, false],
    ["not twice", { ...running, ph: "join" }, false],
    ["not in another attempt set", { ...inShards, ep: 3 }, false],
    ["not when it was cancelled", { ...inShards, st: "cancelled" }, false],
  ]);
});

describe("a run in its shards is cancelled", () => {
  judged(cancelShards(occurrence, 2, { token: "me", reason: "no" }), [
    ["as nobody holds it", inShards, true],
    ["not while somebody sends them", { ...running, ph: "send" }, false],
    ["not when it is joined", { ...running, ph: "join" }, false],
    ["not in another attempt set", { ...inShards, ep: 3 }, false],
    ["not twice", { ...inShards, st: "cancelled" }, false],
  ]);
});

const stopping: Item = { ...inShards, ph: "stop", endsAs: "dead" };

describe("a run whose shards are stopped ends", () => {
  judged(endStopped(occurrence, 2, { state: "dead", nowMs: NOW_MS }), [
    ["as it was to", stopping, true],
    ["not as another said", { ...stopping, endsAs: "cancelled" }, false],
    ["not in another attempt set", { ...stopping, ep: 3 }, false],
    ["not in another phase", { ...stopping, ph: "shards" }, false],
    ["not twice", { ...stopping, st: "dead" }, false],
  ]);
});

test("an end that is put off notes the state and the reason, and neither the instant nor the list of bad ends", () => {
  const failed = { tries: "x", reason: "6 attempts failed", failed: true };
  const end = finish({ occurrence, fence: 5 }, { state: "dead", nowMs: NOW_MS, ...failed });
  const { pk: _pk, sk: _sk, ...after } = applied(putOffEnd(end), { ...KEY, ...running, ph: "send" });
  expect(after).toEqual({ ...stopping, tries: "x", reason: "6 attempts failed", attempts: 1 });
});

test("an end that is put off is written once: a late copy of it, which finds the run running still, is refused", () => {
  const end = finish({ occurrence, fence: 5 }, { state: "dead", nowMs: NOW_MS, tries: "x", failed: true });
  const sending = { ...KEY, ...running, ph: "send" };
  expect(accepts(putOffEnd(end), sending)).toBe(true);
  expect(accepts(putOffEnd(end), applied(putOffEnd(end), sending))).toBe(false);
});

describe("a look at a run in its shards is noted", () => {
  judged(noteSeen(occurrence, 7, { seen: 1, nowMs: NOW_MS, nudges: 0 }), [
    ["after the look that was seen", { ...inShards, seenAtMs: 7 }, true],
    ["not after another", { ...inShards, seenAtMs: 8 }, false],
    ["not in another phase", { ...running, ph: "join", seenAtMs: 7 }, false],
  ]);
});

test("a key may be in a list once", () => {
  const read = shardReader();
  read("eu");
  read({ key: "us" });
  expect(() => read({ key: "eu", input: 1 })).toThrow('the key "eu" is there twice, as entry 0 and entry 2');
});

test("a list has at most 262,144 entries", () => {
  const read = shardReader();
  for (let n = 0; n < 262_144; n++) read(String(n));
  expect(() => read("one more")).toThrow("there are more than 262144");
});

test.each([1, 63, 64, 65, 4_095, 4_096, 4_097, 10_000])(
  "each of %i shards has a seat of its own, and each bucket as many as it counts",
  (total) => {
    const seats = new Map<string, number>();
    for (let index = 0; index < total; index++) {
      const place = placeOfShard(index, total);
      expect(indexOfShard(place, total)).toBe(index);
      const name = `${place.stride}.${place.bucket}`;
      seats.set(name, (seats.get(name) ?? 0) + 1);
      expect(place.seat).toBeLessThan(64);
    }
    const expected = Array.from({ length: strideCount(total) }, (_, stride) =>
      bucketsOf(stride, total).map((bucket) => [`${stride}.${bucket}`, bucketSize(stride, bucket, total)]),
    );
    expect(Object.fromEntries(seats)).toEqual(Object.fromEntries(expected.flat()));
  },
);
