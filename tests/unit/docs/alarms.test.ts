import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ruleText } from "../../../lib/core/alarms/alarm-text.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { METRICS } from "../../../lib/core/alarms/metrics.ts";

const ALARMS = alarmsOf({ jobs: [], pools: { default: { memoryMb: 256, concurrency: 10 } } });
const page = readFileSync("docs/alarms.md", "utf8");

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

test("the page on alarms shows each with its rule, its meaning and what to do", () => {
  const rows = ALARMS.map((alarm) => {
    const { about, key, meaning, remedy, topic } = alarm;
    return [`\`${key}\``, about, topic, ruleText(alarm), meaning, remedy];
  });
  expect(page).toContain(table(["alarm", "about", "topic", "rings when", "meaning", "what to do"], rows));
});

test("the page on alarms shows each metric with what it counts", () => {
  const rows = Object.entries(METRICS).map(([name, counts]) => [`\`${name}\``, counts]);
  expect(page).toContain(table(["metric", "what it is"], rows));
});

test("every meaning and every remedy is a sentence", () => {
  for (const { meaning, remedy } of ALARMS) {
    expect(meaning).toMatch(/^[A-Z].*\.$/);
    expect(remedy).toMatch(/^[A-Z`].*\.$/);
  }
});
