import { describe, expect, test } from "vitest";
import { InvalidInput } from "../../../lib/core/errors.ts";
import { at, every } from "../../../lib/core/schedule/expressions.ts";
import { parseSchedule, type ScheduleOptions, unionOf } from "../../../lib/core/schedule/schedule.ts";

const isoOf = (instant: number): string => new Date(instant).toISOString().replace(":00.000Z", "Z");

/** The first `count` slots strictly after `from`, in UTC to the minute. */
const slotsAfter = (
  expression: string,
  from: string,
  count: number,
  options: ScheduleOptions = {},
): string[] => {
  const schedule = parseSchedule(expression, options);
  const found: string[] = [];
  let slot = schedule.next(Date.parse(from));
  while (slot !== undefined && found.length < count) {
    found.push(isoOf(slot));
    slot = schedule.next(slot);
  }
  return found;
};

const inZone = (timezone: string): ScheduleOptions => ({ timezone });
const NEW_YORK = inZone("America/New_York");

describe("weekdays", () => {
  test.each([
    ["0 9 * * 1", "2026-09-07T09:00Z"],
    ["0 9 * * 0", "2026-09-06T09:00Z"],
    ["0 9 * * 7", "2026-09-06T09:00Z"],
    ["0 9 * * 6", "2026-09-05T09:00Z"],
  ])("%s counts from Sunday = 0 = 7", (expression, first) => {
    expect(slotsAfter(expression, "2026-09-01T00:00Z", 1)).toEqual([first]);
  });

  test("a day of the month and a weekday are a union", () => {
    expect(slotsAfter("0 5 2-8 * 4", "2021-01-09T17:48:39Z", 1)).toEqual(["2021-01-14T05:00Z"]);
  });

  test("a range may end on Sunday by name, since SUN and 7 are one day", () => {
    expect(slotsAfter("0 0 * * FRI-SUN", "2026-01-01T00:00Z", 4)).toEqual([
      "2026-01-02T00:00Z",
      "2026-01-03T00:00Z",
      "2026-01-04T00:00Z",
      "2026-01-09T00:00Z",
    ]);
  });
});

describe("months of different length", () => {
  test("the 31st is passed over where it is missing, and L never is", () => {
    expect(slotsAfter("0 0 31 * *", "2026-01-31T00:00Z", 4)).toEqual([
      "2026-03-31T00:00Z",
      "2026-05-31T00:00Z",
      "2026-07-31T00:00Z",
      "2026-08-31T00:00Z",
    ]);
    expect(slotsAfter("0 0 L * *", "2024-02-01T00:00Z", 3)).toEqual([
      "2024-02-29T00:00Z",
      "2024-03-31T00:00Z",
      "2024-04-30T00:00Z",
    ]);
  });

  test("days counted from the end pass over months that are too short", () => {
    expect(slotsAfter("0 0 L-30 * *", "2026-01-02T00:00Z", 3)).toEqual([
      "2026-03-01T00:00Z",
      "2026-05-01T00:00Z",
      "2026-07-01T00:00Z",
    ]);
  });

  test("a date that comes in one of its months is fine, and a leap day waits for its year", () => {
    expect(slotsAfter("0 0 31 4,5 *", "2026-01-01T00:00Z", 1)).toEqual(["2026-05-31T00:00Z"]);
    expect(slotsAfter("0 0 29 2 *", "2026-01-01T00:00Z", 1)).toEqual(["2028-02-29T00:00Z"]);
    expect(slotsAfter("0 0 29 2 *", "2096-03-01T00:00Z", 1)).toEqual(["2104-02-29T00:00Z"]);
  });
});

describe("time zones", () => {
  test("the hour is the zone's, once per local day", () => {
    expect(slotsAfter("0 8 * * *", "2025-10-27T09:00Z", 2, inZone("Asia/Shanghai"))).toEqual([
      "2025-10-28T00:00Z",
      "2025-10-29T00:00Z",
    ]);
  });

  test("a daily job runs once on the day an hour comes twice", () => {
    expect(slotsAfter("30 1 * * *", "2025-11-01T16:00Z", 2, NEW_YORK)).toEqual([
      "2025-11-02T05:30Z",
      "2025-11-03T06:30Z",
    ]);
  });

  test("a gap at midnight takes its own hour, not the day", () => {
    expect(slotsAfter("0 */2 * * *", "2025-04-24T19:10:20Z", 4, inZone("Africa/Cairo"))).toEqual([
      "2025-04-24T20:00Z",
      "2025-04-24T23:00Z",
      "2025-04-25T01:00Z",
      "2025-04-25T03:00Z",
    ]);
  });

  test("the switch day itself keeps its local times", () => {
    expect(slotsAfter("5 0 * * *", "2019-10-26T23:05Z", 1, inZone("Europe/Paris"))).toEqual([
      "2019-10-27T23:05Z",
    ]);
    expect(slotsAfter("0 18 * * *", "2025-03-29T18:00:01Z", 1, inZone("Europe/London"))).toEqual([
      "2025-03-30T17:00Z",
    ]);
    expect(slotsAfter("4 16 * * *", "2025-03-09T00:00Z", 1, NEW_YORK)).toEqual(["2025-03-09T20:04Z"]);
  });

  test("an every-minute job runs in both passes of a repeated hour", () => {
    const slots = [
      ...parseSchedule("* * * * *", inZone("Europe/London")).slots(
        Date.parse("2026-10-25T00:00Z"),
        Date.parse("2026-10-25T02:00Z"),
      ),
    ];
    expect(slots.length).toBe(120);
  });

  test.each(["Mars/Phobos", "america/new_york", "EDT", "IST", "+05:30", "", "Europe/", "GMT+25", "Local"])(
    "'%s' is refused, never read as UTC",
    (timezone) => {
      expect(() => parseSchedule("0 9 * * *", { timezone })).toThrow(
        expect.objectContaining({ code: "unknown_timezone", field: "timezone" }),
      );
    },
  );

  test("wrong case is answered with the name", () => {
    expect(() => parseSchedule("0 9 * * *", { timezone: "europe/berlin" })).toThrow(
      expect.objectContaining({ hint: "write 'Europe/Berlin'" }),
    );
  });

  test.each([
    "US/Eastern",
    "Asia/Calcutta",
    "EST5EDT",
    "Etc/GMT+5",
    "GB",
    "Australia/NSW",
    "America/Port-au-Prince",
  ])("%s is a name of the tz database", (timezone) => {
    expect(parseSchedule("0 9 * * *", { timezone }).timezone).toBe(timezone);
  });
});

describe("the policy for clock changes", () => {
  const SPRING = "2026-03-07T12:00Z";
  const AUTUMN = "2026-10-31T12:00Z";

  test("run-after gives one slot at the first instant after the gap, however many fell into it", () => {
    const dst = { gap: "run-after" } as const;
    expect(slotsAfter("0,30 2 * * *", SPRING, 2, { ...NEW_YORK, dst })).toEqual([
      "2026-03-08T07:00Z",
      "2026-03-09T06:00Z",
    ]);
    expect(slotsAfter("0 2,3 * * *", SPRING, 2, { ...NEW_YORK, dst })).toEqual([
      "2026-03-08T07:00Z",
      "2026-03-09T06:00Z",
    ]);
  });

  test("last runs at the second pass, both at each", () => {
    expect(slotsAfter("30 1 * * *", AUTUMN, 2, { ...NEW_YORK, dst: { repeat: "last" } })).toEqual([
      "2026-11-01T06:30Z",
      "2026-11-02T06:30Z",
    ]);
    expect(slotsAfter("30 1 * * *", AUTUMN, 3, { ...NEW_YORK, dst: { repeat: "both" } })).toEqual([
      "2026-11-01T05:30Z",
      "2026-11-01T06:30Z",
      "2026-11-02T06:30Z",
    ]);
  });

  test("last skips a first pass whose repeat is further away than one looks at a time", () => {
    const options: ScheduleOptions = { ...NEW_YORK, dst: { repeat: "last" } };
    expect(slotsAfter("30 1 1 11 *", "2026-10-30T05:45Z", 1, options)).toEqual(["2026-11-01T06:30Z"]);
  });

  test("a year's last local time may come again in a second pass", () => {
    expect(slotsAfter("cron(*/30 1 1 11 ? 2026)", "2026-11-01T05:15Z", 9, NEW_YORK)).toEqual([
      "2026-11-01T05:30Z",
      "2026-11-01T06:00Z",
      "2026-11-01T06:30Z",
    ]);
  });

  test("does not touch interval-like schedules", () => {
    const dst = { gap: "run-after", repeat: "first" } as const;
    expect(slotsAfter("30 * * * *", "2026-11-01T05:00Z", 3, { ...NEW_YORK, dst })).toEqual([
      "2026-11-01T05:30Z",
      "2026-11-01T06:30Z",
      "2026-11-01T07:30Z",
    ]);
    expect(slotsAfter("30 */1 * * *", "2026-03-08T06:00Z", 2, { ...NEW_YORK, dst })).toEqual([
      "2026-03-08T06:30Z",
      "2026-03-08T07:30Z",
    ]);
  });

  test("a single slot in a gap is refused, one that comes twice is the first, or the last", () => {
    expect(() => parseSchedule("at(2026-03-08T02:30)", NEW_YORK)).toThrow("does not exist");
    expect(() => parseSchedule("at(2026-03-08T02:30)", { ...NEW_YORK, dst: { gap: "run-after" } })).toThrow(
      InvalidInput,
    );
    expect(slotsAfter("at(2026-11-01T01:30)", AUTUMN, 9, NEW_YORK)).toEqual(["2026-11-01T05:30Z"]);
    expect(slotsAfter("at(2026-11-01T01:30)", AUTUMN, 9, { ...NEW_YORK, dst: { repeat: "last" } })).toEqual([
      "2026-11-01T06:30Z",
    ]);
  });
});

describe("intervals", () => {
  test("are steady from their anchor, whether or not they divide an hour or a day", () => {
    expect(
      slotsAfter("every(2 minutes)", "2026-01-01T00:00Z", 3, {
        anchorMs: Date.parse("2026-01-01T00:00:07.003Z"),
      }),
    ).toEqual(["2026-01-01T00:00:07.003Z", "2026-01-01T00:02:07.003Z", "2026-01-01T00:04:07.003Z"]);
    const minutes = slotsAfter("every(7 minutes)", "2026-01-01T00:00Z", 400).map(
      (iso) => Date.parse(iso) / 60_000,
    );
    expect(new Set(minutes.slice(1).map((minute, index) => minute - (minutes[index] ?? 0)))).toEqual(
      new Set([7]),
    );
  });

  test("refuse an anchor finer than a millisecond", () => {
    expect(() => parseSchedule("every(2 minutes)", { anchorMs: 1.5 })).toThrow(InvalidInput);
    expect(() => parseSchedule("every(2 minutes)", { startsAtMs: Number.NaN })).toThrow(InvalidInput);
  });

  test("keep elapsed time across a clock change", () => {
    expect(
      slotsAfter("rate(24 hours)", "2026-10-31T15:00Z", 2, {
        ...NEW_YORK,
        anchorMs: Date.parse("2026-10-30T15:00Z"),
      }),
    ).toEqual(["2026-11-01T15:00Z", "2026-11-02T15:00Z"]);
  });

  test("count from 1970 unless told, so that a deploy moves nothing", () => {
    expect(slotsAfter(every("90 minutes"), "2026-01-01T00:10Z", 2)).toEqual([
      "2026-01-01T01:30Z",
      "2026-01-01T03:00Z",
    ]);
    expect(
      slotsAfter("every(1 day)", "2026-01-01T00:00Z", 1, { startsAtMs: Date.parse("2026-01-05T09:00Z") }),
    ).toEqual(["2026-01-05T09:00Z"]);
  });

  test("end with the calendar", () => {
    const schedule = parseSchedule("rate(1000000 days)");
    expect(schedule.next(8e15)).toBe(8.0352e15);
    expect(schedule.next(8.64e15)).toBeUndefined();
  });

  test("have a slot before 1970 too when that is asked", () => {
    expect(parseSchedule("every(1 hour)").has(-3_600_000)).toBe(true);
  });
});

describe("a changed schedule", () => {
  test("has its next slot where the new expression says, and none in between", () => {
    const changedAt = Date.parse("2026-05-04T15:00Z");
    const [slot] = parseSchedule("0 2 * * *").slots(changedAt, changedAt + 86_400_000);
    expect(isoOf(slot ?? 0)).toBe("2026-05-05T02:00Z");
  });
});

describe("the questions", () => {
  const schedule = parseSchedule("0 9 * * 1-5", {
    startsAtMs: Date.parse("2026-01-05T09:00Z"),
    endsAtMs: Date.parse("2026-01-07T09:00Z"),
  });

  test("a range holds its start and not its end", () => {
    const daily = parseSchedule("0 9 * * *");
    const nine = Date.parse("2026-01-05T09:00Z");
    expect([...daily.slots(nine, nine + 86_400_000)]).toEqual([nine]);
    expect([...daily.slots(nine + 1, nine + 86_400_000)]).toEqual([]);
    expect([...daily.slots(nine, nine)]).toEqual([]);
  });

  test("startsAt is the first instant that counts, endsAt the first that does not", () => {
    expect([...schedule.slots(0, Date.parse("2027-01-01T00:00Z"))].map(isoOf)).toEqual([
      "2026-01-05T09:00Z",
      "2026-01-06T09:00Z",
    ]);
    expect(schedule.next(Date.parse("2026-01-06T09:00Z"))).toBeUndefined();
    expect(schedule.previous(Date.parse("2026-01-05T09:00Z"))).toBeUndefined();
    expect(schedule.has(Date.parse("2026-01-07T09:00Z"))).toBe(false);
  });

  test("an end that is not after the start is refused", () => {
    expect(() => parseSchedule("0 9 * * *", { startsAtMs: 5, endsAtMs: 5 })).toThrow(
      "endsAt is not after startsAt",
    );
  });

  test("the last slot before an instant is found however far it lies", () => {
    const leap = parseSchedule("0 0 29 2 *");
    expect(isoOf(leap.previous(Date.parse("2026-01-01T00:00Z")) ?? 0)).toBe("2024-02-29T00:00Z");
    expect(parseSchedule("0 0 1 1 *").previous(0)).toBeUndefined();
    expect(isoOf(parseSchedule("cron(0 0 1 1 ? 1971)").previous(Date.parse("2199-01-01T00:00Z")) ?? 0)).toBe(
      "1971-01-01T00:00Z",
    );
  });

  test("far ends of time have no slots and no failure", () => {
    for (const timezone of ["UTC", "America/New_York"]) {
      const daily = parseSchedule("0 0 * * *", { timezone });
      expect(daily.next(8.64e15)).toBeUndefined();
      expect(daily.next(Number.POSITIVE_INFINITY)).toBeUndefined();
      expect(isoOf(daily.next(Number.NEGATIVE_INFINITY) ?? 0)).toBe(
        timezone === "UTC" ? "1970-01-01T00:00Z" : "1970-01-01T05:00Z",
      );
      expect(isoOf(daily.previous(8.64e15) ?? 0)).toBe(
        timezone === "UTC" ? "2199-12-31T00:00Z" : "2199-12-31T05:00Z",
      );
    }
  });

  test("a schedule ends with its years", () => {
    expect(parseSchedule("cron(0 0 1 1 ? 2020)").next(Date.parse("2026-01-01T00:00Z"))).toBeUndefined();
    expect(parseSchedule("0 0 1 1 *").next(Date.parse("2199-06-01T00:00Z"))).toBeUndefined();
  });
});

describe("several schedules of one job", () => {
  test("have one slot where they coincide", () => {
    const union = unionOf([parseSchedule("0 9 * * *"), parseSchedule("0 9,21 * * 1")]);
    const from = Date.parse("2026-01-05T00:00Z");
    expect([...union.slots(from, from + 2 * 86_400_000)].map(isoOf)).toEqual([
      "2026-01-05T09:00Z",
      "2026-01-05T21:00Z",
      "2026-01-06T09:00Z",
    ]);
    expect(union.has(Date.parse("2026-01-05T21:00Z"))).toBe(true);
    expect(isoOf(union.previous(Date.parse("2026-01-06T09:00Z")) ?? 0)).toBe("2026-01-05T21:00Z");
  });

  test("have the smallest gap of them together", () => {
    expect(unionOf([parseSchedule("0 9 * * *"), parseSchedule("20 9 * * 1")]).smallestGapMs).toBe(
      20 * 60_000,
    );
  });

  test("have a smallest gap also when they begin far away", () => {
    expect(
      unionOf([parseSchedule("at(2040-01-01T00:00)"), parseSchedule("at(2040-01-01T00:30)")]).smallestGapMs,
    ).toBe(1_800_000);
    expect(
      unionOf([parseSchedule("at(2040-01-01T00:00)"), parseSchedule("at(2040-01-01T00:00)")]).smallestGapMs,
    ).toBeUndefined();
  });

  test("are over when the last of them is", () => {
    const codesAt = (iso: string) =>
      unionOf([parseSchedule("at(2027-01-01T00:00)"), parseSchedule("at(2028-01-01T00:00)")])
        .warnings(Date.parse(iso))
        .map(({ code }) => code);
    expect(codesAt("2027-06-01T00:00Z")).not.toContain("never-again");
    expect(codesAt("2028-06-01T00:00Z")).toContain("never-again");
  });

  test("are described together, and warned about once", () => {
    const union = unionOf([parseSchedule("0 9 * * *"), parseSchedule("0 21 * * *")]);
    expect(union.describe()).toBe("at 09:00 every day; at 21:00 every day");
    expect(union.warnings(0).filter(({ code }) => code === "minute-zero").length).toBe(1);
  });

  test("none at all is refused", () => {
    expect(() => unionOf([])).toThrow(InvalidInput);
  });
});

test("every() and at() write the text that a job file may also hold", () => {
  expect(every("15 minutes")).toBe("every(15 minutes)");
  expect(at("2027-01-01T00:00")).toBe("at(2027-01-01T00:00)");
});
