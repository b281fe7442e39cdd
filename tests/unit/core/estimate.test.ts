import { expect, test } from "vitest";
import { ASSUMED_START_MS } from "../../../lib/core/costs/cold-starts.ts";
import { estimate } from "../../../lib/core/costs/estimate.ts";
import { PRICES } from "../../../lib/core/costs/prices.ts";
import {
  ASSUMED_CALL_MS,
  costOf,
  deliveriesMs,
  secondsUsd,
  storyCost,
  totalUsd,
} from "../../../lib/core/costs/run-cost.ts";
import { STORY_COUNTS } from "../../../lib/core/costs/story-counts.ts";
import { definition } from "../../support/definitions.ts";
import { manifestOf, NOW_MS } from "../infra/setup.ts";

const ONE_POOL = { default: { memoryMb: 256, concurrency: 10 } };
const hourly = definition({ name: "hourly", schedules: ["0 * * * *"], overlap: "allow" });
const of = (...jobs: Parameters<typeof manifestOf>[0]) =>
  estimate(manifestOf(jobs, { pools: ONE_POOL }), { nowMs: NOW_MS });

test("a job costs its slots of 30 days, at the counted price of a run", () => {
  const [job] = of(hourly).jobs;
  expect(job).toMatchObject({ runs: 720, events: 720, deliveries: 720 });
  const compute = { memoryMb: 256 };
  const run =
    totalUsd(storyCost("succeeded", compute)) + totalUsd(storyCost("watched, for each slot", compute));
  expect(job?.usdPerMillionRuns).toBeCloseTo(run * 1e6, 6);
  expect(job?.usdPerMonth).toBeCloseTo(run * 720, 9);
});

test("a lock costs one write more, by the table's price, and the time of its call", () => {
  const [locked] = of({ ...hourly, overlap: "skip" }).jobs;
  const [allowed] = of(hourly).jobs;
  const dearer = (locked?.usdPerMillionRuns ?? 0) - (allowed?.usdPerMillionRuns ?? 0);
  const write = PRICES.writeUnits + secondsUsd(ASSUMED_CALL_MS, 256) * 1e6;
  expect(dearer).toBeGreaterThan(write - 0.01);
  expect(dearer).toBeLessThan(write + 0.01);
});

test("what fires elsewhere costs nothing here, and what runs by hand nothing of itself", () => {
  const elsewhere = { ...hourly, stages: ["dev"] };
  const manifest = manifestOf([elsewhere, definition({ name: "by-hand" })], { pools: ONE_POOL });
  const { jobs, runsUsdPerMonth } = estimate(manifest, { nowMs: NOW_MS, stage: "prod" });
  expect(jobs.map(({ runs }) => runs)).toEqual([0, 0]);
  expect(runsUsdPerMonth).toBe(0);
});

test("a monitor runs elsewhere: it has no run here, and no schedule to share", () => {
  const monitor = { ...hourly, name: "backup", subject: "backup", monitor: { endWithinMs: 60_000 } };
  const { fixed, jobs, savings } = of(hourly, monitor);
  // A secret, and an alarm on two metrics.
  expect(fixed.pingsUsd).toBeCloseTo(PRICES.secret + 2 * PRICES.alarmMetric, 9);
  expect(fixed.usdPerMonth - of(hourly).fixed.usdPerMonth).toBeCloseTo(fixed.pingsUsd, 9);
  expect(jobs.find(({ job }) => job === "backup")).toMatchObject({ runs: 0, events: 0 });
  expect(savings.filter(({ kind }) => kind === "schedule")).toEqual([]);
});

test("each shard costs its own deliveries and writes", () => {
  const [split] = of({ ...hourly, shards: { count: 100, joins: false } }).jobs;
  const [whole] = of(hourly).jobs;
  expect(split).toMatchObject({ shards: 100, deliveries: 720 * 101 });
  const shard = totalUsd(storyCost("each of 64 shards", { memoryMb: 256 })) * 1e6;
  expect((split?.usdPerMillionRuns ?? 0) - (whole?.usdPerMillionRuns ?? 0)).toBeCloseTo(100 * shard, 6);
});

test("a schedule that ticks finer than its slots costs the events that name none", () => {
  const [job] = of(definition({ name: "odd", schedules: ["rate(7 minutes)"], overlap: "allow" })).jobs;
  const [runs, events] = [6_171, 43_200];
  expect(job).toMatchObject({ runs, events });
  const event = { ...STORY_COUNTS["delivered twice"], writes: 0, writeUnits: 0, logBytes: 0 };
  const strays = (events - runs) * totalUsd(costOf(event, { memoryMb: 256 }));
  expect((job?.usdPerMonth ?? 0) - (runs * (job?.usdPerMillionRuns ?? 0)) / 1e6).toBeCloseTo(strays, 9);
});

test("the handler's own time is paid by the pool's memory", () => {
  const manifest = manifestOf([hourly], { pools: ONE_POOL });
  const [short] = estimate(manifest, { nowMs: NOW_MS }).jobs;
  const [long] = estimate(manifest, { nowMs: NOW_MS, handlerMs: 4_000 }).jobs;
  const gbSecond = PRICES.functionGbSecond * 1e6;
  expect((long?.usdPerMillionRuns ?? 0) - (short?.usdPerMillionRuns ?? 0)).toBeCloseTo(gbSecond, 6);
});

test("the fixed part grows with pools, not with jobs", () => {
  const few = of(hourly).fixed;
  const many = of(...Array.from({ length: 50 }, (_, n) => ({ ...hourly, name: `h${n}`, subject: `h${n}` })));
  expect(many.fixed).toEqual(few);
  expect(estimate(manifestOf([hourly]), { nowMs: NOW_MS }).fixed.usdPerMonth).toBeGreaterThan(
    few.usdPerMonth,
  );
});

test("who strikes seldom finds its functions cold, and pays for their start", () => {
  const daily = definition({ name: "daily", schedules: ["0 9 * * *"], overlap: "allow" });
  const { coldStarts, ...seldom } = of(daily);
  expect(coldStarts).toMatchObject({ dispatcher: 30, workers: 30 });
  expect(coldStarts.usdPerMonth).toBeCloseTo(60 * secondsUsd(ASSUMED_START_MS, 256), 12);
  expect(seldom.usdPerMonth).toBeCloseTo(
    seldom.runsUsdPerMonth + coldStarts.usdPerMonth + seldom.fixed.usdPerMonth,
    9,
  );
});

test("who strikes often finds its functions warm, and keeps them so for others", () => {
  const often = definition({ name: "often", schedules: ["*/5 * * * *"], overlap: "allow" });
  const between = definition({ name: "between", schedules: ["2 * * * *"], overlap: "allow" });
  expect(of(often, between).coldStarts).toMatchObject({ dispatcher: 1, workers: 1 });
  // Both at the same minute: the second one's has not been in use for an hour.
  expect(of(often, hourly).coldStarts).toMatchObject({ dispatcher: 1 + 720, workers: 1 + 720 });
});

test("who strikes together starts several at once, of workers as many as the pool allows", () => {
  const together = Array.from({ length: 12 }, (_, n) => ({ ...hourly, name: `h${n}`, subject: `h${n}` }));
  expect(of(...together).coldStarts).toMatchObject({ dispatcher: 720 * 12, workers: 720 * 10 });
});

test("with less memory our own part takes longer, so half of it saves less than half", () => {
  const { savings } = of(hourly);
  const memory = savings.find(({ kind }) => kind === "memory")?.usdPerMonth ?? 0;
  const all = 720 * secondsUsd(deliveriesMs(STORY_COUNTS.succeeded, 256), 256);
  expect(memory).toBeGreaterThan(0);
  expect(memory).toBeLessThan(all / 2);
});

test("what would be cheaper is told with its figure: a pool less, one schedule for two jobs, batches, less memory", () => {
  const twin = { ...hourly, name: "twin", subject: "twin" };
  const { fixed, savings } = estimate(manifestOf([hourly, twin]), { nowMs: NOW_MS });
  const saved = (kind: string) => savings.find((each) => each.kind === kind);
  expect(saved("pool")?.of).toEqual(["slow"]);
  expect(saved("pool")?.usdPerMonth).toBeCloseTo(fixed.usdPerMonth - of(hourly, twin).fixed.usdPerMonth, 9);
  const event = { ...STORY_COUNTS["delivered twice"], writes: 0, writeUnits: 0, logBytes: 0 };
  expect(saved("schedule")).toMatchObject({ of: ["hourly", "twin"] });
  expect(saved("schedule")?.usdPerMonth).toBeCloseTo(720 * totalUsd(costOf(event, { memoryMb: 256 })), 9);
  expect(saved("batch")?.of).toEqual(["default"]);
  expect(saved("memory")?.of).toEqual(["default"]);
  const figures = savings.map(({ usdPerMonth }) => usdPerMonth);
  expect(figures).toEqual(figures.toSorted((left, right) => right - left));
  expect(Math.min(...figures)).toBeGreaterThan(0);
});
