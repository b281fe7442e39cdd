import { type Field, parseList, parseValue, quote, refuseField } from "./fields.ts";
import type { MonthDays, WeekDays } from "./pattern.ts";

/**
 * The two day fields and their letters. In five fields L, W and # are our extension and may stand in lists; in
 * AWS and Quartz expressions a list takes neither W nor #, as both document.
 */
export interface DayDialect {
  readonly monthDay: Field;
  readonly weekDay: Field;
  readonly hasListsOfLetters: boolean;
}

const bits = (values: readonly number[]): number => values.reduce((sum, value) => sum | (1 << value), 0);

const isStar = (text: string): boolean => text === "*" || text === "?";

const NO_MONTH_DAYS: MonthDays = { isAny: false, days: 0, fromLast: [], nearest: [], lastWorkday: false };
const NO_WEEK_DAYS: WeekDays = { isAny: false, days: 0, last: [], nth: [] };

const refuseInList = (field: Field, text: string, letter: string): void => {
  if (text.includes(","))
    throw refuseField(field, `${letter} takes a single day, not a list: ${quote(text)}`);
};

/** `L`, `L-3`, `LW`, `15W`; undefined for a plain item. */
const monthDayLetter = (field: Field, part: string): Partial<MonthDays> | undefined => {
  const item = part.toUpperCase();
  if (item === "L") return { fromLast: [0] };
  if (item === "LW") return { lastWorkday: true };
  const back = /^L-(\d{1,2})$/.exec(item)?.[1];
  if (back !== undefined) {
    if (Number(back) < 1 || Number(back) > 30) {
      throw refuseField(field, `${quote(part)} counts back more than 30 days`, "L-1 to L-30");
    }
    return { fromLast: [Number(back)] };
  }
  const near = /^(\d{1,2})W$/.exec(item)?.[1];
  return near === undefined ? undefined : { nearest: [parseValue(field, near)] };
};

export const parseMonthDays = ({ monthDay, hasListsOfLetters }: DayDialect, text: string): MonthDays => {
  if (isStar(text)) return { ...NO_MONTH_DAYS, isAny: true };
  const plain: string[] = [];
  let found = NO_MONTH_DAYS;
  for (const part of text.split(",")) {
    const letter = monthDayLetter(monthDay, part);
    if (letter === undefined) {
      plain.push(part);
      continue;
    }
    if (!hasListsOfLetters && /W$/i.test(part)) refuseInList(monthDay, text, "W");
    found = {
      ...found,
      fromLast: [...found.fromLast, ...(letter.fromLast ?? [])],
      nearest: [...found.nearest, ...(letter.nearest ?? [])],
      lastWorkday: found.lastWorkday || letter.lastWorkday === true,
    };
  }
  const days = plain.length === 0 ? [] : parseList(monthDay, plain.join(","));
  return { ...found, days: bits(days.map((day) => day - 1)) };
};

/** A weekday of the field as 0 = Sunday ... 6 = Saturday. */
const weekdayFrom = (field: Field, value: number): number => (field.min === 1 ? value - 1 : value % 7);

/** `5L`, `FRIL`, `1#2`; undefined for a plain item. */
const weekDayLetter = (field: Field, part: string): Partial<WeekDays> | undefined => {
  const nth = /^([^#]*)#(.*)$/.exec(part);
  if (nth !== null) {
    const [, day = "", which = ""] = nth;
    const weekday = weekdayFrom(field, parseValue(field, day));
    if (!/^[1-5]$/.test(which))
      throw refuseField(field, `'#' takes 1 to 5, not ${quote(which)}`, "for example 2#1");
    return { nth: [{ weekday, nth: Number(which) }] };
  }
  const last = /^([^-,/]+)L$/i.exec(part)?.[1];
  return last === undefined ? undefined : { last: [weekdayFrom(field, parseValue(field, last))] };
};

/** `L` alone is the last day of AWS's week, Saturday; in five fields it is not clear which day ends a week. */
const parseLoneL = ({ weekDay }: DayDialect): WeekDays => {
  if (weekDay.min === 0) {
    throw refuseField(
      weekDay,
      "'L' alone does not say which day",
      "'6' for Saturday, '5L' for the last Friday",
    );
  }
  return { ...NO_WEEK_DAYS, days: bits([6]) };
};

export const parseWeekDays = (dialect: DayDialect, text: string): WeekDays => {
  const { weekDay, hasListsOfLetters } = dialect;
  if (isStar(text)) return { ...NO_WEEK_DAYS, isAny: true };
  if (/^l$/i.test(text)) return parseLoneL(dialect);
  const plain: string[] = [];
  let found = NO_WEEK_DAYS;
  for (const part of text.split(",")) {
    const letter = weekDayLetter(weekDay, part);
    if (letter === undefined) {
      plain.push(part);
      continue;
    }
    if (!hasListsOfLetters) refuseInList(weekDay, text, letter.nth === undefined ? "L" : "#");
    found = {
      ...found,
      last: [...found.last, ...(letter.last ?? [])],
      nth: [...found.nth, ...(letter.nth ?? [])],
    };
  }
  const values = plain.length === 0 ? [] : parseList(weekDay, plain.join(","));
  return { ...found, days: bits(values.map((value) => weekdayFrom(weekDay, value))) };
};
