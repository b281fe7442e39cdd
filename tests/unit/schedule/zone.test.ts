import { describe, expect, test } from "vitest";
import { parseZone } from "../../../lib/core/schedule/zone.ts";
import { offsetAt } from "../../support/brute-force-walker.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const transitionsOf = (name: string, from: string, until: string): string[] =>
  parseZone(name)
    .transitionsIn(Date.parse(from), Date.parse(until))
    .map(
      ({ atMs, beforeMs, afterMs }) => `${new Date(atMs).toISOString()} ${beforeMs / HOUR} ${afterMs / HOUR}`,
    );

describe("a zone", () => {
  test("knows its transitions to the minute, also those at one past midnight", () => {
    expect(transitionsOf("America/St_Johns", "2010-01-01T00:00Z", "2011-01-01T00:00Z")).toEqual([
      "2010-03-14T03:31:00.000Z -3.5 -2.5",
      "2010-11-07T02:31:00.000Z -2.5 -3.5",
    ]);
    expect(transitionsOf("Africa/Monrovia", "1971-01-01T00:00Z", "1973-01-01T00:00Z")).toEqual([
      "1972-01-07T00:44:30.000Z -0.7416666666666667 0",
    ]);
  });

  test("knows transitions a week apart that undo one another", () => {
    expect(transitionsOf("America/Boa_Vista", "2000-10-01T00:00Z", "2000-11-01T00:00Z")).toEqual([
      "2000-10-08T04:00:00.000Z -4 -3",
      "2000-10-15T03:00:00.000Z -3 -4",
    ]);
  });

  test("knows a day that a date line took", () => {
    expect(transitionsOf("Pacific/Apia", "2011-12-01T00:00Z", "2012-01-01T00:00Z")).toEqual([
      "2011-12-30T10:00:00.000Z -10 14",
    ]);
  });

  test("answers a range without its end", () => {
    const zone = parseZone("Europe/Berlin");
    const change = Date.parse("2027-03-28T01:00Z");
    expect(zone.transitionsIn(change, change + 1).length).toBe(1);
    expect(zone.transitionsIn(change - DAY, change)).toEqual([]);
  });

  test("has the offset that Intl has, before, at and after each transition", () => {
    for (const name of ["Africa/Casablanca", "Australia/Lord_Howe", "America/St_Johns", "Asia/Gaza"]) {
      const zone = parseZone(name);
      for (const { atMs, beforeMs, afterMs } of zone.transitionsIn(
        Date.UTC(2000, 0, 1),
        Date.UTC(2040, 0, 1),
      )) {
        expect([zone.offsetAt(atMs - 1), zone.offsetAt(atMs)]).toEqual([beforeMs, afterMs]);
        expect([offsetAt(name, atMs - 1_000), offsetAt(name, atMs)]).toEqual([beforeMs, afterMs]);
      }
    }
  });

  test("is calm nowhere within a day after a transition, nor up to one", () => {
    const zone = parseZone("America/New_York");
    for (const { atMs } of zone.transitionsIn(Date.UTC(2000, 0, 1), Date.UTC(2100, 0, 1))) {
      for (const distance of [-1, 0, HOUR, DAY - 1]) expect(zone.calmAt(atMs + distance)).toBeUndefined();
      const calm = zone.calmAt(atMs - 10 * DAY);
      if (calm !== undefined) expect(calm.untilMs).toBeLessThanOrEqual(atMs - DAY);
    }
  });
});
