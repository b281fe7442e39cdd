import { expect, test } from "vitest";
import { roughText } from "../../../lib/core/duration.ts";

test.each([
  [400, "1 second"],
  [5_041, "5 seconds"],
  [119_999, "119 seconds"],
  [120_000, "2 minutes"],
  [7_199_999, "119 minutes"],
  [7_200_000, "2 hours"],
  [172_800_000, "2 days"],
])("%d ms are, roughly, %s", (ms, text) => {
  expect(roughText(ms)).toBe(text);
});
