import type { Retry } from "./job.ts";

/**
 * The wait before the next attempt, in whole milliseconds.
 * @param failed attempts that have failed so far, at least 1
 * @param fraction uniform in [0, 1): how much of the jitter to take off
 */
export const waitBeforeRetryMs = (retry: Retry, failed: number, fraction: number): number => {
  const { ladderMs, firstWaitMs, factor, maxWaitMs, jitter } = retry;
  const step = ladderMs?.[Math.min(failed, ladderMs.length) - 1];
  const full = step ?? Math.min(maxWaitMs, firstWaitMs * factor ** (failed - 1));
  return Math.round(full * (1 - jitter * fraction));
};

/** For the jobs of a pool: how often a message may come back before its queue takes it for dead. */
export const maxReceiveCount = (jobs: readonly { readonly retry: Retry }[]): number =>
  10 + 2 * Math.max(0, ...jobs.map(({ retry }) => retry.retries + 1 + retry.crashes));
