import { InvalidInput } from "../errors.ts";
import { type DayDialect, parseMonthDays, parseWeekDays } from "./day-fields.ts";
import { AWS_FIELDS, type Field, parseList, quote, refuseField, UNIX_FIELDS } from "./fields.ts";
import { finderOf, nextWall, type Pattern, type Step } from "./pattern.ts";

const UNIX_DAYS: DayDialect = {
  monthDay: UNIX_FIELDS.dayOfMonth,
  weekDay: UNIX_FIELDS.dayOfWeek,
  hasListsOfLetters: true,
};

const AWS_DAYS: DayDialect = {
  monthDay: AWS_FIELDS.dayOfMonth,
  weekDay: AWS_FIELDS.dayOfWeek,
  hasListsOfLetters: false,
};

interface CronTexts {
  readonly minute: string;
  readonly hour: string;
  readonly dayOfMonth: string;
  readonly month: string;
  readonly dayOfWeek: string;
  readonly year?: string | undefined;
}

/** crontab(5) macros. */
const MACROS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

export const fieldsOf = (text: string): readonly string[] => text.split(/[ \t]+/);

/** Nothing is said about the day. */
const isOpen = (text: string): boolean => text === "*" || text === "?";

const startsWithStar = (text: string): boolean => text.startsWith("*") || text.startsWith("?");

const refuseNever = (texts: CronTexts, weekDayNarrows: boolean): InvalidInput => {
  const days = `day-of-month ${quote(texts.dayOfMonth)}`;
  const rest = weekDayNarrows ? `, day-of-week ${quote(texts.dayOfWeek)}` : "";
  return new InvalidInput(
    "never_fires",
    `${days} never comes in month ${quote(texts.month)}${rest}${texts.year ? `, year ${quote(texts.year)}` : ""}`,
    { field: UNIX_FIELDS.dayOfMonth.name, hint: "'L' is the last day of a month; months have 28 to 31 days" },
  );
};

const patternOf = (
  texts: CronTexts,
  fields: typeof UNIX_FIELDS & { readonly year?: Field },
  days: DayDialect,
  dayRule: Pattern["dayRule"],
): Pattern => {
  const { year } = fields;
  const pattern: Pattern = {
    minutes: parseList(fields.minute, texts.minute),
    hours: parseList(fields.hour, texts.hour),
    monthDays: parseMonthDays(days, texts.dayOfMonth),
    months: parseList(fields.month, texts.month),
    weekDays: parseWeekDays(days, texts.dayOfWeek),
    years: year === undefined || texts.year === undefined ? [] : parseYears(year, texts.year),
    dayRule,
    isIntervalLike: texts.minute.startsWith("*") || texts.hour.startsWith("*"),
    steps: stepsOf(texts),
  };
  if (nextWall(finderOf(pattern), 0) === undefined) throw refuseNever(texts, !pattern.weekDays.isAny);
  return pattern;
};

const stepsOf = ({ minute, hour, dayOfMonth, month }: CronTexts): readonly Step[] => {
  const texts: readonly (readonly [Step["field"], string])[] = [
    ["minute", minute],
    ["hour", hour],
    ["day-of-month", dayOfMonth],
    ["month", month],
  ];
  return texts.flatMap(([field, text]) => {
    const step = /^(?:\*|\w+)\/(\d+)$/.exec(text)?.[1];
    return step === undefined ? [] : [{ field, step: Number(step) }];
  });
};

const parseYears = (field: Field, text: string): readonly number[] =>
  text === "*" || text === "*/1" ? [] : parseList(field, text);

/**
 * Five fields. Both day fields restricted = either matches; one that starts with `*` is not restricted, so both
 * must match (crontab(5), as Vixie cron has it). `?` in a day field counts as `*`.
 * @throws InvalidInput naming the field, the value and what it takes; `never_fires` for a date that cannot come.
 */
export const parseUnixCron = (text: string): Pattern => {
  const texts = fieldsOf((Object.hasOwn(MACROS, text) ? MACROS[text] : undefined) ?? text);
  const [minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = ""] = texts;
  if (texts.length !== 5) {
    throw new InvalidInput(
      "invalid_schedule",
      `expected 5 fields, this has ${texts.length}: ${quote(text)}`,
      {
        field: "expression",
        hint: text.startsWith("@")
          ? `one of ${Object.keys(MACROS).join(" ")}`
          : "minute hour day-of-month month day-of-week, for example '0 9 * * 1-5'",
      },
    );
  }
  const isEither = !startsWithStar(dayOfMonth) && !startsWithStar(dayOfWeek);
  const rule = isEither ? "either" : "both";
  return patternOf({ minute, hour, dayOfMonth, month, dayOfWeek }, UNIX_FIELDS, UNIX_DAYS, rule);
};

const refuseDayFields = (texts: readonly string[], at: number): InvalidInput => {
  const [dayOfMonth = "", dayOfWeek = ""] = [texts[at], texts[at + 2]];
  const openAt = isOpen(dayOfWeek) ? at + 2 : at;
  const mended = texts.map((text, index) => (index === openAt ? "?" : text === "?" ? "*" : text)).join(" ");
  return refuseField(
    AWS_FIELDS.dayOfWeek,
    `one of day-of-month (${quote(dayOfMonth)}) and day-of-week (${quote(dayOfWeek)}) must be '?', the other not`,
    isOpen(dayOfMonth) || isOpen(dayOfWeek)
      ? `write ${at === 2 ? `cron(${mended})` : `'${mended}'`}`
      : "two schedules, one for each; or five fields, where either may match",
  );
};

/**
 * The inside of AWS's `cron(...)`: minute hour day-of-month month day-of-week [year].
 * See the EventBridge Scheduler user guide, "Schedule types": exactly one day field is `?`, weekdays are 1 = SUN.
 */
export const parseAwsCron = (inside: string): Pattern => {
  const texts = fieldsOf(inside);
  const [minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = "", year] = texts;
  if (texts.length !== 5 && texts.length !== 6) {
    throw new InvalidInput("invalid_schedule", `cron() takes 5 or 6 fields, this has ${texts.length}`, {
      field: "expression",
      hint: "cron(minute hour day-of-month month day-of-week year), for example cron(0 9 ? * MON-FRI *)",
    });
  }
  if ((dayOfMonth === "?") === (dayOfWeek === "?")) throw refuseDayFields(texts, 2);
  return patternOf({ minute, hour, dayOfMonth, month, dayOfWeek, year }, AWS_FIELDS, AWS_DAYS, "both");
};

const QUARTZ_SECOND: Field = { ...UNIX_FIELDS.minute, name: "second" };

/**
 * Quartz: second minute hour day-of-month month day-of-week [year]. `?` and `*` are interchangeable in the day
 * fields, as Spring has it.
 */
export const parseQuartzCron = (text: string): Pattern => {
  const texts = fieldsOf(text);
  const [second = "", minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = "", year] = texts;
  if (texts.length !== 6 && texts.length !== 7) {
    throw new InvalidInput(
      "invalid_schedule",
      `a Quartz expression has 6 or 7 fields, this has ${texts.length}`,
      {
        field: "expression",
        hint:
          texts.length === 5
            ? `write '0 ${text}', or leave the dialect out`
            : "second minute hour day month weekday",
      },
    );
  }
  if (!/^0+$/.test(second)) {
    parseList(QUARTZ_SECOND, second);
    throw refuseField(
      QUARTZ_SECOND,
      `${quote(second)} is finer than a minute, which no schedule is`,
      `'0 ${texts.slice(1).join(" ")}'`,
    );
  }
  if (!isOpen(dayOfMonth) && !isOpen(dayOfWeek)) throw refuseDayFields(texts, 3);
  return patternOf({ minute, hour, dayOfMonth, month, dayOfWeek, year }, AWS_FIELDS, AWS_DAYS, "both");
};
