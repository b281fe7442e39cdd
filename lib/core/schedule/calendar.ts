import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../time.ts";

/**
 * Wall-clock arithmetic in the proleptic Gregorian calendar. A *wall time* is a number like an instant: the
 * milliseconds that a clock without a zone would show, counted from 1970-01-01T00:00 on that clock.
 */

export interface CalendarDate {
  readonly year: number;
  /** 1-12. */
  readonly month: number;
  /** 1-31. */
  readonly day: number;
}

export interface WallTime extends CalendarDate {
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

const DAYS_PER_ERA = 146_097;
const DAYS_FROM_ERA_ZERO_TO_1970 = 719_468;

/**
 * Days since 1970-01-01 of a date that exists.
 * See Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that the leap
 * day is the last.
 */
export const dayNumberOf = ({ year, month, day }: CalendarDate): number => {
  const marchYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(marchYear / 400);
  const yearOfEra = marchYear - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * DAYS_PER_ERA + dayOfEra - DAYS_FROM_ERA_ZERO_TO_1970;
};

/** The inverse of `dayNumberOf`. */
export const dateOf = (dayNumber: number): CalendarDate => {
  const shifted = dayNumber + DAYS_FROM_ERA_ZERO_TO_1970;
  const era = Math.floor(shifted / DAYS_PER_ERA);
  const dayOfEra = shifted - era * DAYS_PER_ERA;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1;
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day };
};

const isLeapYear = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);

/** 28-31. */
export const daysInMonth = (year: number, month: number): number => {
  if (month === 2) return isLeapYear(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
};

/** 0 = Sunday ... 6 = Saturday; 1970-01-01 was a Thursday. */
export const weekdayOf = (dayNumber: number): number => (((dayNumber + 4) % 7) + 7) % 7;

export const wallMsOf = ({ hour, minute, second, ...date }: WallTime): number =>
  dayNumberOf(date) * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS;

export const wallTimeOf = (wallMs: number): WallTime => {
  const dayNumber = Math.floor(wallMs / DAY_MS);
  const inDay = wallMs - dayNumber * DAY_MS;
  return {
    ...dateOf(dayNumber),
    hour: Math.floor(inDay / HOUR_MS),
    minute: Math.floor((inDay % HOUR_MS) / MINUTE_MS),
    second: Math.floor((inDay % MINUTE_MS) / SECOND_MS),
  };
};

const two = (value: number): string => String(value).padStart(2, "0");

/** `2026-03-29 02:30`, with seconds only where they are not zero. For messages. */
export const wallText = (wallMs: number): string => {
  const { year, month, day, hour, minute, second } = wallTimeOf(wallMs);
  const seconds = second === 0 ? "" : `:${two(second)}`;
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(day)} ${two(hour)}:${two(minute)}${seconds}`;
};
