import { MINUTE_MS } from "../time.ts";
import type { AwsForm } from "./aws-form.ts";
import { weekdayOf } from "./calendar.ts";
import type { Pattern } from "./pattern.ts";
import { awsCronText } from "./pattern-text.ts";

const MINUTES_PER_DAY = 1_440;
const MINUTES_PER_WEEK = 7 * MINUTES_PER_DAY;

/** More schedules than this for one interval cost more of the stack's 500 resources than extra ticks cost money. */
const MOST_EXPRESSIONS = 4;

const EVERY_MINUTE: Pattern = {
  minutes: Array.from({ length: 60 }, (_, minute) => minute),
  hours: Array.from({ length: 24 }, (_, hour) => hour),
  months: Array.from({ length: 12 }, (_, month) => month + 1),
  monthDays: { isAny: true, days: 0, fromLast: [], nearest: [], lastWorkday: false },
  weekDays: { isAny: true, days: 0, last: [], nth: [] },
  years: [],
  dayRule: "both",
  isIntervalLike: true,
  steps: [],
};

const greatestCommonDivisor = (a: number, b: number): number =>
  b === 0 ? a : greatestCommonDivisor(b, a % b);

/** The crons whose times of day are every `tick` minutes (a divisor of the day), with `offset` among them. */
const dailyPatterns = (tick: number, offset: number): readonly Pattern[] => {
  const minutesByHours = new Map<string, number[]>();
  const hoursOfMinute = new Map<number, number[]>();
  for (let time = offset % tick; time < MINUTES_PER_DAY; time += tick) {
    const minute = time % 60;
    hoursOfMinute.set(minute, [...(hoursOfMinute.get(minute) ?? []), Math.floor(time / 60)]);
  }
  for (const [minute, hours] of hoursOfMinute) {
    const key = hours.join();
    minutesByHours.set(key, [...(minutesByHours.get(key) ?? []), minute]);
  }
  return [...minutesByHours].map(([hours, minutes]) => ({
    ...EVERY_MINUTE,
    minutes: minutes.sort((a, b) => a - b),
    hours: hours.split(",").map(Number),
  }));
};

interface Ticks {
  readonly patterns: readonly Pattern[];
  readonly everyMinutes: number;
}

const ticksOf = (period: number, anchor: number): Ticks => {
  const offset = ((anchor % MINUTES_PER_DAY) + MINUTES_PER_DAY) % MINUTES_PER_DAY;
  if (period % MINUTES_PER_WEEK === 0) {
    const days = 1 << weekdayOf(Math.floor(anchor / MINUTES_PER_DAY));
    const weekDays = { ...EVERY_MINUTE.weekDays, isAny: false, days };
    const patterns = dailyPatterns(MINUTES_PER_DAY, offset).map((pattern) => ({ ...pattern, weekDays }));
    return { patterns, everyMinutes: MINUTES_PER_WEEK };
  }
  const tick = greatestCommonDivisor(period, MINUTES_PER_DAY);
  const patterns = dailyPatterns(tick, offset);
  if (patterns.length <= MOST_EXPRESSIONS) return { patterns, everyMinutes: tick };
  const finer = greatestCommonDivisor(tick, 60);
  return { patterns: dailyPatterns(finer, offset), everyMinutes: finer };
};

/**
 * AWS's `rate` starts where a start date says, and no start date in the past is accepted; so an interval becomes
 * a cron in UTC at its anchor: of its own period where that divides the day (or is a week), else a finer tick.
 */
export const awsIntervalForm = (everyMs: number, anchorMs: number): AwsForm => {
  if (anchorMs % MINUTE_MS !== 0) {
    return {
      kind: "watchdog-completed",
      expressions: [],
      why: "AWS fires on whole minutes, and the slots are between them",
    };
  }
  const { patterns, everyMinutes } = ticksOf(everyMs / MINUTE_MS, anchorMs / MINUTE_MS);
  const isExact = everyMinutes * MINUTE_MS === everyMs;
  return {
    kind: isExact ? "exact" : "superset",
    expressions: patterns.map((pattern) => ({ expression: awsCronText(pattern), timezone: "UTC" })),
    why: isExact ? undefined : "no cron has this period: a finer tick, of which some are dropped",
  };
};
