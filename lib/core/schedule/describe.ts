import { DAY_MS, HOUR_MS, MINUTE_MS } from "../time.ts";
import { wallText } from "./calendar.ts";
import { english } from "./describe-en.ts";
import { chinese } from "./describe-zh.ts";
import type { Pattern } from "./pattern.ts";
import { daysIn, stepOf } from "./pattern-text.ts";
import type { Rule } from "./rule.ts";

export type Language = "en" | "zh";

/** When in the day, told apart from how a language says it. */
export type DayTimes =
  /** `hours` undefined = all day; `step` minutes from `from`; 1 = every minute. */
  | {
      readonly kind: "steps";
      readonly step: number;
      readonly from: number;
      readonly hours: readonly number[] | undefined;
    }
  /** The same minutes of every hour, or of the hours given. */
  | {
      readonly kind: "minutes";
      readonly minutes: readonly number[];
      readonly hours: readonly number[] | undefined;
    }
  /** The same minutes of every `step`th hour from `from` on. */
  | {
      readonly kind: "hour-steps";
      readonly minutes: readonly number[];
      readonly step: number;
      readonly from: number;
    }
  /** A few times, `09:00`. */
  | { readonly kind: "times"; readonly times: readonly string[] };

/** Which days, in words that a language has: dates, letters and weekdays (0 = Sunday). */
export interface DayWords {
  readonly dates: readonly number[];
  readonly fromLast: readonly number[];
  readonly nearest: readonly number[];
  readonly lastWorkday: boolean;
  readonly weekdays: readonly number[];
  readonly lastWeekdays: readonly number[];
  readonly nthWeekdays: readonly { readonly weekday: number; readonly nth: number }[];
}

export interface PatternWords {
  readonly time: DayTimes;
  /** Undefined = any day. */
  readonly monthDays: DayWords | undefined;
  readonly weekDays: DayWords | undefined;
  readonly dayRule: Pattern["dayRule"];
  /** Empty = all. */
  readonly months: readonly number[];
  readonly years: readonly number[];
}

export interface Words {
  pattern(words: PatternWords): string;
  interval(amount: number, unit: "minute" | "hour" | "day" | "week"): string;
  once(localTime: string): string;
}

/** Where more fixed times than this would be listed, minutes and hours are told instead. */
const MOST_TIMES = 6;

const clock = (hour: number, minute: number): string =>
  `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;

const timesOf = ({ minutes, hours }: Pattern): DayTimes => {
  const step = minutes.length === 60 ? 1 : stepOf(minutes, 59);
  const isAllDay = hours.length === 24;
  const someHours = isAllDay ? undefined : hours;
  if (!isAllDay && minutes.length * hours.length <= MOST_TIMES) {
    return { kind: "times", times: hours.flatMap((hour) => minutes.map((minute) => clock(hour, minute))) };
  }
  const halfHour = minutes.length === 2 && (minutes[1] ?? 0) - (minutes[0] ?? 0) === 30 ? 30 : undefined;
  const by = step ?? halfHour;
  if (by !== undefined) return { kind: "steps", step: by, from: minutes[0] ?? 0, hours: someHours };
  const hourStep = stepOf(hours, 23);
  if (hourStep !== undefined) return { kind: "hour-steps", minutes, step: hourStep, from: hours[0] ?? 0 };
  return { kind: "minutes", minutes, hours: someHours };
};

const NO_DAYS: DayWords = {
  dates: [],
  fromLast: [],
  nearest: [],
  lastWorkday: false,
  weekdays: [],
  lastWeekdays: [],
  nthWeekdays: [],
};

const wordsOf = (pattern: Pattern): PatternWords => {
  const { monthDays, weekDays, months } = pattern;
  const { fromLast, nearest, lastWorkday } = monthDays;
  const weekdays = daysIn(weekDays.days, 7, 0);
  return {
    time: timesOf(pattern),
    monthDays: monthDays.isAny
      ? undefined
      : { ...NO_DAYS, dates: daysIn(monthDays.days, 31, 1), fromLast, nearest, lastWorkday },
    weekDays:
      weekDays.isAny || weekdays.length === 7
        ? undefined
        : { ...NO_DAYS, weekdays, lastWeekdays: weekDays.last, nthWeekdays: weekDays.nth },
    dayRule: pattern.dayRule,
    months: months.length === 12 ? [] : months,
    years: pattern.years,
  };
};

const UNITS = [
  ["week", 7 * DAY_MS],
  ["day", DAY_MS],
  ["hour", HOUR_MS],
  ["minute", MINUTE_MS],
] as const;

const LANGUAGES: Readonly<Record<Language, Words>> = { en: english, zh: chinese };

/** A rule in words, without its zone: `at 09:00 on Monday to Friday`, `周一至周五 09:00`. */
export const describeRule = (rule: Rule, language: Language): string => {
  const words = LANGUAGES[language];
  if (rule.kind === "once") return words.once(wallText(rule.wallMs));
  if (rule.kind === "cron") return words.pattern(wordsOf(rule.pattern));
  const [unit, unitMs] = UNITS.find(([, ms]) => rule.everyMs % ms === 0) ?? ["minute", MINUTE_MS];
  return words.interval(rule.everyMs / unitMs, unit);
};
