import { describe, expect, test } from "vitest";
import { preview, previewLine, readFrom } from "../../../lib/core/schedule/preview.ts";

const NOW = Date.parse("2026-11-30T00:00Z");

const answer = (request: unknown): unknown => JSON.parse(previewLine(JSON.stringify(request), NOW));

describe("a preview", () => {
  test("has the slots strictly after now, the meaning and the warnings", () => {
    expect(preview({ expression: "7 9 * * 1-5", timezone: "Asia/Shanghai", count: 2 }, NOW)).toEqual({
      expression: "7 9 * * 1-5",
      dialect: "unix",
      timezone: "Asia/Shanghai",
      description: "at 09:07 on Monday to Friday",
      occurrences: ["2026-11-30T01:07:00Z", "2026-12-01T01:07:00Z"],
      warnings: [],
    });
  });

  test("of a rate counts from its start", () => {
    const { occurrences } = preview(
      { expression: "rate(7 hours)", from: "2026-01-01T00:00:30Z", count: 2 },
      NOW,
    );
    expect(occurrences).toEqual(["2026-01-01T07:00:30Z", "2026-01-01T14:00:30Z"]);
  });

  test("of every() counts from 1970", () => {
    const { occurrences } = preview(
      { expression: "every(7 hours)", from: "2026-01-01T00:00:30Z", count: 1 },
      NOW,
    );
    expect(Date.parse(occurrences[0] ?? "") % (7 * 3_600_000)).toBe(0);
  });

  test("reads a start without a zone as UTC", () => {
    const { occurrences } = preview(
      { expression: "0 * * * *", timezone: "Asia/Tokyo", from: "2026-01-01T05:30", count: 1 },
      NOW,
    );
    expect(occurrences).toEqual(["2026-01-01T06:00:00Z"]);
  });

  test("ends where the schedule ends", () => {
    expect(preview({ expression: "at(2027-01-01T00:00)" }, NOW).occurrences).toEqual([
      "2027-01-01T00:00:00Z",
    ]);
  });
});

describe("a start", () => {
  test("is read on the clock of the zone, the first pass of two", () => {
    expect(readFrom("2026-11-01T01:30", "America/New_York")).toBe(Date.parse("2026-11-01T05:30Z"));
    expect(readFrom("2026-11-01", "America/New_York")).toBe(Date.parse("2026-11-01T04:00Z"));
    expect(readFrom("2026-11-01T01:30:00+02:00", "America/New_York")).toBe(Date.parse("2026-10-31T23:30Z"));
  });

  test.each([
    "yesterday",
    "2026-02-30",
    "2026-02-30T00:00Z",
    "2026-01-01T24:00",
    "2026-03-08T02:30",
    "20260101",
    "2026-1-1",
  ])("'%s' is refused", (text) => {
    expect(() => readFrom(text, "America/New_York")).toThrow(expect.objectContaining({ field: "from" }));
  });
});

describe("a line", () => {
  test("answers with its id, whatever that is", () => {
    expect(answer({ id: "a1", expression: "0 9 * * *", count: 1 })).toMatchObject({
      id: "a1",
      occurrences: ["2026-11-30T09:00:00Z"],
    });
    expect(answer({ id: 7, expression: "60 * * * *" })).toEqual({
      id: 7,
      error: {
        code: "invalid_schedule",
        message: "minute: '60' is outside 0-59",
        field: "minute",
        hint: "minute takes 0-59",
      },
    });
  });

  test("holds no line end", () => {
    expect(previewLine(JSON.stringify({ id: "a\nb", expression: "x\ny" }), NOW)).not.toContain("\n");
  });

  test.each([
    ["not JSON", "{", "line"],
    ["no object", "[]", "line"],
    ["empty", "", "line"],
    ["no expression", "{}", "expression"],
    ["an unknown member", '{"expression":"* * * * *","zone":"UTC"}', "zone"],
    ["an unknown dialect", '{"expression":"* * * * *","dialect":"cron"}', "dialect"],
    ["a zone that is no text", '{"expression":"* * * * *","timezone":1}', "timezone"],
    ["a start that is no text", '{"expression":"* * * * *","from":1}', "from"],
    ["no slots", '{"expression":"* * * * *","count":0}', "count"],
    ["half a slot", '{"expression":"* * * * *","count":1.5}', "count"],
    ["too many slots", '{"expression":"* * * * *","count":1001}', "count"],
    ["an unknown zone", '{"expression":"* * * * *","timezone":"Mars/Phobos"}', "timezone"],
  ])("with %s answers an error that names the member", (_name, line, field) => {
    expect(JSON.parse(previewLine(line, NOW))).toMatchObject({ error: { field } });
  });
});
