import type { Slots } from "../schedule/schedule.ts";
import { SECOND_MS } from "../time.ts";
import { DEFAULTS } from "./job.ts";
import { shortestGapMs } from "./shortest-gap.ts";

const { firstWaitMs, factor, maxWaitMs } = DEFAULTS.retry;

/**
 * The default waits, shortened evenly where all of them together would be longer than the shortest gap between
 * two slots: a job that fails is through with its retries when its next slot comes. Waits are whole seconds.
 */
export const fittedRetry = (
  retries: number,
  schedules: readonly Slots[],
): { readonly firstWaitMs: number; readonly maxWaitMs: number } => {
  const scale = Math.min(1, shortestGapMs(schedules) / totalWaitMs(retries));
  const shorten = (ms: number) => Math.max(SECOND_MS, Math.floor((ms * scale) / SECOND_MS) * SECOND_MS);
  return { firstWaitMs: shorten(firstWaitMs), maxWaitMs: shorten(maxWaitMs) };
};

const totalWaitMs = (retries: number): number => {
  let total = 0;
  for (let n = 0; n < retries; n++) total += Math.min(firstWaitMs * factor ** n, maxWaitMs);
  return total;
};
