import { describe, expect, test } from "vitest";
import { parseSchedule, type ScheduleOptions } from "../../../lib/core/schedule/schedule.ts";

const formOf = (expression: string, options: ScheduleOptions = {}): string => {
  const { kind, expressions } = parseSchedule(expression, options).aws;
  return [kind, ...expressions.map(({ expression: text, timezone }) => `${text} ${timezone}`)].join(" | ");
};

const NEW_YORK = { timezone: "America/New_York" };

describe("the AWS form", () => {
  test.each([
    ["0 9 * * 1", "exact | cron(0 9 ? * MON *) UTC"],
    ["0 9 * * 0", "exact | cron(0 9 ? * SUN *) UTC"],
    ["0 9 * * 6", "exact | cron(0 9 ? * SAT *) UTC"],
    ["0 9 * * 7", "exact | cron(0 9 ? * SUN *) UTC"],
    ["0 9 * * 5L", "exact | cron(0 9 ? * 6L *) UTC"],
    ["0 9 * * 1#2", "exact | cron(0 9 ? * 2#2 *) UTC"],
  ])("counts the weekday of %s as AWS does", (expression, form) => {
    expect(formOf(expression)).toBe(form);
  });

  test("is two expressions where either day field may match", () => {
    expect(formOf("0 5 2-8 * 4")).toBe("exact | cron(0 5 2-8 * ? *) UTC | cron(0 5 ? * THU *) UTC");
  });

  test("drops the half of a union that can never fire", () => {
    expect(formOf("0 0 31 4 0")).toBe("exact | cron(0 0 ? 4 SUN *) UTC");
  });

  test("is a superset where both day fields must match", () => {
    expect(formOf("0 0 */2 * 1")).toBe("superset | cron(0 0 ? * MON *) UTC");
  });

  test("is a superset for letters that AWS does not document", () => {
    expect(formOf("0 9 LW * *")).toBe("superset | cron(0 9 26-31 * ? *) UTC");
    expect(formOf("0 9 L-3 * *")).toBe("superset | cron(0 9 25-28 * ? *) UTC");
  });

  test("is in UTC where a wildcard meets a repeated hour, since only there both readings are one", () => {
    expect(formOf("*/15 * * * *", NEW_YORK)).toBe("exact | cron(0/15 * * * ? *) UTC");
    expect(formOf("*/20 * * * *", { timezone: "Australia/Lord_Howe" })).toBe(
      "superset | cron(0/10 * * * ? *) UTC",
    );
    expect(formOf("*/20 1-3 * * *", NEW_YORK)).toBe("superset | cron(0/20 5-8 * * ? *) UTC");
  });

  test("is completed by the watchdog where such a wildcard restricts the day too", () => {
    expect(formOf("*/20 1-3 * * 0", NEW_YORK)).toBe(
      "watchdog-completed | cron(0/20 1-3 ? * SUN *) America/New_York",
    );
  });

  test("stays exact where no clock change touches the slots", () => {
    expect(formOf("*/15 9-17 * * 1-5", NEW_YORK)).toBe(
      "exact | cron(0/15 9-17 ? * MON-FRI *) America/New_York",
    );
    expect(formOf("30 9 * * *", { ...NEW_YORK, dst: { gap: "run-after", repeat: "both" } })).toBe(
      "exact | cron(30 9 * * ? *) America/New_York",
    );
  });

  test("leaves to the watchdog what AWS does differently at a clock change", () => {
    const kindOf = (expression: string, dst: ScheduleOptions["dst"]) =>
      parseSchedule(expression, { ...NEW_YORK, ...(dst === undefined ? {} : { dst }) }).aws.kind;
    expect(kindOf("30 2 * * *", { gap: "run-after" })).toBe("watchdog-completed");
    expect(kindOf("30 1 * * *", { repeat: "last" })).toBe("watchdog-completed");
    expect(kindOf("30 1 * * *", { repeat: "both" })).toBe("watchdog-completed");
    expect(kindOf("30 2 * * *", undefined)).toBe("exact");
  });

  test("of an interval is a cron at its anchor, so that no start date is needed", () => {
    expect(formOf("every(15 minutes)")).toBe("exact | cron(0/15 * * * ? *) UTC");
    expect(formOf("rate(1 day)", { anchorMs: Date.UTC(2026, 0, 1, 9, 30) })).toBe(
      "exact | cron(30 9 * * ? *) UTC",
    );
    expect(formOf("every(90 minutes)")).toBe("exact | cron(0 0/3 * * ? *) UTC | cron(30 1/3 * * ? *) UTC");
    expect(formOf("every(1 week)")).toBe("exact | cron(0 0 ? * THU *) UTC");
    expect(formOf("every(7 minutes)")).toBe("superset | cron(* * * * ? *) UTC");
  });

  test("of a single slot is in UTC", () => {
    expect(formOf("at(2027-07-01T09:00)", NEW_YORK)).toBe("exact | at(2027-07-01T13:00:00) UTC");
  });

  test("sends no start or end date: what lies outside is dropped", () => {
    const startsAtMs = Date.UTC(2020, 0, 1);
    expect(formOf("0 9 * * *", { startsAtMs })).toBe("superset | cron(0 9 * * ? *) UTC");
  });

  test("splits what is longer than AWS takes", () => {
    const odd = (count: number) =>
      Array.from({ length: count / 2 }, (_, index) => (index % 2 === 0 ? index * 2 : index * 2 + 1)).join(
        ",",
      );
    const days = "1,3,4,6,7,9,10,12,13,15,16,18,19,21,22,24,25,27,28,30,31";
    const { kind, expressions } = parseSchedule(`${odd(60)} ${odd(24)} ${days} 1,2,4,5,7,9,11 *`).aws;
    expect(kind).toBe("exact");
    expect(expressions.length).toBeGreaterThan(0);
    for (const { expression } of expressions) expect(expression.length).toBeLessThanOrEqual(256);
    const years = Array.from({ length: 76 }, (_, index) => 2030 + index * 2 + (index % 2)).join(",");
    const long = parseSchedule(`0 0 9 1 1 ? ${years}`).aws;
    expect(long.expressions.length).toBe(2);
  });
});
