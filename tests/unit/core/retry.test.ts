import fc from "fast-check";
import { expect, test } from "vitest";
import { DEFAULTS, type Retry } from "../../../lib/core/jobs/job.ts";
import { maxReceiveCount, waitBeforeRetryMs } from "../../../lib/core/jobs/retry.ts";

const MINUTE_MS = 60_000;
const waits = (retry: Retry, count: number, fraction = 0) =>
  Array.from({ length: count }, (_, index) => waitBeforeRetryMs(retry, index + 1, fraction));

test("waits double from a minute to a quarter of an hour", () => {
  expect(waits(DEFAULTS.retry, 6)).toEqual([1, 2, 4, 8, 15, 15].map((minutes) => minutes * MINUTE_MS));
});

test("a ladder names the waits, and its last step repeats", () => {
  const ladder = { ...DEFAULTS.retry, ladderMs: [1, 5, 15].map((minutes) => minutes * MINUTE_MS) };
  expect(waits(ladder, 5)).toEqual([1, 5, 15, 15, 15].map((minutes) => minutes * MINUTE_MS));
});

test("jitter takes off at most its part of a wait, and never adds", () => {
  const retry = { ...DEFAULTS.retry, jitter: 0.1 };
  expect(waits(retry, 1, 0)).toEqual([MINUTE_MS]);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 99 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failed, fraction) => {
        const full = waitBeforeRetryMs({ ...retry, jitter: 0 }, failed, 0);
        const wait = waitBeforeRetryMs(retry, failed, fraction);
        expect(wait).toBeLessThanOrEqual(full);
        expect(wait).toBeGreaterThanOrEqual(Math.floor(full * 0.9));
        expect(Number.isInteger(wait)).toBe(true);
      },
    ),
  );
});

test("no wait grows beyond its cap, however often an attempt failed", () => {
  expect(waitBeforeRetryMs({ ...DEFAULTS.retry, factor: 10 }, 100, 0)).toBe(15 * MINUTE_MS);
});

test("a queue lets a message come back often enough for its most patient job", () => {
  const retry = (retries: number, crashes: number) => ({ retry: { ...DEFAULTS.retry, retries, crashes } });
  expect(maxReceiveCount([])).toBe(10);
  expect(maxReceiveCount([retry(5, 3)])).toBe(28);
  expect(maxReceiveCount([retry(0, 0), retry(20, 3), retry(5, 5)])).toBe(58);
});
