import { describe, expect, test } from "vitest";
import { InvalidInput } from "../../../lib/core/errors.ts";
import { parseAwsCron, parseQuartzCron, parseUnixCron } from "../../../lib/core/schedule/cron.ts";
import { type Finder, finderOf, nextWall, type Pattern } from "../../../lib/core/schedule/pattern.ts";
import { type Dialect, parseSchedule } from "../../../lib/core/schedule/schedule.ts";
import { isoOf } from "../../../lib/core/time.ts";

/** Why an expression is refused. */
const refusal = (expression: string, dialect?: Dialect): InvalidInput => {
  try {
    parseSchedule(expression, dialect === undefined ? {} : { dialect });
  } catch (error) {
    if (error instanceof InvalidInput) return error;
    throw error;
  }
  throw new Error(`accepted: ${expression}`);
};

const firstOf = (expression: string, dialect?: Dialect): string => {
  const schedule = parseSchedule(expression, dialect === undefined ? {} : { dialect });
  const slot = schedule.next(Date.parse("2026-01-01T00:00Z"));
  return slot === undefined ? "none" : new Date(slot).toISOString();
};

describe("a refusal", () => {
  test.each([
    ["60 * * * *", "minute", "minute: '60' is outside 0-59", "minute takes 0-59"],
    ["0 24 * * *", "hour", "hour: '24' is outside 0-23", "hour takes 0-23"],
    ["0 0 0 * *", "day-of-month", "day-of-month: '0' is outside 1-31", "day-of-month takes 1-31"],
    ["0 0 1 13 *", "month", "month: '13' is outside 1-12", "month takes 1-12 or JAN-DEC"],
    ["0 0 * * 8", "day-of-week", "day-of-week: '8' is outside 0-7", "day-of-week takes 0-7 or SUN-SAT"],
    [
      "5-1 * * * *",
      "minute",
      "minute: range '5-1' runs backwards in 0-59",
      "write it as two ranges, or swap its ends",
    ],
    ["*/0 * * * *", "minute", "minute: step '0' is not a number from 1 to 59", "minute takes 0-59"],
    [
      "*/60 * * * *",
      "minute",
      "minute: step 60 is larger than 59, so it would never step",
      "minute takes 0-59",
    ],
    ["0 0 30 2 *", "day-of-month", "day-of-month '30' never comes in month '2'", undefined],
    ["0 0 31 4 *", "day-of-month", "day-of-month '31' never comes in month '4'", undefined],
    ["0 0 31 2,4,6 *", "day-of-month", "day-of-month '31' never comes in month '2,4,6'", undefined],
    [
      "cron(0 12 ? * 0 *)",
      "day-of-week",
      "day-of-week: '0' is outside 1-7",
      "day-of-week takes 1-7 or SUN-SAT",
    ],
    ["cron(0 0 1 1 ? 1969)", "year", "year: '1969' is outside 1970-2199", "year takes 1970-2199"],
  ])("of %s names the field, the value and what it takes", (expression, field, message, hint) => {
    const error = refusal(expression);
    expect(error.field).toBe(field);
    expect(error.message).toBe(message);
    if (hint !== undefined) expect(error.hint).toBe(hint);
  });

  test.each([
    ["", "empty"],
    ["   ", "empty"],
    ["*".repeat(10_000), "longer than 1000 characters"],
    [`cron(${"0,".repeat(5_000)}0 10 * * ? *)`, "longer than 256 characters"],
    ["0 9 * * \u{1f552}", "not printable ASCII"],
    ["0\u00a09\u00a0*\u00a0*\u00a0*", "no-break spaces"],
    ["0 9 * * *\n0 10 * * *", "one line"],
    ["0 9 * * *\u0000", "not printable ASCII"],
    ["tomorrow", "cannot read 'tomorrow'"],
    ["Cron(0 9 * * ? *)", "cannot read"],
    ["interval(5 minutes)", "cannot read"],
    ["@reboot", "one of @yearly"],
    ["0 9 * *", "expected 5 fields, this has 4"],
    ["* * * * * * * *", "expected 5 fields, this has 8"],
    ["every(0 minutes)", "positive whole number"],
    ["every(90 seconds)", "minutes|hours|days|weeks"],
    ["every(999999999 weeks)", "no second slot"],
    ["constructor", "cannot read 'constructor'"],
    ["rate(5 min)", "minutes|hours|days"],
    ["at(2027-02-29T00:00)", "day 29 is outside 1-28"],
    ["at(2027-01-01T00:00Z)", "time zone is an option of its own"],
  ])("of junk says what is wrong (%#)", (expression, part) => {
    const { message, hint, field } = refusal(expression);
    expect(`${message} ${hint}`).toContain(part);
    expect(field).toBe("expression");
  });

  test("never repeats a long input in full", () => {
    expect(refusal(`${"9".repeat(900)} * * * *`).message.length).toBeLessThan(120);
  });
});

describe("a search", () => {
  /** Counts the months that a search looks at. */
  const counted = (pattern: Pattern): { readonly finder: Finder; readonly steps: () => number } => {
    let steps = 0;
    const finder = finderOf(pattern);
    return {
      finder: {
        ...finder,
        daysOf: (year, month) => {
          steps += 1;
          return finder.daysOf(year, month);
        },
      },
      steps: () => steps,
    };
  };

  test.each([
    ["every minute", parseUnixCron("* * * * *"), 1, "2026-01-01T00:00:00.000Z"],
    ["the next leap day", parseUnixCron("0 0 29 2 *"), 4, "2028-02-29T00:00:00.000Z"],
    [
      "a leap day of February, or any Monday of it",
      parseUnixCron("0 0 29 2 1"),
      30,
      "2026-02-02T00:00:00.000Z",
    ],
    ["a year far away", parseAwsCron("0 0 1 1 ? 2199"), 1, "2199-01-01T00:00:00.000Z"],
    ["a fifth Monday of February", parseAwsCron("0 0 ? 2 2#5 *"), 30, "2044-02-29T00:00:00.000Z"],
  ])("for %s looks at a handful of months", (_name, pattern, most, found) => {
    const { finder, steps } = counted(pattern);
    const wallMs = nextWall(finder, Date.parse("2026-01-01T00:00Z"));
    expect(wallMs === undefined ? wallMs : isoOf(wallMs)).toBe(found);
    expect(steps()).toBeLessThanOrEqual(most);
  });

  test("for a date that never comes looks at no month twice", () => {
    const pattern: Pattern = {
      ...parseUnixCron("0 0 1 2 *"),
      monthDays: { ...parseUnixCron("0 0 30 1 *").monthDays },
    };
    const { finder, steps } = counted(pattern);
    expect(nextWall(finder, 0)).toBeUndefined();
    expect(steps()).toBe(2199 - 1970 + 1);
  });

  test("for all months is bounded by the years that schedules know", () => {
    const none = {
      ...parseUnixCron("* * * * *"),
      monthDays: { isAny: false, days: 0, fromLast: [], nearest: [], lastWorkday: false },
    };
    const { finder, steps } = counted(none);
    expect(nextWall(finder, 0)).toBeUndefined();
    expect(steps()).toBe(12 * 230);
  });
});

describe("a dialect", () => {
  test.each([
    ["0 9 * * 2", "unix", "2026-01-06T09:00:00.000Z"],
    ["@daily", "unix", "2026-01-02T00:00:00.000Z"],
    ["cron(0 9 ? * 2 *)", "aws", "2026-01-05T09:00:00.000Z"],
    ["0 9 ? * 2 *", "aws", "2026-01-05T09:00:00.000Z"],
    ["0 0 9 ? * 2", "quartz", "2026-01-05T09:00:00.000Z"],
    ["0 0 9 * * ?", "quartz", "2026-01-01T09:00:00.000Z"],
    ["0 15 10 * * ? 2027", "quartz", "2027-01-01T10:15:00.000Z"],
    ["0 0 9 * * MON-FRI", "quartz", "2026-01-01T09:00:00.000Z"],
    ["rate(15 minutes)", "aws", "2026-01-01T00:15:00.000Z"],
    ["every(15 minutes)", "belfry", "2026-01-01T00:15:00.000Z"],
    ["at(2027-01-01T00:00:00)", "aws", "2027-01-01T00:00:00.000Z"],
    ["at(2027-01-01T00:00)", "belfry", "2027-01-01T00:00:00.000Z"],
  ])("of %s is recognised as %s", (expression, dialect, first) => {
    expect(parseSchedule(expression).dialect).toBe(dialect);
    expect(firstOf(expression)).toBe(first);
  });

  test("is not guessed where six fields have two readings: the refusal shows both", () => {
    const error = refusal("0 0 9 * * *");
    expect(error.code).toBe("ambiguous_schedule");
    expect(error.hint).toContain("with seconds first it is '0 9 * * *'");
    expect(error.hint).toContain("with a year last it is cron(0 0 9 * ? *)");
    expect(refusal("15 10 * * 6 2026").hint).toContain("cron(15 10 ? * 6 2026)");
  });

  test("that is told decides between them", () => {
    expect(firstOf("0 0 9 * * *", "quartz")).toBe("2026-01-01T09:00:00.000Z");
  });

  test.each([
    ["0 15 10 ? * 6#3", "unix", "'15 10 * * 5#3'"],
    ["0 0 9 * * ?", "unix", "'0 9 * * *'"],
    ["0 15 10 * * ? 2027", "unix", "cron(15 10 * * ? 2027)"],
    ["0 0/15 9 * * ?", "unix", "'0,15,30,45 9 * * *'"],
    ["10 10 * * 1", "aws", "cron(10 10 ? * MON *)"],
    ["0 0 13 * 5", "aws", "cron(0 0 13 * ? *) and cron(0 0 ? * FRI *)"],
    ["cron(0 9 * * 2 *)", undefined, "cron(0 9 ? * 2 *)"],
    ["cron(0 9 1 * * *)", undefined, "cron(0 9 1 * ? *)"],
    ["30 0 9 * * ?", undefined, "'0 0 9 * * ?'"],
    ["0 9 * * *", "quartz", "'0 0 9 * * *'"],
  ] as const)("%s as %s is refused with the corrected expression", (expression, dialect, corrected) => {
    expect(refusal(expression, dialect).hint).toContain(corrected);
  });

  test.each([
    ["every(5 minutes)", "aws"],
    ["@daily", "aws"],
    ["at(2027-01-01T00:00)", "aws"],
    ["rate(5 minutes)", "unix"],
    ["cron(0 9 * * ? *)", "unix"],
    ["0 9 * * *", "belfry"],
  ] as const)("%s is not %s when that is told", (expression, dialect) => {
    expect(refusal(expression, dialect).code).toBe("invalid_schedule");
  });

  test("of Quartz takes * and ? for one another in the day fields, and refuses both restricted", () => {
    expect(parseQuartzCron("0 0 9 ? * *")).toEqual(parseQuartzCron("0 0 9 * * ?"));
    expect(refusal("0 0 9 13 * FRI", "quartz").message).toContain("must be '?'");
  });

  test("a weekday step that programs read differently is refused with both", () => {
    expect(refusal("0 0 * * 1/2").hint).toBe("write '1-6/2' or '1-7/2'");
    expect(firstOf("0 0 * * 0/2")).toBe("2026-01-03T00:00:00.000Z");
  });
});
