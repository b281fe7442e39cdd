import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { FUNCTION_MEMORY_MB, type Story, storyCost, totalUsd } from "../../../lib/core/costs/run-cost.ts";
import { STORY_COUNTS } from "../../../lib/core/costs/story-counts.ts";

const page = readFileSync("docs/costs.md", "utf8");
const compute = { memoryMb: FUNCTION_MEMORY_MB };
const perMillion = (story: Story): number => totalUsd(storyCost(story, compute)) * 1e6;
const dollars = (usd: number): string => `$${usd.toFixed(2)}`;

test("the page on costs shows each story with what was counted, and its price", () => {
  const head = ["", "invocations", "write units", "read units", "queue requests", "log bytes", "a million"];
  const rows = (Object.keys(STORY_COUNTS) as Story[])
    .filter((story) => !story.startsWith("a pass"))
    .map((story) => {
      const { dispatches, deliveries, writeUnits, readUnits, sends, hides, logBytes } = STORY_COUNTS[story];
      const counts = [
        dispatches + deliveries,
        writeUnits,
        readUnits,
        sends + hides + 2 * deliveries,
        Math.round(logBytes / 10) * 10,
      ];
      const shown = counts.map((count) => String(Math.round(count * 100) / 100));
      return [story, ...shown, dollars(perMillion(story))];
    });
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  expect(page).toContain(lines.join("\n"));
});

test("the page on costs sums up a run that succeeded", () => {
  const watched = perMillion("watched, for each slot");
  for (const story of ["succeeded", "succeeded, with a lock"] as const)
    expect(page).toContain(dollars(perMillion(story) + watched));
});
