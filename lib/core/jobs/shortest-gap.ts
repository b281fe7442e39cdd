import type { Slots } from "../schedule/schedule.ts";
import { DAY_MS } from "../time.ts";

/** How many slots, and how far, are looked at for the shortest gap between two of them. */
const SLOTS_READ = 200;
const READ_MS = 400 * DAY_MS;
/** Any fixed Monday will do; a fixed one, so that two builds give one definition. */
const READ_FROM_MS = 1_767_571_200_000;

/** Between two slots of the union of the schedules, as far as they are looked at; Infinity where there are no two. */
export const shortestGapMs = (schedules: readonly Slots[]): number => {
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
