import { FUNCTION_MEMORY_MB, type Story, storyCost, totalUsd } from "../../lib/core/costs/run-cost.ts";
import { STORY_COUNTS } from "../../lib/core/costs/story-counts.ts";
import { TEST_CREDENTIALS } from "../../tests/support/embedded-table.ts";
import { playStories } from "../../tests/support/stories.ts";
import { type Section, table } from "../section.ts";

const BUDGET_USD = { succeeded: 5, "succeeded, with a lock": 5.65 } as const;

const perMillion = (story: Story): number =>
  totalUsd(storyCost(story, { memoryMb: FUNCTION_MEMORY_MB })) * 1_000_000;

/** Requests and bytes of a run, by what became of it, counted at the wire; and what a million of them cost. */
export const stories = async (): Promise<Section> => {
  process.env["AWS_ACCESS_KEY_ID"] ??= TEST_CREDENTIALS.accessKeyId;
  process.env["AWS_SECRET_ACCESS_KEY"] ??= TEST_CREDENTIALS.secretAccessKey;
  const played = await playStories();
  const rows = Object.entries(played).map(([story, counts]) => {
    const { writes, writeUnits, reads, readUnits, sends, hides, logLines, logBytes, bytesOut, bytesIn } =
      counts;
    const figures = [
      writes,
      writeUnits,
      reads,
      readUnits,
      sends,
      hides,
      logLines,
      logBytes,
      bytesOut,
      bytesIn,
    ];
    const price =
      story in STORY_COUNTS && !story.startsWith("a pass") ? `$${perMillion(story as Story).toFixed(2)}` : "";
    return [story, ...figures.map((figure) => String(Math.round(figure * 100) / 100)), price];
  });
  return {
    title: "Requests and bytes of a run",
    text: [
      "Counted where calls leave the clients, over the embedded table and queues; Lambda's own receives and deletes come on top. The price is",
      "that of [docs/costs.md](../docs/costs.md), from the recorded counts; a pass, which is made each minute, is in the fixed part.",
      "",
      table(
        [
          "",
          "writes",
          "units",
          "reads",
          "units",
          "sends",
          "hides",
          "log lines",
          "log bytes",
          "bytes out",
          "bytes in",
          "a million",
        ],
        rows,
      ),
    ].join("\n"),
    budgets: (["succeeded", "succeeded, with a lock"] as const).map((story) => ({
      what: `list price of a million runs: ${story}`,
      budget: `at most $${BUDGET_USD[story].toFixed(2)}`,
      measured: `$${perMillion(story).toFixed(2)}, and $${perMillion("watched, for each slot").toFixed(2)} for the watchdog's reads`,
      met: perMillion(story) <= BUDGET_USD[story],
    })),
  };
};
