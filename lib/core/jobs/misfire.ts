import type { Misfire } from "./job.ts";

export interface MissedSlots {
  /** Slots that nothing dispatched, ascending. */
  readonly slots: readonly number[];
  readonly misfire: Misfire;
  readonly startDeadlineMs: number;
  readonly nowMs: number;
  /** The slot after the given one; undefined = it was the last. */
  readonly next: (slotMs: number) => number | undefined;
}

/** May several slots of one outage run? Then all that are chosen do, and none of them stands in another's way. */
export const catchesUpSeveral = ({ policy, max }: Misfire): boolean => policy !== "skip" && max > 1;

/** Which of the missed slots to run now, ascending; the others are recorded as missed. */
export const slotsToCatchUp = ({ slots, misfire, startDeadlineMs, nowMs, next }: MissedSlots): number[] => {
  if (misfire.policy === "skip") return [];
  const worthRunning = slots.filter((slotMs) => {
    const lateMs = nowMs - slotMs;
    // One period: once the next slot has passed, it is the one to run.
    const withinMs = misfire.withinMs ?? (next(slotMs) ?? Number.POSITIVE_INFINITY) - slotMs;
    return lateMs <= withinMs && lateMs <= startDeadlineMs;
  });
  return worthRunning.slice(-misfire.max);
};
