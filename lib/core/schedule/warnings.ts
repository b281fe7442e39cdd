import { DAY_MS, MINUTE_MS } from "../time.ts";
import { wallText } from "./calendar.ts";
import { finderOf, nextWall, type Pattern } from "./pattern.ts";
import { daysIn } from "./pattern-text.ts";
import type { Rule } from "./rule.ts";
import type { Slots } from "./slot-source.ts";
import type { DstPolicy } from "./slots.ts";
import type { Transition, Zone } from "./zone.ts";

export interface ScheduleWarning {
  /** Stable, for programs: `short-months`, `dst-gap`, ... docs/schedules.md lists them. */
  readonly code: string;
  readonly message: string;
}

export interface Judged {
  readonly rule: Rule;
  readonly zone: Zone;
  readonly dst: DstPolicy;
  /** Its slots, and the smallest distance between them. */
  readonly schedule: Slots & { readonly smallestGapMs: number | undefined };
  /** Was a zone named? */
  readonly hasTimezone: boolean;
  readonly minimumGapMs: number | undefined;
  readonly anchorMs: number;
}

/** Clock changes are told this far ahead. */
const AHEAD_MS = 2 * 366 * DAY_MS;

const LONGEST_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** Days from the 29th on that some month of the pattern lacks; not where they end a run of days, as in 25-31. */
const lackingDays = ({ monthDays, months, steps }: Pattern): readonly number[] => {
  if (steps.some(({ field }) => field === "day-of-month")) return [];
  const days = daysIn(monthDays.days, 31, 1);
  const late = [
    ...days.filter((day) => !(days.includes(day - 1) && days.includes(28))),
    ...monthDays.nearest,
  ];
  return late.filter((day) => day > 28 && months.some((month) => (LONGEST_MONTHS[month - 1] ?? 31) < day));
};

const isLeapDay = ({ monthDays, months }: Pattern): boolean =>
  months.join() === "2" && daysIn(monthDays.days, 31, 1).includes(29);

const dayWarnings = (pattern: Pattern): readonly ScheduleWarning[] => {
  const lacking = lackingDays(pattern);
  const fifth = pattern.weekDays.nth.find(({ nth }) => nth === 5);
  return [
    ...(lacking.length === 0
      ? []
      : [
          {
            code: "short-months",
            message: `day ${lacking.join(", ")} is missing in short months, which are skipped; for month-end work use L (the last day) or the 1st of the next month`,
          },
        ]),
    ...(isLeapDay(pattern) ? [{ code: "leap-day", message: "29 February comes in leap years only" }] : []),
    ...(fifth === undefined
      ? []
      : [
          {
            code: "short-months",
            message: `months without a fifth ${WEEKDAYS[fifth.weekday]} are skipped; ${fifth.weekday}L is the last one`,
          },
        ]),
  ];
};

const WHOLES = {
  minute: [60, "hour"],
  hour: [24, "day"],
  "day-of-month": [Number.NaN, "month"],
  month: [12, "year"],
} as const;

const stepWarnings = ({ steps }: Pattern): readonly ScheduleWarning[] =>
  steps.flatMap(({ field, step }) => {
    const [whole, name] = WHOLES[field];
    if (step === 1 || whole % step === 0) return [];
    return [
      {
        code: "uneven-step",
        message: `${field} step ${step} does not divide the ${name}: it starts again in each ${name}, so the last distance differs`,
      },
    ];
  });

const isFixed = (rule: Rule): boolean =>
  rule.kind === "once" || (rule.kind === "cron" && rule.pattern.hours.length < 24);

const frequencyWarnings = ({ schedule, minimumGapMs }: Judged): readonly ScheduleWarning[] => {
  if (minimumGapMs === undefined) return [];
  const gapMs = schedule.smallestGapMs ?? minimumGapMs;
  if (gapMs >= minimumGapMs) return [];
  return [
    {
      code: "too-frequent",
      message: `two slots are ${gapMs / MINUTE_MS} minutes apart, less than the minimum of ${minimumGapMs / MINUTE_MS}`,
    },
  ];
};

const habitWarnings = ({ rule, hasTimezone }: Judged): readonly ScheduleWarning[] => [
  ...(isFixed(rule) && !hasTimezone
    ? [
        {
          code: "no-timezone",
          message: "a fixed hour without a time zone is read in UTC; name the zone, even if it is UTC",
        },
      ]
    : []),
  ...(rule.kind === "cron" && rule.pattern.minutes.join() === "0"
    ? [
        {
          code: "minute-zero",
          message: "it fires at minute 0, as most jobs do; another minute meets less load",
        },
      ]
    : []),
];

const OUTCOMES = {
  gap: { skip: "those slots are skipped", "run-after": "one slot follows at the first instant after it" },
  repeat: {
    first: "it runs at the first pass",
    last: "it runs at the last pass",
    both: "it runs at both passes",
  },
};

const changeWarning = (
  change: Transition,
  pattern: Pattern,
  { zone, dst }: Pick<Judged, "zone" | "dst">,
): ScheduleWarning | undefined => {
  const { atMs, beforeMs, afterMs } = change;
  const from = atMs + Math.min(beforeMs, afterMs);
  const until = atMs + Math.max(beforeMs, afterMs);
  const wall = nextWall(finderOf(pattern), from);
  if (wall === undefined || wall >= until) return undefined;
  const stretch = `${wallText(from)} to ${wallText(until).slice(11)}`;
  if (afterMs > beforeMs) {
    const what = pattern.isIntervalLike ? OUTCOMES.gap.skip : OUTCOMES.gap[dst.gap];
    return {
      code: "dst-gap",
      message: `${wallText(wall)} does not exist in ${zone.name} (${stretch}): ${what}`,
    };
  }
  const what = pattern.isIntervalLike ? OUTCOMES.repeat.both : OUTCOMES.repeat[dst.repeat];
  return {
    code: "dst-repeat",
    message: `${wallText(wall)} comes twice in ${zone.name} (${stretch}): ${what}`,
  };
};

/**
 * Clock changes in [fromMs, untilMs). A cron of every hour loses and repeats nothing that elapsed time does not; it is
 * not warned about.
 */
export const changeWarnings = (
  judged: Pick<Judged, "rule" | "zone" | "dst">,
  fromMs: number,
  untilMs: number,
): readonly ScheduleWarning[] => {
  const { rule, zone } = judged;
  if (rule.kind !== "cron" || (rule.pattern.isIntervalLike && rule.pattern.hours.length === 24)) return [];
  return zone
    .transitionsIn(fromMs, untilMs)
    .flatMap((change) => changeWarning(change, rule.pattern, judged) ?? []);
};

const endWarnings = ({ schedule, rule, anchorMs }: Judged, aroundMs: number): readonly ScheduleWarning[] => [
  ...(schedule.next(aroundMs) === undefined
    ? [{ code: "never-again", message: `no slot comes after ${wallText(aroundMs)} UTC` }]
    : []),
  ...(rule.kind === "interval" && anchorMs % MINUTE_MS !== 0
    ? [
        {
          code: "off-minute",
          message: "its start is not on a whole minute, where AWS fires: the watchdog dispatches it",
        },
      ]
    : []),
];

/** In a fixed order: what the expression says, how it is written, clock changes by date, its end. */
export const warningsOf = (judged: Judged, aroundMs: number): readonly ScheduleWarning[] => {
  const { rule } = judged;
  const said = rule.kind === "cron" ? [...dayWarnings(rule.pattern), ...stepWarnings(rule.pattern)] : [];
  return [
    ...said,
    ...habitWarnings(judged),
    ...frequencyWarnings(judged),
    ...changeWarnings(judged, aroundMs, aroundMs + AHEAD_MS),
    ...endWarnings(judged, aroundMs),
  ];
};
