import { expect, test } from "vitest";
import { retryRun } from "../../../lib/app/operate/operator.ts";
import { startBackfill } from "../../../lib/app/series/backfill.ts";
import { stopSeriesByHand } from "../../../lib/app/series/begin-series.ts";
import { readSeries } from "../../../lib/app/series/series.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { runKey, SERIES_KEY, seriesKey } from "../../../lib/core/items.ts";
import { handOut, settleRun } from "../../../lib/core/runs/series.ts";
import { MINUTE_MS } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { at, onRun } from "../../support/path.ts";
import { daily, make, NAME, onRegistry, onSeries, put, slotOfDay } from "../../support/series-path.ts";

/** What others do between the steps of a backfill. */

test("a slot that somebody runs by hand between the look and the ask is left to them", async () => {
  const { env, range, slots, series } = make(daily({ overlap: "allow" }));
  env.meanwhile("write", onRun, () => put(env, 1, "queued", { trigger: "manual", fence: 0 }));
  await startBackfill(env.deps, range);
  expect(slots()).toEqual(["10-02"]);
  expect(await env.run(slotOfDay(1))).toMatchObject({ trigger: "manual" });
  expect(await series()).toMatchObject({ asked: 1, left: 1 });
});

test("a late ask leaves a run alone that has been retried since, and one that is on its way", async () => {
  for (const [st, ep] of [
    ["queued", 2],
    ["running", 1],
  ] as const) {
    const { env, range, slots } = make(daily({ overlap: "allow" }));
    env.meanwhile("write", onRun, () => put(env, 1, st, { ep, series: "backfill", trigger: "backfill" }));
    await startBackfill(env.deps, range);
    expect(slots()).not.toContain("10-01");
  }
});

test("of two that hand out the same place one asks for it, and the other for what is next", async () => {
  const { env, range, slots } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  // Meanwhile somebody else takes the place: the write of the hand-out is refused, and not by our own.
  env.pass("write", onSeries);
  env.meanwhile("write", onSeries, async () => {
    const series = await readSeries(env.deps, NAME);
    if (series === undefined) throw new Error("no series");
    const runs = [{ slotKey: slotOfDay(1).slotKey, epoch: 1 }];
    const cursor = slotOfDay(2).slotKey;
    await env.table.write(handOut(series, { runs, cursor, left: 0, token: "other", nowMs: env.now() }));
  });
  await startBackfill(env.deps, range);
  expect(slots()).toEqual([]);
  await env.moveBy(3 * MINUTE_MS);
  await watch(env.deps);
  expect(slots()).toEqual(["10-01"]);
});

test("a hand-out whose answer was lost is its own, and is asked for at once", async () => {
  const { env, range, slots } = make();
  env.pass("write", onSeries);
  env.fail("write", "repeated", onSeries);
  await startBackfill(env.deps, range);
  expect(slots()).toEqual(["10-01"]);
});

test("an end that was settled before hands out the next all the same", async () => {
  const { env, range, slots } = make();
  await startBackfill(env.deps, range);
  env.fail("write", "repeated", onSeries);
  await env.work(env.lastSent());
  expect(slots()).toEqual(["10-01", "10-02"]);
});

test("a listed run that nobody asked for is asked for, though not before its process has had the time", async () => {
  const { env, range, slots } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  await startBackfill(env.deps, range);
  const series = await readSeries(env.deps, NAME);
  if (series === undefined) throw new Error("no series");
  await env.table.write(settleRun(NAME, { slotKey: slotOfDay(1).slotKey, epoch: 1 }, "left"));
  const runs = [{ slotKey: slotOfDay(2).slotKey, epoch: 1 }];
  const listed = { runs, cursor: slotOfDay(3).slotKey, left: 0, token: "died", nowMs: env.now() };
  await env.table.write(handOut(series, listed));
  await watch(env.deps);
  expect(slots()).toEqual(["10-01"]);
  await env.moveBy(2 * MINUTE_MS);
  await watch(env.deps);
  expect(slots()).toContain("10-02");
});

test("one that was listed and not asked for when somebody stopped the backfill is not run", async () => {
  const { env, job, range, slots, view } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  env.fail("write", "down", onRun);
  await startBackfill(env.deps, range).catch(() => undefined);
  await stopSeriesByHand(env.deps, job, "backfill");
  await env.moveBy(2 * MINUTE_MS);
  await watch(env.deps);
  expect(slots()).toEqual([]);
  expect(await view()).toMatchObject({ state: "stopped", asked: 0, left: 1 });
});

test("a run that somebody retries while its series waits for it is theirs, and the series goes on", async () => {
  const { env, job, range, slots, view } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  await startBackfill(env.deps, range);
  await env.put(runKey(slotOfDay(1)), { st: "dead" });
  await retryRun(env.deps, { job, occurrence: slotOfDay(1) });
  expect(await env.run(slotOfDay(1))).not.toHaveProperty("series");
  await watch(env.deps);
  expect(slots().at(-1)).toBe("10-02");
  expect(await view()).toMatchObject({
    asked: 1,
    left: 1,
    outstanding: [{ runId: "daily~20261002T020000Z" }],
  });
});

test("a series that cannot be gone on with does not keep the watchdog from the others", async () => {
  const other = definition({ name: "other", schedules: ["0 3 * * *"], overlap: "allow" });
  const { env, range, slots } = make(daily({ overlap: "allow" }), [other]);
  await watch(env.deps);
  await startBackfill(env.deps, range);
  await startBackfill(env.deps, { ...range, job: other });
  await env.put(runKey(slotOfDay(1)), { st: "succeeded" });
  await env.put(runKey(at("other", "2026-10-01T03:00:00Z")), { st: "succeeded" });
  env.fail("get", "down", onSeries);
  await expect(watch(env.deps)).rejects.toThrow("get is down");
  expect(slots()).toEqual(["10-01", "10-01", "10-02"]);
});

test("an open backfill that nobody lists is listed again by whoever takes it up", async () => {
  const { env, range, registry } = make();
  await startBackfill(env.deps, range);
  await env.table.write({
    key: SERIES_KEY,
    changes: [
      { kind: "remove", path: "s#backfill#daily" },
      { kind: "set", path: "p#default", value: 0 },
    ],
  });
  await startBackfill(env.deps, range);
  expect(await registry()).toMatchObject({ "p#default": 1, "s#backfill#daily": { pool: "default" } });
});

test("a pass without backfills reads one item for them", async () => {
  const { env } = make();
  await watch(env.deps);
  env.calls.length = 0;
  await watch(env.deps);
  expect(env.calls.filter((call) => call.endsWith(" series"))).toEqual(["get series"]);
  expect(env.calls.some((call) => call.includes("B#"))).toBe(false);
});

test("the registry that refuses by our own write, whose answer was lost, is ours", async () => {
  const { env, range, series } = make();
  env.fail("write", "repeated", onRegistry);
  await startBackfill(env.deps, range);
  expect(await series()).toMatchObject({ state: "open", asked: 1 });
  expect(await env.table.get(seriesKey(NAME), { consistent: true })).toMatchObject({ held: 1 });
});
