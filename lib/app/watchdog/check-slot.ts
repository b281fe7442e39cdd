import { InvalidInput } from "../../core/errors.ts";
import { OLDEST_DELIVERY_MS } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { Slots } from "../../core/schedule/schedule.ts";
import { shortIsoOf } from "../../core/time.ts";

const hintOf = (slots: readonly (number | undefined)[]): string => {
  const known = slots.filter((slotMs) => slotMs !== undefined);
  if (known.length === 0) return "the schedule names no slot that has passed";
  return `nearest slots: ${known.map(shortIsoOf).join(", ")}`;
};

/** The last two slots up to now, newest first. */
const lastSlots = (schedule: Slots, nowMs: number): readonly (number | undefined)[] => {
  const newest = schedule.previous(nowMs + 1);
  return [newest, newest === undefined ? undefined : schedule.previous(newest)];
};

/**
 * Why a person may not run the job as the occurrence at this slot; undefined = they may. Only a slot that the schedule
 * names and that has passed will do, or the same occurrence could later be expected, or run, a second time. The hint
 * has the nearest slots.
 */
export const slotRefusal = (
  { name }: Pick<JobDefinition, "name">,
  schedule: Slots | undefined,
  { slotMs, nowMs }: { readonly slotMs: number; readonly nowMs: number },
): InvalidInput | undefined => {
  const refuse = (code: string, message: string, hint: string): InvalidInput =>
    new InvalidInput(code, message, { field: "slot", hint });
  const slot = shortIsoOf(slotMs);
  if (schedule === undefined)
    return refuse(
      "no_schedule",
      `${name} has no schedule, so it has no slot ${slot}`,
      "run it without --slot",
    );
  if (slotMs > nowMs)
    return refuse("slot_in_future", `slot ${slot} has not come yet`, hintOf(lastSlots(schedule, nowMs)));
  if (!schedule.has(slotMs)) {
    const after = schedule.next(slotMs);
    const nearest = [schedule.previous(slotMs), after !== undefined && after <= nowMs ? after : undefined];
    return refuse("slot_off_schedule", `${name} has no slot ${slot}`, hintOf(nearest));
  }
  if (slotMs < nowMs - OLDEST_DELIVERY_MS)
    return refuse(
      "slot_too_old",
      `slot ${slot} is more than 30 days old: whether it ran can no longer be told`,
      "run it without --slot",
    );
  return undefined;
};
