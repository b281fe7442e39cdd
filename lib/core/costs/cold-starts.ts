import { MINUTE_MS } from "../time.ts";
import { FUNCTION_MEMORY_MB, secondsUsd } from "./run-cost.ts";

/**
 * How long a function takes to start, which is billed as it runs. People measure 375 ms for Node and three clients of the SDK.
 * @see https://aws.amazon.com/blogs/compute/aws-lambda-standardizes-billing-for-init-phase/
 */
export const ASSUMED_START_MS = 400;

/** How long Lambda keeps a function that nobody calls. AWS promises none. */
export const ASSUMED_WARM_MS = 10 * MINUTE_MS;

/** What a function is called for: instants, each as often as it is called at once. */
export type Strikes = Map<number, number>;

export const strike = (strikes: Strikes, atMs: number, times = 1): void => {
  strikes.set(atMs, (strikes.get(atMs) ?? 0) + times);
};

/**
 * How often the function starts. Each call of an instant needs one of its own, and takes one that was in use of late.
 * @param most so many run at once
 */
export const startsOf = (strikes: Strikes, most = Number.POSITIVE_INFINITY): number => {
  let starts = 0;
  /** When each was last in use, latest first. */
  let warm: readonly number[] = [];
  for (const [atMs, calls] of [...strikes].sort(([left], [right]) => left - right)) {
    const wanted = Math.min(calls, most);
    const ready = warm.filter((usedMs) => atMs - usedMs <= ASSUMED_WARM_MS);
    starts += Math.max(0, wanted - ready.length);
    warm = [...Array.from({ length: wanted }, () => atMs), ...ready.slice(wanted)];
  }
  return starts;
};

export const startUsd = (memoryMb = FUNCTION_MEMORY_MB): number => secondsUsd(ASSUMED_START_MS, memoryMb);
