import { describe, expect, test } from "vitest";
import { walk } from "../support/brute-force-walker.ts";
import { timeCases } from "../support/schedule-cases.ts";

const YEAR = 366 * 86_400_000;

/** Cron cases that AWS or crontab(5) documents, and whose slots a walk by the minute reaches in reasonable time. */
const documented = timeCases().filter(({ error, expression, expect: slots, from, certainty }) => {
  const last = Date.parse(slots?.at(-1) ?? "");
  return (
    error !== true &&
    (certainty === "documented" || certainty === "recorded") &&
    !/^(rate|at)\(/.test(expression.trim()) &&
    last - Date.parse(from) < 3 * YEAR
  );
});

describe("the brute-force walker", () => {
  test("is judged by most of the cases", () => {
    expect(documented.length).toBeGreaterThan(120);
  });

  test.each(
    documented.map((each) => [`${each.expression.slice(0, 60)} in ${each.timezone} from ${each.from}`, each]),
  )(
    "finds the documented slots of %s",
    (_name, { dialect, expression, timezone, from, expect: slots = [], alt = [] }) => {
      const until = Date.parse(slots.at(-1) ?? from) + 1;
      const walked = walk({ dialect, expression, timezone, from: Date.parse(from) + 1, until });
      const found = walked
        .slice(0, 5)
        .map((instant) => new Date(instant).toISOString().replace(".000Z", "Z"));
      expect([slots, ...alt]).toContainEqual(found);
    },
  );
});
