import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseSchedule, type ScheduleOptions } from "../../lib/core/schedule/schedule.ts";
import { hoursOfChange, isIntervalLike, type WalkOptions, walk } from "../support/brute-force-walker.ts";
import { ZONES } from "../support/schedule-cases.ts";
import { awsExpressions, unixExpressions } from "../support/schedule-expressions.ts";

const DAY = 86_400_000;
const FROM_2000 = Date.UTC(2000, 0, 1);
const UNTIL_2100 = Date.UTC(2100, 0, 1);

/** SCHEDULE_FULL=1 looks at every clock change of every zone; the default run at a sample of both. */
const isFull = process.env["SCHEDULE_FULL"] === "1";

const never = /never comes/;

/** The library's slots, or undefined for an expression that it rightly refuses: one that never fires. */
const slotsOf = (options: WalkOptions, dst: ScheduleOptions["dst"] = {}): number[] | undefined => {
  const { expression, dialect, timezone, from, until } = options;
  try {
    return [...parseSchedule(expression, { dialect, timezone, dst }).slots(from, until)];
  } catch (error) {
    if (error instanceof Error && never.test(error.message)) return undefined;
    throw error;
  }
};

const compare = (options: WalkOptions): void => {
  const { gap = "skip", repeat = "first" } = options;
  const slots = slotsOf(options, { gap, repeat });
  if (slots !== undefined) expect(slots).toEqual(walk(options));
};

const zones = fc.constantFrom(...(isFull ? Intl.supportedValuesOf("timeZone") : ZONES));

const policies = fc.record({
  gap: fc.constantFrom("skip", "run-after"),
  repeat: fc.constantFrom("first", "last", "both"),
});

/** An expression of either dialect. Interval-like ones follow elapsed time, so no policy is given for them. */
const expressions = fc.oneof(
  unixExpressions.map((expression) => ({ dialect: "unix" as const, expression })),
  awsExpressions.map((expression) => ({ dialect: "aws" as const, expression })),
);

const withPolicy = (
  options: Omit<WalkOptions, "gap" | "repeat">,
  policy: { readonly gap: "skip" | "run-after"; readonly repeat: "first" | "last" | "both" },
): WalkOptions => (isIntervalLike(options) ? options : { ...options, ...policy });

describe("slots against a walk by the minute", () => {
  test("agree around clock changes from 2000 to 2100, with every policy", () => {
    const property = fc.property(
      expressions,
      zones,
      fc.integer({ min: 2000, max: 2099 }),
      fc.nat(),
      fc.integer({ min: -3 * 24 * 60, max: 60 }),
      policies,
      ({ dialect, expression }, timezone, year, which, minutes, policy) => {
        const yearStart = Date.UTC(year, 0, 1);
        const changes = hoursOfChange(timezone, yearStart, Date.UTC(year + 1, 0, 1));
        const around = changes[which % Math.max(1, changes.length)] ?? yearStart;
        const from = around + minutes * 60_000;
        compare(withPolicy({ dialect, expression, timezone, from, until: from + 4 * DAY }, policy));
      },
    );
    fc.assert(property, { numRuns: isFull ? 20_000 : 1_500 });
  });

  test("agree over months far from clock changes", () => {
    const property = fc.property(
      expressions,
      zones,
      fc.integer({ min: FROM_2000 / 60_000, max: UNTIL_2100 / 60_000 }),
      ({ dialect, expression }, timezone, minute) => {
        const from = minute * 60_000;
        const options = { dialect, expression, timezone, from, until: from + 70 * DAY } as const;
        const slots = slotsOf(options);
        if (slots !== undefined) expect(slots).toEqual(walk(options));
      },
    );
    fc.assert(property, { numRuns: isFull ? 2_000 : 60 });
  });

  test.each(
    isFull
      ? Intl.supportedValuesOf("timeZone")
      : ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza"],
  )(
    "agree at each clock change of %s from 2000 to 2100",
    (timezone) => {
      for (const change of hoursOfChange(timezone, FROM_2000, UNTIL_2100)) {
        for (const expression of ["*/10 * * * *", "0,15,30,45 0,1,2,3,23 * * *"]) {
          compare({
            dialect: "unix",
            expression,
            timezone,
            from: change - 3 * 3_600_000,
            until: change + 5 * 3_600_000,
          });
        }
      }
    },
    600_000,
  );

  test("single questions agree with the list", () => {
    const property = fc.property(
      expressions,
      zones,
      fc.integer({ min: FROM_2000 / 60_000, max: UNTIL_2100 / 60_000 }),
      fc.integer({ min: 1, max: 59_999 }),
      ({ dialect, expression }, timezone, minute, odd) => {
        const from = minute * 60_000 + odd;
        const slots = slotsOf({ dialect, expression, timezone, from, until: from + 40 * DAY });
        if (slots === undefined) return;
        const schedule = parseSchedule(expression, { dialect, timezone });
        expect(schedule.next(from)).toBe(slots[0] ?? schedule.next(from));
        for (const [index, slot] of slots.slice(0, 20).entries()) {
          expect(schedule.has(slot)).toBe(true);
          expect(schedule.has(slot + 1)).toBe(false);
          expect(schedule.next(slot - 1)).toBe(slot);
          expect(schedule.previous(slot + 1)).toBe(slot);
          if (index > 0) expect(schedule.previous(slot)).toBe(slots[index - 1]);
        }
      },
    );
    fc.assert(property, { numRuns: isFull ? 2_000 : 150 });
  });
});
