import { DAY_MS, MINUTE_MS } from "../time.ts";
import { type CalendarDate, dateOf, dayNumberOf, daysInMonth, weekdayOf } from "./calendar.ts";

/** Schedules name slots in these local years, as EventBridge Scheduler does. */
export const FIRST_YEAR = 1970;
export const LAST_YEAR = 2199;

/** Days of a month. `isAny`: nothing is restricted (`*`, `?`, `1-31/1` written as a star). */
export interface MonthDays {
  readonly isAny: boolean;
  /** Bit d - 1 = day d. */
  readonly days: number;
  /** `L` = 0, `L-3` = 3: days before the last day of the month. */
  readonly fromLast: readonly number[];
  /** `15W`: the weekday (Monday to Friday) nearest to the 15th, within the month; months without the day pass. */
  readonly nearest: readonly number[];
  /** `LW`: the last weekday (Monday to Friday) of the month. */
  readonly lastWorkday: boolean;
}

/** Days of a week, 0 = Sunday. */
export interface WeekDays {
  readonly isAny: boolean;
  /** Bit w = weekday w. */
  readonly days: number;
  /** `5L`: the last Friday of the month. */
  readonly last: readonly number[];
  /** `1#2`: the second Monday of the month. */
  readonly nth: readonly { readonly weekday: number; readonly nth: number }[];
}

/** What a cron expression says, without its dialect: fields are sorted, weekdays count from 0 = Sunday. */
export interface Pattern {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly months: readonly number[];
  readonly monthDays: MonthDays;
  readonly weekDays: WeekDays;
  /** Empty = every year. */
  readonly years: readonly number[];
  /** `both` day fields must match, or `either` (crontab(5), where neither starts with `*`). */
  readonly dayRule: "both" | "either";
  /** The minute or hour field starts with `*`: follows elapsed time through both passes of a repeated hour. */
  readonly isIntervalLike: boolean;
  /** Fields that are a step to their end (`5/20`), for the warning that a step does not come out even. */
  readonly steps: readonly Step[];
}

export interface Step {
  readonly field: "minute" | "hour" | "day-of-month" | "month";
  readonly step: number;
}

const bitOf = (day: number): number => 1 << (day - 1);

const nearestWorkday = (day: number, firstWeekday: number, length: number): number => {
  const weekday = (firstWeekday + day - 1) % 7;
  if (weekday === 6) return day === 1 ? 3 : day - 1;
  if (weekday === 0) return day === length ? day - 2 : day + 1;
  return day;
};

const monthDayBits = (spec: MonthDays, firstWeekday: number, length: number): number => {
  let bits = spec.days;
  for (const back of spec.fromLast) if (back < length) bits |= bitOf(length - back);
  for (const day of spec.nearest) {
    if (day <= length) bits |= bitOf(nearestWorkday(day, firstWeekday, length));
  }
  if (spec.lastWorkday) bits |= bitOf(nearestWorkday(length, firstWeekday, length));
  return bits;
};

const firstOf = (weekday: number, firstWeekday: number): number => ((weekday - firstWeekday + 7) % 7) + 1;

const weekDayBits = (spec: WeekDays, firstWeekday: number, length: number): number => {
  let bits = 0;
  for (let weekday = 0; weekday < 7; weekday++) {
    if ((spec.days & (1 << weekday)) === 0) continue;
    for (let day = firstOf(weekday, firstWeekday); day <= length; day += 7) bits |= bitOf(day);
  }
  for (const weekday of spec.last) {
    const first = firstOf(weekday, firstWeekday);
    bits |= bitOf(first + 7 * Math.floor((length - first) / 7));
  }
  for (const { weekday, nth } of spec.nth) {
    const day = firstOf(weekday, firstWeekday) + 7 * (nth - 1);
    if (day <= length) bits |= bitOf(day);
  }
  return bits;
};

/** The days of a month that a pattern names, as bits (bit d - 1 = day d). Months and years are judged elsewhere. */
export const daysOfMonth = (pattern: Pattern, year: number, month: number): number => {
  const length = daysInMonth(year, month);
  const all = length === 31 ? 0x7fff_ffff : bitOf(length + 1) - 1;
  const { monthDays, weekDays, dayRule } = pattern;
  if (monthDays.isAny && weekDays.isAny) return all;
  const firstWeekday = weekdayOf(dayNumberOf({ year, month, day: 1 }));
  const byMonth = monthDays.isAny ? all : monthDayBits(monthDays, firstWeekday, length);
  const byWeek = weekDays.isAny ? all : weekDayBits(weekDays, firstWeekday, length);
  return all & (dayRule === "either" ? byMonth | byWeek : byMonth & byWeek);
};

/** Finds wall times. `daysOf` answers for one month; a search asks it once per month it looks at. */
export interface Finder {
  readonly daysOf: (year: number, month: number) => number;
  /** At index m: the first minute of the pattern at or after m, or -1; likewise hours and months. */
  readonly minuteFrom: readonly number[];
  readonly hourFrom: readonly number[];
  readonly monthFrom: readonly number[];
  readonly firstYear: number;
  readonly lastYear: number;
  readonly hasYear: (year: number) => boolean;
}

const followers = (values: readonly number[], size: number): readonly number[] => {
  const from = new Array<number>(size).fill(-1);
  let following = -1;
  let index = values.length - 1;
  for (let at = size - 1; at >= 0; at--) {
    if (values[index] === at) {
      following = at;
      index -= 1;
    }
    from[at] = following;
  }
  return from;
};

export const finderOf = (pattern: Pattern): Finder => {
  const years = new Set(pattern.years);
  return {
    daysOf: (year, month) => daysOfMonth(pattern, year, month),
    minuteFrom: followers(pattern.minutes, 60),
    hourFrom: followers(pattern.hours, 24),
    monthFrom: followers(pattern.months, 13),
    firstYear: pattern.years[0] ?? FIRST_YEAR,
    lastYear: pattern.years.at(-1) ?? LAST_YEAR,
    hasYear: years.size === 0 ? () => true : (year) => years.has(year),
  };
};

/** Minutes of the day at or after (hour, minute), or -1. */
const timeFrom = (finder: Finder, hour: number, minute: number): number => {
  const firstMinute = finder.minuteFrom[0] ?? -1;
  const sameHour = finder.hourFrom[hour] ?? -1;
  if (sameHour === hour) {
    const sameMinute = finder.minuteFrom[minute] ?? -1;
    if (sameMinute !== -1) return hour * 60 + sameMinute;
    const laterHour = finder.hourFrom[hour + 1] ?? -1;
    return laterHour === -1 ? -1 : laterHour * 60 + firstMinute;
  }
  return sameHour === -1 ? -1 : sameHour * 60 + firstMinute;
};

/** The first day of the pattern in a year, at or after (month, day). */
const dayInYear = (finder: Finder, year: number, month: number, day: number): number | undefined => {
  let firstDay = day;
  let named = finder.monthFrom[month] ?? -1;
  if (named !== month) firstDay = 1;
  while (named !== -1) {
    const left = finder.daysOf(year, named) & -bitOf(firstDay);
    if (left !== 0) return dayNumberOf({ year, month: named, day: 32 - Math.clz32(left & -left) });
    named = finder.monthFrom[named + 1] ?? -1;
    firstDay = 1;
  }
  return undefined;
};

/** The first day of the pattern at or after a date; looks at no more than 12 months a year up to its last year. */
const dayFrom = (finder: Finder, from: CalendarDate): number | undefined => {
  const isEarly = from.year < finder.firstYear;
  if (!isEarly && from.year <= finder.lastYear && finder.hasYear(from.year)) {
    const day = dayInYear(finder, from.year, from.month, from.day);
    if (day !== undefined) return day;
  }
  for (let year = isEarly ? finder.firstYear : from.year + 1; year <= finder.lastYear; year++) {
    const day = finder.hasYear(year) ? dayInYear(finder, year, 1, 1) : undefined;
    if (day !== undefined) return day;
  }
  return undefined;
};

/** The first wall time of the pattern at or after `fromMs`; undefined when its years are over. */
export const nextWall = (finder: Finder, fromMs: number): number | undefined => {
  const fromMinute = Math.ceil(fromMs / MINUTE_MS);
  const dayNumber = Math.floor(fromMinute / 1_440);
  const inDay = fromMinute - dayNumber * 1_440;
  const date = dateOf(dayNumber);
  const hour = Math.floor(inDay / 60);
  const time = timeFrom(finder, hour, inDay - hour * 60);
  if (time !== -1) {
    const day = dayFrom(finder, date);
    if (day === undefined) return undefined;
    return day * DAY_MS + (day === dayNumber ? time : timeFrom(finder, 0, 0)) * MINUTE_MS;
  }
  const day = dayFrom(finder, dateOf(dayNumber + 1));
  return day === undefined ? undefined : day * DAY_MS + timeFrom(finder, 0, 0) * MINUTE_MS;
};
