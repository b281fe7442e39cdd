import type { Slots } from "../schedule/schedule.ts";
import { DAY_MS, SECOND_MS } from "../time.ts";
import { DEFAULTS } from "./job.ts";

const { firstWaitMs, factor, maxWaitMs } = DEFAULTS.retry;

/** How many slots, and how far, are looked at for the shortest gap between two of them. */
const SLOTS_READ = 200;
const READ_MS = 400 * DAY_MS;
/** Any fixed Monday will do; a fixed one, so that two builds give one definition. */
const READ_FROM_MS = 1_767_571_200_000;

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

/** Infinity where there are no two slots. */
const shortestGapMs = (schedules: readonly Slots[]): number => {
  const read = schedules.flatMap((schedule) => firstSlots(schedule));
  const slots = [...new Set(read)].sort((a, b) => a - b);
  return slots.reduce(
    (least, slot, i) => Math.min(least, slot - (slots[i - 1] ?? Number.NEGATIVE_INFINITY)),
    Infinity,
  );
};

const firstSlots = (schedule: Slots): readonly number[] => {
  const from = schedule.next(READ_FROM_MS - 1) ?? 0;
  const slots: number[] = [];
  for (const slot of schedule.slots(from, from + READ_MS)) if (slots.push(slot) >= SLOTS_READ) break;
  return slots;
};
