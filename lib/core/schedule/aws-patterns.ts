import { finderOf, type MonthDays, nextWall, type Pattern, type WeekDays } from "./pattern.ts";
import { awsCronText, daysIn } from "./pattern-text.ts";

/** Patterns that AWS can write, whose slots together are those of the given one, or more. */
export interface AwsPatterns {
  readonly patterns: readonly Pattern[];
  /** Why they name more; undefined = they name the same. */
  readonly why: string | undefined;
}

/** Days named in one way each, since an AWS field takes one letter and no list of letters. */
interface Split<Days> {
  readonly parts: readonly Days[];
  readonly why: string | undefined;
}

const ALL_MONTH_DAYS = 0x7fff_ffff;
const ALL_WEEK_DAYS = 0x7f;
const ANY_MONTH_DAY: MonthDays = { isAny: true, days: 0, fromLast: [], nearest: [], lastWorkday: false };
const ANY_WEEK_DAY: WeekDays = { isAny: true, days: 0, last: [], nth: [] };
const PLAIN_MONTH_DAYS: MonthDays = { ...ANY_MONTH_DAY, isAny: false };
const PLAIN_WEEK_DAYS: WeekDays = { ...ANY_WEEK_DAY, isAny: false };

const daysBetween = (first: number, last: number): number =>
  Array.from({ length: last - first + 1 }, (_, index) => 1 << (first + index - 1)).reduce((a, b) => a | b, 0);

/** AWS documents neither `LW` nor `L-3`: the days that they can be are a superset. */
const splitMonthDays = (spec: MonthDays): Split<MonthDays> => {
  const hasUndocumented = spec.lastWorkday || spec.fromLast.some((back) => back > 0);
  let days = spec.days;
  for (const back of spec.fromLast) if (back > 0) days |= daysBetween(Math.max(1, 28 - back), 31 - back);
  if (spec.lastWorkday) days |= daysBetween(26, 31);
  return {
    parts: [
      ...(days === 0 ? [] : [{ ...PLAIN_MONTH_DAYS, days }]),
      ...(spec.fromLast.includes(0) ? [{ ...PLAIN_MONTH_DAYS, fromLast: [0] }] : []),
      ...spec.nearest.map((day) => ({ ...PLAIN_MONTH_DAYS, nearest: [day] })),
    ],
    why: hasUndocumented ? "AWS knows neither LW nor L-n: it fires on every day that they can be" : undefined,
  };
};

const splitWeekDays = (spec: WeekDays): readonly WeekDays[] => [
  ...(spec.days === 0 ? [] : [{ ...PLAIN_WEEK_DAYS, days: spec.days }]),
  ...spec.last.map((day) => ({ ...PLAIN_WEEK_DAYS, last: [day] })),
  ...spec.nth.map((each) => ({ ...PLAIN_WEEK_DAYS, nth: [each] })),
];

const byMonth = (pattern: Pattern): AwsPatterns => {
  const { parts, why } = splitMonthDays(pattern.monthDays);
  return {
    patterns: parts.map((monthDays) => ({
      ...pattern,
      monthDays,
      weekDays: ANY_WEEK_DAY,
      dayRule: "both" as const,
    })),
    why,
  };
};

const byWeek = (pattern: Pattern): AwsPatterns => ({
  patterns: splitWeekDays(pattern.weekDays).map((weekDays) => ({
    ...pattern,
    monthDays: ANY_MONTH_DAY,
    weekDays,
    dayRule: "both" as const,
  })),
  why: undefined,
});

/** About how many days a year. */
const daysPerYear = ({ monthDays, weekDays }: Pattern): number =>
  monthDays.isAny
    ? 52 * daysIn(weekDays.days, 7, 0).length + 12 * (weekDays.last.length + weekDays.nth.length)
    : 12 * daysIn(monthDays.days, 31, 1).length + 12 * (monthDays.fromLast.length + monthDays.nearest.length);

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** AWS takes one day field: a union of two, and for "both must match" the rarer one, of which some are dropped. */
const splitDays = (pattern: Pattern): AwsPatterns => {
  const { monthDays, weekDays, dayRule } = pattern;
  const anyMonthDay = monthDays.isAny || monthDays.days === ALL_MONTH_DAYS;
  const anyWeekDay = weekDays.isAny || weekDays.days === ALL_WEEK_DAYS;
  const isEither = dayRule === "either";
  if ((anyMonthDay && anyWeekDay) || (isEither && (anyMonthDay || anyWeekDay))) {
    return { patterns: [{ ...pattern, monthDays: ANY_MONTH_DAY, weekDays: ANY_WEEK_DAY }], why: undefined };
  }
  if (anyMonthDay) return byWeek(pattern);
  const month = byMonth(pattern);
  if (anyWeekDay) return month;
  const week = byWeek(pattern);
  if (isEither) return { patterns: [...month.patterns, ...week.patterns], why: month.why };
  const rarer = sum(month.patterns.map(daysPerYear)) < sum(week.patterns.map(daysPerYear)) ? month : week;
  return {
    patterns: rarer.patterns,
    why: "AWS takes one day field: days that the other one excludes are dropped",
  };
};

/** The expression length that AWS takes. */
const LONGEST = 256;

/** Halves the longest list until each text fits. */
const fitting = (pattern: Pattern): readonly Pattern[] => {
  if (awsCronText(pattern).length <= LONGEST) return [pattern];
  const lists = ["minutes", "hours", "months", "years"] as const;
  const longest = lists.reduce((a, b) => (pattern[b].join().length > pattern[a].join().length ? b : a));
  const values = pattern[longest];
  const half = Math.ceil(values.length / 2);
  return [
    ...fitting({ ...pattern, [longest]: values.slice(0, half) }),
    ...fitting({ ...pattern, [longest]: values.slice(half) }),
  ];
};

const isEver = (pattern: Pattern): boolean => nextWall(finderOf(pattern), 0) !== undefined;

export const awsPatterns = (pattern: Pattern): AwsPatterns => {
  const { patterns, why } = splitDays(pattern);
  return { patterns: patterns.filter(isEver).flatMap(fitting), why };
};
