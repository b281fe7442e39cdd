import { type Field, UNIX_FIELDS, WEEKDAYS } from "./fields.ts";
import type { MonthDays, Pattern, WeekDays } from "./pattern.ts";

/** A pattern written as AWS or five-field text. What is written reads back as the same pattern. */

/** The common distance of three or more values that go on to the end of the field; undefined otherwise. */
export const stepOf = (values: readonly number[], max: number): number | undefined => {
  const [first = 0, second = 0] = values;
  const step = second - first;
  const last = values.at(-1) ?? 0;
  if (values.length < 3 || step < 2 || last + step <= max) return undefined;
  return values.every((value, index) => value === first + index * step) ? step : undefined;
};

/** `1-5` where three or more follow one another, else single values. */
const runs = (values: readonly number[], nameOf: (value: number) => string): string => {
  const parts: string[] = [];
  for (let index = 0; index < values.length; ) {
    let end = index;
    while (values[end + 1] === (values[end] ?? 0) + 1) end++;
    if (end - index < 2) end = index;
    const [from = 0, to = 0] = [values[index], values[end]];
    parts.push(from === to ? nameOf(from) : `${nameOf(from)}-${nameOf(to)}`);
    index = end + 1;
  }
  return parts.join(",");
};

/** AWS documents `*`, `a-b`, lists and `a/step`; nothing else is written. */
const awsList = (values: readonly number[], { min, max }: Field): string => {
  if (values.length === max - min + 1) return "*";
  const step = stepOf(values, max);
  return step === undefined ? runs(values, String) : `${values[0]}/${step}`;
};

export const daysIn = (bits: number, count: number, first: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => index)
    .filter((index) => (bits & (1 << index)) !== 0)
    .map((index) => index + first);

const weekdayName = (weekday: number): string => WEEKDAYS[weekday] ?? "";

const awsMonthDays = (spec: MonthDays): string => {
  if (spec.fromLast.length > 0) return "L";
  const [near] = spec.nearest;
  return near === undefined ? awsList(daysIn(spec.days, 31, 1), UNIX_FIELDS.dayOfMonth) : `${near}W`;
};

const awsWeekDays = (spec: WeekDays): string => {
  const [last] = spec.last;
  if (last !== undefined) return `${last + 1}L`;
  const [nth] = spec.nth;
  if (nth !== undefined) return `${nth.weekday + 1}#${nth.nth}`;
  return runs(daysIn(spec.days, 7, 0), weekdayName);
};

/** AWS's `cron(...)` for a pattern that names its days in one way only (see `awsPatterns`). */
export const awsCronText = (pattern: Pattern): string => {
  const { minutes, hours, months, monthDays, weekDays, years } = pattern;
  const days = weekDays.isAny
    ? [monthDays.isAny ? "*" : awsMonthDays(monthDays), "?"]
    : ["?", awsWeekDays(weekDays)];
  const fields = [
    awsList(minutes, UNIX_FIELDS.minute),
    awsList(hours, UNIX_FIELDS.hour),
    days[0],
    awsList(months, UNIX_FIELDS.month),
    days[1],
    years.length === 0 ? "*" : runs(years, String),
  ];
  return `cron(${fields.join(" ")})`;
};

/** A star or a step from a star says that a field is not restricted; it is written only where that was said. */
const unixList = (values: readonly number[], { min, max }: Field, mayStar: boolean): string => {
  if (!mayStar) return runs(values, String);
  if (values.length === max - min + 1) return "*";
  const step = stepOf(values, max);
  return step !== undefined && values[0] === min ? `*/${step}` : runs(values, String);
};

const unixMonthDays = ({ isAny, days, fromLast, nearest, lastWorkday }: MonthDays): string => {
  if (isAny) return "*";
  const letters = [
    ...fromLast.map((back) => (back === 0 ? "L" : `L-${back}`)),
    ...nearest.map((day) => `${day}W`),
    ...(lastWorkday ? ["LW"] : []),
  ];
  return [runs(daysIn(days, 31, 1), String), ...letters].filter((text) => text !== "").join(",");
};

const unixWeekDays = ({ isAny, days, last, nth }: WeekDays): string => {
  if (isAny) return "*";
  const letters = [...last.map((day) => `${day}L`), ...nth.map((each) => `${each.weekday}#${each.nth}`)];
  return [runs(daysIn(days, 7, 0), String), ...letters].filter((text) => text !== "").join(",");
};

/** Five fields, or AWS's form where years are named. For hints: the pattern has an open day field. */
export const plainText = (pattern: Pattern): string => {
  if (pattern.years.length > 0) return awsCronText(pattern);
  const { minutes, hours, months, monthDays, weekDays, isIntervalLike } = pattern;
  return [
    unixList(minutes, UNIX_FIELDS.minute, isIntervalLike),
    unixList(hours, UNIX_FIELDS.hour, isIntervalLike),
    unixMonthDays(monthDays),
    unixList(months, UNIX_FIELDS.month, true),
    unixWeekDays(weekDays),
  ].join(" ");
};
