import { expect, test } from "vitest";
import { playZone } from "./play.ts";

/** Two weeks before the clocks of New York go forward. */
const BEFORE_CHANGE_MS = Date.parse("2027-03-01T12:00:00Z");
const WANTED = { zone: "America/New_York", seed: 3, days: 28, fromMs: BEFORE_CHANGE_MS } as const;

test("four weeks with a clock change tell nothing of jobs that are well", async () => {
  const { alerts, passes } = await playZone({ ...WANTED, silent: false });
  expect(alerts).toEqual([]);
  expect(passes).toBeGreaterThan(8_000);
}, 120_000);

test("each silence of four weeks with a clock change is told once, in time, with one recovery", async () => {
  const { wrong, told, inPause, madeGood, longestMs } = await playZone(WANTED);
  expect(wrong).toEqual([]);
  expect(told).toBeGreaterThan(30);
  expect(inPause).toBeGreaterThan(0);
  expect(madeGood).toBeGreaterThan(0);
  expect(longestMs).toBeGreaterThan(0);
}, 120_000);

test("passes that find nothing due may be left out: all of them made tell the same", async () => {
  const few = { ...WANTED, days: 9, jobs: ["daily", "daily-not-caught-up", "weekdays"] };
  const [some, all] = [await playZone(few), await playZone({ ...few, everyPass: true })];
  const told = ({ alerts }: typeof some) => alerts.map(({ id, kind, reason }) => ({ id, kind, reason }));
  expect(told(some).length).toBeGreaterThan(8);
  expect(told(all)).toEqual(told(some));
  expect(all.passes).toBeGreaterThan(20 * some.passes);
}, 120_000);
