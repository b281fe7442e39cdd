import { MINUTE_MS, SECOND_MS } from "./time.ts";

/** How long things take in a deployment; the embedded stack uses shorter ones than AWS. */
export interface Timings {
  /**
   * A short lease notices a dead worker early and costs more renewals: at 60 s a renewal each 30 s is about 1 % of
   * the price of those 30 s.
   */
  readonly leaseMs: number;
  /** By how much the clocks of two processes may differ. */
  readonly clockBoundMs: number;
  /** The watchdog looks at an occurrence first so long after its slot, or its claim by hand. */
  readonly firstLookMs: number;
  /** A channel that is away is asked that often at the latest: about once in each period of the alarm that says so. */
  readonly longestAlertWaitMs: number;
}

export const AWS_TIMINGS: Timings = {
  leaseMs: 60 * SECOND_MS,
  clockBoundMs: 30 * SECOND_MS,
  firstLookMs: 2 * MINUTE_MS,
  longestAlertWaitMs: 5 * MINUTE_MS,
};

/** Processes of one machine share a clock, and its owner does not like to wait. */
export const EMBEDDED_TIMINGS: Timings = {
  leaseMs: 10 * SECOND_MS,
  clockBoundMs: SECOND_MS,
  firstLookMs: 15 * SECOND_MS,
  longestAlertWaitMs: 50 * SECOND_MS,
};

/** The handler of a lease that was not renewed is stopped so long before its end. */
export const stopMarginMs = ({ leaseMs }: Timings): number => Math.min(5 * SECOND_MS, leaseMs / 4);

/** What a minute is to the alarms of the embedded stack, where everything else is faster too. */
export const EMBEDDED_ALARM_MINUTE_MS = 10 * SECOND_MS;
