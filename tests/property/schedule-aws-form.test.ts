import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInput } from "../../lib/core/errors.ts";
import {
  parseSchedule,
  type Schedule,
  type ScheduleOptions,
  unionOf,
} from "../../lib/core/schedule/schedule.ts";
import { awsFires, isDocumented, type Reading } from "../support/aws-evaluator.ts";
import { hoursOfChange } from "../support/brute-force-walker.ts";
import { timeCases, ZONES } from "../support/schedule-cases.ts";
import { awsExpressions, unixExpressions } from "../support/schedule-expressions.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;
const isFull = process.env["SCHEDULE_FULL"] === "1";

type Window = readonly [number, number];
type Deployed = Pick<Schedule, "aws" | "slots">;

/** A month without clock changes, the end of a leap February, and the changes of 2027. */
const windowsOf = (timezone: string): readonly Window[] => [
  [Date.UTC(2027, 0, 1), Date.UTC(2027, 1, 2)],
  [Date.UTC(2028, 1, 25), Date.UTC(2028, 2, 3)],
  ...hoursOfChange(timezone, Date.UTC(2027, 0, 1), Date.UTC(2028, 0, 1)).map(
    (change): Window => [change - 2 * DAY, change + 2 * DAY],
  ),
];

const firesOf = ({ aws }: Deployed, window: Window, reading: Reading): Set<number> =>
  new Set(aws.expressions.flatMap((expression) => awsFires(expression, window, reading)));

const minus = (left: Iterable<number>, right: ReadonlySet<number>): number[] =>
  [...left].filter((value) => !right.has(value));

/** The hours around a clock change are all that the watchdog may have to complete. */
const nearChange = (timezone: string, instant: number): boolean =>
  hoursOfChange(timezone, instant - DAY, instant + DAY).some(
    (change) => Math.abs(change - instant) <= 3 * HOUR,
  );

const checkWindow = (schedule: Deployed, timezone: string, window: Window): void => {
  const slots = new Set(schedule.slots(...window));
  for (const reading of ["first", "both"] as const) {
    const fires = firesOf(schedule, window, reading);
    const missing = minus(slots, fires);
    if (schedule.aws.kind === "watchdog-completed") {
      if (schedule.aws.expressions.length > 0) {
        expect(missing.filter((instant) => !nearChange(timezone, instant))).toEqual([]);
      }
    } else expect(missing).toEqual([]);
  }
  if (schedule.aws.kind === "exact") expect(minus(firesOf(schedule, window, "first"), slots)).toEqual([]);
};

const check = (schedule: Deployed, timezone: string): void => {
  for (const { expression } of schedule.aws.expressions) expect(expression).toSatisfy(isDocumented);
  for (const window of windowsOf(timezone)) checkWindow(schedule, timezone, window);
};

const parsed = (expression: string, options: ScheduleOptions): Schedule | undefined => {
  try {
    return parseSchedule(expression, options);
  } catch (error) {
    if (error instanceof InvalidInput) return undefined;
    throw error;
  }
};

describe("the deployed form, by AWS's documented rules", () => {
  test("yields the slots of every accepted case, or more, or what the watchdog completes", () => {
    let count = 0;
    for (const { expression, dialect, timezone } of timeCases()) {
      const schedule = parsed(expression, { dialect, timezone });
      if (schedule === undefined) continue;
      count += 1;
      check(schedule, timezone);
    }
    expect(count).toBeGreaterThan(190);
  });

  test.each([
    "every(1 minute)",
    "every(7 minutes)",
    "every(25 minutes)",
    "every(32 minutes)",
    "every(45 minutes)",
    "every(90 minutes)",
    "every(7 hours)",
    "every(36 hours)",
    "rate(1 day)",
    "every(5 days)",
    "every(1 week)",
    "every(3 weeks)",
    "rate(365 days)",
  ])("yields the slots of %s, whatever the anchor", (expression) => {
    for (const anchorMs of [0, Date.UTC(2026, 11, 31, 23, 59), Date.UTC(2031, 5, 1, 10, 7), -60_000]) {
      const schedule = parseSchedule(expression, { anchorMs });
      expect(schedule.aws.kind).not.toBe("watchdog-completed");
      check(schedule, "UTC");
    }
  });

  test("leaves an interval whose start is between two minutes to the watchdog", () => {
    const { aws } = parseSchedule("every(15 minutes)", { startsAtMs: Date.UTC(2027, 0, 1, 0, 0, 30) });
    expect(aws).toMatchObject({ kind: "watchdog-completed", expressions: [] });
  });

  test("yields the slots of random expressions, zones and policies", () => {
    const property = fc.property(
      fc.oneof(unixExpressions, awsExpressions),
      fc.constantFrom(...ZONES),
      fc.record({
        gap: fc.constantFrom("skip", "run-after"),
        repeat: fc.constantFrom("first", "last", "both"),
      }),
      (expression, timezone, dst) => {
        const schedule = parsed(expression, { timezone, dst });
        if (schedule !== undefined) check(schedule, timezone);
      },
    );
    fc.assert(property, { numRuns: isFull ? 5_000 : 150 });
  });

  test("of several schedules is all their expressions, each once", () => {
    const daily = parseSchedule("0 9 * * *", { timezone: "Europe/Berlin" });
    const either = parseSchedule("0 9 13 * 5", { timezone: "Europe/Berlin" });
    const union = unionOf([daily, either, daily]);
    expect(union.aws.kind).toBe("exact");
    expect(union.aws.expressions.map(({ expression }) => expression)).toEqual([
      "cron(0 9 * * ? *)",
      "cron(0 9 13 * ? *)",
      "cron(0 9 ? * FRI *)",
    ]);
    check(union, "Europe/Berlin");
  });
});
