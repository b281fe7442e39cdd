import { expect, test } from "vitest";
import { durationMs, durationText } from "../../../lib/core/duration.ts";
import { nearest } from "../../../lib/core/read-options.ts";

test.each([
  ["1 second", 1_000],
  ["90 seconds", 90_000],
  ["5 minutes", 300_000],
  ["1 hour", 3_600_000],
  ["2 days", 172_800_000],
  ["1 week", 604_800_000],
])("%s is %i ms, and back", (text, ms) => {
  expect(durationMs(text, "timeout")).toBe(ms);
  expect(durationText(ms)).toBe(text);
});

test.each([
  "",
  "5",
  "5m",
  "5 min",
  "minutes",
  "-1 minutes",
  "1.5 hours",
  "1  hour",
  " 1 hour",
  300,
  null,
  undefined,
  {},
  5n,
])("%s is no duration: the error names the option and shows an example", (value) => {
  expect(() => durationMs(value, "timeout")).toThrow(
    expect.objectContaining({
      code: "invalid_duration",
      field: "timeout",
      hint: expect.stringContaining("'5 minutes'"),
    }),
  );
});

test("a name that is near enough is offered, a far one is not", () => {
  const names = ["timeout", "timezone", "retry"];
  expect(nearest("timout", names)).toBe("timeout");
  expect(nearest("timeZone", names)).toBe("timezone");
  expect(nearest("rtery", names)).toBe("retry");
  expect(nearest("concurrency", names)).toBeUndefined();
});
