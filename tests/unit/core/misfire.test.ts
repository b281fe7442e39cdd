import { expect, test } from "vitest";
import type { Misfire } from "../../../lib/core/jobs/job.ts";
import { slotsToCatchUp } from "../../../lib/core/jobs/misfire.ts";

const HOUR_MS = 3_600_000;
/** Hourly slots, missed from 0:00 to 5:00. */
const slots = [0, 1, 2, 3, 4, 5].map((hour) => hour * HOUR_MS);

const hoursRun = (
  misfire: Misfire,
  nowHour: number,
  startDeadlineMs = 24 * HOUR_MS,
  next = (slotMs: number): number | undefined => slotMs + HOUR_MS,
) =>
  slotsToCatchUp({ slots, misfire, startDeadlineMs, nowMs: nowHour * HOUR_MS, next }).map(
    (slotMs) => slotMs / HOUR_MS,
  );

test("policy skip runs nothing", () => {
  expect(hoursRun({ policy: "skip", max: 9 }, 5)).toEqual([]);
});

test("policy latest runs the newest, as long as its period lasts", () => {
  const latest = { policy: "latest", max: 1 } as const;
  expect(hoursRun(latest, 5.5)).toEqual([5]);
  expect(hoursRun(latest, 6)).toEqual([5]);
  expect(hoursRun(latest, 6.001)).toEqual([]);
});

test("the newest few run when more are asked for, oldest first", () => {
  const within = { withinMs: 10 * HOUR_MS };
  expect(hoursRun({ policy: "latest", max: 2, ...within }, 6)).toEqual([4, 5]);
  expect(hoursRun({ policy: "all", max: 3, ...within }, 6)).toEqual([3, 4, 5]);
  expect(hoursRun({ policy: "all", max: 99, ...within }, 6)).toEqual([0, 1, 2, 3, 4, 5]);
});

test("a slot is too old from the first millisecond after its time", () => {
  const all = { policy: "all", max: 99, withinMs: 2 * HOUR_MS } as const;
  expect(hoursRun(all, 5)).toEqual([3, 4, 5]);
  expect(hoursRun(all, 5 + 1 / HOUR_MS)).toEqual([4, 5]);
});

test("nothing runs after its start deadline", () => {
  expect(hoursRun({ policy: "all", max: 99, withinMs: 99 * HOUR_MS }, 5, HOUR_MS)).toEqual([4, 5]);
});

test("the last slot of a schedule may run late without end", () => {
  expect(hoursRun({ policy: "latest", max: 1 }, 23, 24 * HOUR_MS, () => undefined)).toEqual([5]);
});
