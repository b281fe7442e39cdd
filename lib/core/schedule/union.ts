import { InvalidInput } from "../errors.ts";
import type { AwsForm } from "./aws-form.ts";
import type { Language, Schedule, ScheduleWarning } from "./schedule.ts";
import { type Slots, slotsFrom } from "./slot-source.ts";

/** Several schedules of one job: where their slots coincide there is one slot. */
export interface UnionSchedule extends Slots {
  readonly schedules: readonly Schedule[];
  describe(language?: Language): string;
  readonly smallestGapMs: number | undefined;
  warnings(aroundMs: number): readonly ScheduleWarning[];
  readonly aws: AwsForm;
}

const earliest = (slots: readonly (number | undefined)[]): number | undefined =>
  slots.reduce((first, slot) => (first === undefined || (slot !== undefined && slot < first) ? slot : first));

/** @throws InvalidInput when there is no schedule. */
export const unionOf = (schedules: readonly Schedule[]): UnionSchedule => {
  const [first] = schedules;
  if (first === undefined) {
    throw new InvalidInput("invalid_schedule", "a list of schedules is empty", { field: "schedule" });
  }
  const slots = slotsFrom((fromMs) => earliest(schedules.map((schedule) => schedule.next(fromMs - 1))));
  return {
    schedules,
    ...slots,
    describe: (language) => schedules.map((schedule) => schedule.describe(language)).join("; "),
    smallestGapMs: first.smallestGapMs,
    warnings: (aroundMs) => schedules.flatMap((schedule) => schedule.warnings(aroundMs)),
    aws: first.aws,
  };
};
