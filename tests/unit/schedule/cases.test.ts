import { describe, expect, test } from "vitest";
import { InvalidInput } from "../../../lib/core/errors.ts";
import { preview } from "../../../lib/core/schedule/preview.ts";
import { type TimeCase, timeCases } from "../../support/schedule-cases.ts";

/** The first five slots, or "error" for a refusal. */
const answer = ({ dialect, expression, timezone, from }: TimeCase): string | readonly string[] => {
  try {
    return preview({ dialect, expression, timezone, from, count: 5 }, 0).occurrences;
  } catch (error) {
    if (error instanceof InvalidInput) return "error";
    throw error;
  }
};

const accepted = ({ error, expect: slots, alt = [] }: TimeCase): readonly string[] =>
  [error ? "error" : (slots ?? []), ...alt].map((each) => JSON.stringify(each));

describe("the documented and recorded cases", () => {
  test.each(
    timeCases().map((each) => [
      `${each.expression.slice(0, 60)} in ${each.timezone || "no zone"} from ${each.from}`,
      each,
    ]),
  )("%s", (_name, each) => {
    expect(accepted(each)).toContain(JSON.stringify(answer(each)));
  });

  test("there are hundreds of them, so none is skipped in silence", () => {
    expect(timeCases().length).toBeGreaterThan(350);
  });
});
