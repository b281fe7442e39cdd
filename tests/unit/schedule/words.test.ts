import { describe, expect, test } from "vitest";
import { parseSchedule, type ScheduleOptions } from "../../../lib/core/schedule/schedule.ts";

const NOW = Date.parse("2026-11-30T00:00Z");

const codesOf = (expression: string, options: ScheduleOptions = { timezone: "UTC" }): string[] =>
  parseSchedule(expression, options)
    .warnings(NOW)
    .map(({ code }) => code);

describe("a description", () => {
  test.each([
    ["0 9 * * 1-5", "at 09:00 on Monday to Friday", "每周一至周五 09:00"],
    ["cron(0 9 ? * 2 *)", "at 09:00 on Monday", "每周一 09:00"],
    ["0 0 9 ? * 2", "at 09:00 on Monday", "每周一 09:00"],
    ["0 9 * * 7", "at 09:00 on Sunday", "每周日 09:00"],
    ["30 2 * * *", "at 02:30 every day", "每天 02:30"],
    ["0 9,13,17 * * *", "at 09:00, 13:00 and 17:00 every day", "每天 09:00、13:00、17:00"],
    ["* * * * *", "every minute", "每分钟"],
    ["*/15 * * * *", "every 15 minutes", "每 15 分钟"],
    [
      "*/7 * * * *",
      "every 7 minutes, counted from minute 0 of each hour",
      "每 7 分钟（每小时从第 0 分起算）",
    ],
    [
      "0,30 9-17 * * 1-5",
      "every 30 minutes from 09:00 to 17:59 on Monday to Friday",
      "每周一至周五 9至17点期间每 30 分钟",
    ],
    ["@hourly", "every hour", "每小时整点"],
    ["5 0-23 * * *", "every hour at minute 5", "每小时第 5 分"],
    ["0 */2 * * *", "every 2 hours, at minute 0", "每 2 小时整点"],
    ["10 1/3 * * *", "every 3 hours from 01:00 on, at minute 10", "从 1 点起每 3 小时第 10 分"],
    ["5 9-17 * * *", "at minute 5 of every hour from 09:00 to 17:59", undefined],
    ["0 9 13 * 5", "at 09:00 on day 13 of the month, or on Friday", "每月 13 日或每周五 09:00"],
    ["0 0 L * *", "at 00:00 on the last day of the month", "每月最后一天 00:00"],
    [
      "0 9 LW 1,7 *",
      "at 09:00 on the last weekday of the month in January and July",
      "1、7 月 每月最后一个工作日 09:00",
    ],
    [
      "0 9 15W * *",
      "at 09:00 on the weekday nearest to day 15 of the month",
      "每月离 15 日最近的工作日 09:00",
    ],
    ["0 9 L-3 * *", "at 09:00 on the day 3 before the last of the month", "每月最后一天的前 3 天 09:00"],
    ["0 9 * * 1#2", "at 09:00 on the second Monday of the month", "每月第 2 个周一 09:00"],
    ["0 9 * * 5L", "at 09:00 on the last Friday of the month", "每月最后一个周五 09:00"],
    ["0 0 */2 * 1", "at 00:00 on every 2nd day from day 1 of the month when it is Monday", undefined],
    [
      "cron(0 9 ? * MON-FRI 2027-2029)",
      "at 09:00 on Monday to Friday, in 2027 to 2029",
      "2027至2029 年 每周一至周五 09:00",
    ],
    ["every(15 minutes)", "every 15 minutes", "每 15 分钟"],
    ["rate(1 day)", "every day", "每天"],
    ["every(14 days)", "every 2 weeks", "每 2 周"],
    ["at(2027-01-01T09:00)", "once, at 2027-01-01 09:00", "仅一次：2027-01-01 09:00"],
  ])("of %s is its meaning in words", (expression, english, chinese) => {
    const schedule = parseSchedule(expression);
    expect(schedule.describe()).toBe(english);
    if (chinese !== undefined) expect(schedule.describe("zh")).toBe(chinese);
  });
});

describe("the smallest gap", () => {
  const HOUR = 3_600_000;
  test.each([
    ["0 * * * *", HOUR],
    ["5 0-23 * * *", HOUR],
    ["0,30 9 * * *", HOUR / 2],
    ["*/59 * * * *", HOUR / 60],
    ["0 9 * * *", 24 * HOUR],
    ["0 23 * * 1,2", 24 * HOUR],
    ["0 0 1,31 * *", 24 * HOUR],
    ["0 0 29 2 *", 1461 * 24 * HOUR],
    ["55 23 * * *", 24 * HOUR],
    ["0,59 0,23 * * *", HOUR / 60],
    ["every(45 minutes)", 0.75 * HOUR],
    ["at(2027-01-01T00:00)", undefined],
    ["cron(0 9 1 1 ? 2027)", undefined],
  ])("of %s is computed from its slots", (expression, gap) => {
    expect(parseSchedule(expression).smallestGapMs).toBe(gap);
  });

  test("below the minimum is a warning", () => {
    const options = { timezone: "UTC", minimumGapMs: HOUR };
    expect(codesOf("5 * * * *", options)).toEqual([]);
    expect(codesOf("5 0-23 * * *", options)).toEqual([]);
    expect(codesOf("5,35 9 * * *", options)).toEqual(["too-frequent"]);
    expect(codesOf("*/59 * * * *", options)).toContain("too-frequent");
  });
});

describe("a warning", () => {
  test.each([
    ["7 9 31 * *", ["short-months"]],
    ["7 9 15,30 * *", ["short-months"]],
    ["7 9 31W * *", ["short-months"]],
    ["7 9 * * 1#5", ["short-months"]],
    ["7 9 31 1,3 *", []],
    ["7 9 25-31 * *", []],
    ["7 9 L * *", []],
    ["7 9 29 2 *", ["leap-day"]],
    ["*/7 * * * *", ["uneven-step"]],
    ["7 */5 * * *", ["uneven-step"]],
    ["*/15 * * * *", []],
    ["0 9 * * *", ["minute-zero"]],
    ["cron(7 9 1 1 ? 2020)", ["never-again"]],
    ["every(15 minutes)", []],
  ])("for %s is %j", (expression, codes) => {
    expect(codesOf(expression)).toEqual(codes);
  });

  test("proposes L or the next 1st for month-end work", () => {
    const [warning] = parseSchedule("7 0 31 * *", { timezone: "UTC" }).warnings(NOW);
    expect(warning?.message).toContain("use L (the last day) or the 1st of the next month");
  });

  test("asks for a zone where an hour is fixed and none is named", () => {
    expect(codesOf("7 9 * * *", {})).toEqual(["no-timezone"]);
    expect(codesOf("7 * * * *", {})).toEqual([]);
    expect(codesOf("7 9 * * *", { timezone: "UTC" })).toEqual([]);
  });

  test("names the dates of the next two years on which a clock change meets a slot, and what follows", () => {
    const timezone = "America/New_York";
    const messages = (expression: string, dst: ScheduleOptions["dst"] = {}) =>
      parseSchedule(expression, { timezone, dst })
        .warnings(NOW)
        .map(({ code, message }) => `${code} ${message}`);
    expect(messages("30 2 * * *")).toEqual([
      "dst-gap 2027-03-14 02:30 does not exist in America/New_York (2027-03-14 02:00 to 03:00): those slots are skipped",
      "dst-gap 2028-03-12 02:30 does not exist in America/New_York (2028-03-12 02:00 to 03:00): those slots are skipped",
    ]);
    expect(messages("30 1 * * *")).toEqual([
      "dst-repeat 2027-11-07 01:30 comes twice in America/New_York (2027-11-07 01:00 to 02:00): it runs at the first pass",
      "dst-repeat 2028-11-05 01:30 comes twice in America/New_York (2028-11-05 01:00 to 02:00): it runs at the first pass",
    ]);
    expect(messages("30 2 * * *", { gap: "run-after" })[0]).toContain(
      "one slot follows at the first instant after it",
    );
    expect(messages("30 1 * * *", { repeat: "both" })[0]).toContain("it runs at both passes");
    expect(messages("30 9 * * *")).toEqual([]);
    expect(messages("*/15 * * * *")).toEqual([]);
    expect(messages("30 1 * * 1-5")).toEqual([]);
  });

  test("tells that a start between two minutes is the watchdog's", () => {
    expect(codesOf("every(15 minutes)", { timezone: "UTC", startsAtMs: NOW + 7 })).toEqual(["off-minute"]);
  });
});
