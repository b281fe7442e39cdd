import { expect, test } from "vitest";
import { epochToAsk } from "../../../lib/app/series/series-source.ts";
import {
  AT_END,
  endSeries,
  handOut,
  openSeries,
  registerSeries,
  type Series,
  seriesIn,
  settleRun,
  stopSeries,
  unregisterSeries,
} from "../../../lib/core/runs/series.ts";
import { DAY_MS } from "../../../lib/core/time.ts";
import { applied, holds, type Item, type Write } from "../../../lib/core/write.ts";
import { msOf } from "../../support/path.ts";

/** Each clause of a series' writes by itself: a store that takes one too many is seen here, whoever else would mend it. */

const NAME = { subject: "daily", kind: "backfill" } as const;
const NOW = msOf("2026-10-08T12:00:00Z");
const [FIRST, SECOND] = ["2026-10-01T02:00:00.000Z", "2026-10-02T02:00:00.000Z"];

const begin = (id = "one", before?: Item): Item =>
  applied(
    openSeries(
      {
        ...NAME,
        id,
        cursor: FIRST,
        parallel: 2,
        fromMs: 1,
        toMs: 2,
        until: SECOND,
        redo: ["missed"],
        schedule: "daily",
        total: 2,
      },
      NOW,
    ),
    before,
  );

const read = (item: Item): Series => {
  const series = seriesIn(NAME, item);
  if (series === undefined) throw new Error("no series");
  return series;
};

const next = (series: Series, slots: readonly string[] = [FIRST], cursor = SECOND): Write =>
  handOut(series, {
    runs: slots.map((slotKey) => ({ slotKey, epoch: 1 })),
    cursor,
    left: 0,
    token: "me",
    nowMs: NOW,
  });

const takes = (write: Write, item: Item | undefined): boolean => holds(write.condition, item);
const after = (write: Write, item: Item): Item => {
  expect(takes(write, item)).toBe(true);
  return applied(write, item);
};

test("a series is begun where there is none, or where the last one is over, and begins with nothing of it", () => {
  const again = openSeries({ ...read(begin()), id: "two" }, NOW);
  expect(takes(again, undefined)).toBe(true);
  expect(takes(again, begin())).toBe(false);
  for (const st of ["done", "stopped"]) expect(takes(again, { ...begin(), st })).toBe(true);
  const old = {
    ...begin(),
    st: "stopped",
    stopAtMs: 1,
    reason: "by hand",
    asked: 3,
    left: 2,
    "n#dead": 3,
    own: "x",
  };
  expect(read(begin("two", old))).toEqual({ ...read(begin("two")) });
});

test("runs are handed out of an open series, from the cursor that was seen, while there is room and nobody stops it", () => {
  const item = begin();
  const series = read(item);
  expect(takes(next(series), item)).toBe(true);
  expect(takes(next(series), { ...item, st: "done" })).toBe(false);
  expect(takes(next(series), { ...item, id: "two" })).toBe(false);
  expect(takes(next(series), { ...item, cursor: SECOND })).toBe(false);
  expect(takes(next(series), { ...item, stopAtMs: 1 })).toBe(false);
  expect(takes(next(series, [FIRST, SECOND]), item)).toBe(true);
  expect(takes(next(series, [FIRST, SECOND]), { ...item, held: 1 })).toBe(false);
  expect(takes(next(series), undefined)).toBe(false);
});

test("what is handed out is listed, counted, and known by its owner", () => {
  expect(read(after(next(read(begin()), [FIRST, SECOND], AT_END), begin()))).toMatchObject({
    cursor: AT_END,
    asked: 2,
    owner: "me",
    handed: [
      { slotKey: FIRST, epoch: 1, atMs: NOW },
      { slotKey: SECOND, epoch: 1, atMs: NOW },
    ],
  });
});

test("a run is settled once, in the attempt set in which it was handed out", () => {
  const item = after(next(read(begin())), begin());
  const end = settleRun(NAME, { slotKey: FIRST, epoch: 1 }, "dead");
  expect(takes(settleRun(NAME, { slotKey: FIRST, epoch: 2 }, "dead"), item)).toBe(false);
  expect(takes(settleRun(NAME, { slotKey: SECOND, epoch: 1 }, "dead"), item)).toBe(false);
  const settled = after(end, item);
  expect(read(settled)).toMatchObject({ handed: [], asked: 1, ended: { dead: 1, succeeded: 0 } });
  expect(settled["held"]).toBe(0);
  expect(takes(end, settled)).toBe(false);
  const left = after(settleRun(NAME, { slotKey: FIRST, epoch: 1 }, "left"), item);
  expect(read(left)).toMatchObject({ handed: [], asked: 0, left: 1, ended: { dead: 0 } });
});

test("an open series is stopped, with the first reason, and no other", () => {
  const item = begin();
  const stop = stopSeries(read(item), NOW, "by hand");
  const stopped = after(stop, item);
  expect(read(stopped)).toMatchObject({ state: "open", stopping: true, reason: "by hand" });
  expect(read(after(stopSeries(read(item), NOW + 1, "later"), stopped))).toMatchObject({ reason: "by hand" });
  expect(takes(stop, { ...item, id: "two" })).toBe(false);
  expect(takes(stop, { ...item, st: "done" })).toBe(false);
});

test("a series ends when nothing is on its way, and it is through or stopped", () => {
  const through = { ...begin(), cursor: AT_END };
  const stopped = { ...begin(), stopAtMs: NOW };
  const done = endSeries(read(through), NOW);
  const halted = endSeries(read(stopped), NOW);
  expect(read(after(done, through))).toMatchObject({ state: "done", endedAtMs: NOW });
  expect(read(after(halted, stopped))).toMatchObject({ state: "stopped" });
  expect(takes(done, { ...through, held: 1 })).toBe(false);
  expect(takes(done, begin())).toBe(false);
  expect(takes(halted, begin())).toBe(false);
  expect(takes(halted, { ...stopped, st: "stopped" })).toBe(false);
});

test("places are taken once a series, and no more of them than the pool can spare", () => {
  const entry = { ...NAME, id: "one", pool: "default", places: 2, atMs: NOW };
  const other = { ...entry, subject: "other", id: "two" };
  const taken = applied(registerSeries(entry, 3), undefined);
  expect(takes(registerSeries(entry, 3), undefined)).toBe(true);
  expect(takes(registerSeries({ ...entry, id: "two" }, 9), taken)).toBe(false);
  expect(takes(registerSeries(other, 3), taken)).toBe(false);
  expect(takes(registerSeries(other, 4), taken)).toBe(true);
  expect(takes(registerSeries({ ...entry, kind: "retry" }, 4), taken)).toBe(true);
  expect(takes(registerSeries({ ...other, pool: "slow" }, 2), taken)).toBe(true);
  expect(takes(unregisterSeries({ ...entry, id: "two" }), taken)).toBe(false);
  expect(after(unregisterSeries(entry), taken)).toMatchObject({ "p#default": 0 });
  expect(takes(unregisterSeries(entry), after(unregisterSeries(entry), taken))).toBe(false);
});

test.each([
  [undefined, 1],
  [{ dup: new Set(["t"]) }, 1],
  [{ st: "missed", ep: 2, claimedAtMs: NOW - 30 * DAY_MS }, 3],
  [{ st: "missed", ep: 2, claimedAtMs: NOW - 30 * DAY_MS - 1 }, undefined],
  [{ st: "succeeded", ep: 1, claimedAtMs: NOW }, undefined],
  [{ st: "running", ep: 1, claimedAtMs: NOW }, undefined],
  [{ st: "dead", ep: 1, claimedAtMs: NOW }, undefined],
] as const)("of a slot with the record %j a series asks for attempt set %s", (run, epoch) => {
  expect(epochToAsk(run, ["missed"], NOW)).toBe(epoch);
});
