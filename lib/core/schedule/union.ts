import { InvalidInput } from "../errors.ts";
import { DAY_MS, MINUTE_MS } from "../time.ts";
import { type AwsForm, joinForms } from "./aws-form.ts";
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

/** 2024-01-01T00:00Z: a leap year begins. */
const LEAP_YEAR_MS = 1_704_067_200_000;
const MOST_SLOTS_SEEN = 100_000;

/**
 * The smallest distance between slots in the two years from the first one since 2024; several schedules have no
 * shorter way to tell.
 */
const smallestSeen = ({ slots, next }: Slots): number | undefined => {
  const fromMs = next(LEAP_YEAR_MS - 1) ?? LEAP_YEAR_MS;
  let previous: number | undefined;
  let smallest: number | undefined;
  let seen = 0;
  for (const slot of slots(fromMs, fromMs + 2 * 366 * DAY_MS)) {
    if (previous !== undefined) smallest = Math.min(smallest ?? Number.POSITIVE_INFINITY, slot - previous);
    previous = slot;
    seen += 1;
    if (seen === MOST_SLOTS_SEEN || smallest === MINUTE_MS) break;
  }
  return smallest;
};

/** Each once; that one of several schedules is over is no news while another goes on. */
const joinWarnings = (schedules: readonly Schedule[], { next }: Slots, aroundMs: number) => {
  const isOver = next(aroundMs) === undefined;
  const warnings = schedules.flatMap((schedule) => schedule.warnings(aroundMs));
  return distinct(warnings.filter(({ code }) => isOver || code !== "never-again"));
};

const distinct = (warnings: readonly ScheduleWarning[]): readonly ScheduleWarning[] => [
  ...new Map(warnings.map((warning) => [`${warning.code} ${warning.message}`, warning])).values(),
];

/** @throws InvalidInput when there is no schedule. */
export const unionOf = (schedules: readonly Schedule[]): UnionSchedule => {
  const [first, ...rest] = schedules;
  if (first === undefined) {
    throw new InvalidInput("invalid_schedule", "a list of schedules is empty", { field: "schedule" });
  }
  const slots = slotsFrom((fromMs) => earliest(schedules.map((schedule) => schedule.next(fromMs - 1))));
  return {
    schedules,
    ...slots,
    describe: (language) => schedules.map((schedule) => schedule.describe(language)).join("; "),
    get smallestGapMs() {
      return rest.length === 0 ? first.smallestGapMs : smallestSeen(slots);
    },
    warnings: (aroundMs) => joinWarnings(schedules, slots, aroundMs),
    get aws() {
      return joinForms(schedules.map((schedule) => schedule.aws));
    },
  };
};
