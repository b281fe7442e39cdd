/**
 * `npm run bench [-- --rounds N] [-- --only <part>]`: what the budgets promise, each beside its alternative in one
 * run, in turn. Writes bench/results.md, unless only a part was asked for: then it prints.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { devStart } from "./parts/dev-start.ts";
import { imports } from "./parts/imports.ts";
import { messages } from "./parts/messages.ts";
import { nextSlots } from "./parts/next-slots.ts";
import { stories } from "./parts/stories.ts";
import { type Section, table } from "./section.ts";

const PARTS: { readonly [name: string]: (rounds: number) => Promise<Section> } = {
  stories,
  imports,
  messages,
  "next-slots": nextSlots,
  dev: devStart,
};

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "15" }, only: { type: "string" } },
});

const COMPARED = [
  "@aws-sdk/client-dynamodb",
  "@aws-sdk/client-sqs",
  "@aws-lambda-powertools/batch",
  "@aws-lambda-powertools/idempotency",
  "@middy/core",
  "croner",
  "cron-parser",
  "esbuild",
];

const versionOf = (name: string): string => {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${JSON.parse(readFileSync(file, "utf8")).version}`;
};

const RESULTS = new URL("./results.md", import.meta.url);

const headOf = (): string => {
  const [cpu] = cpus();
  const [load = 0] = loadavg();
  return [
    `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${cpus().length} x ${cpu?.model.trim()}, load ${load.toFixed(0)} at the start.`,
    "The machine was busy with other work, so absolute times are too long: read the ratios, which are medians of rounds in",
    "which both sides took their turn.",
    "",
    `${COMPARED.map(versionOf).join(", ")}.`,
  ].join("\n");
};

const budgetsOf = (sections: readonly Section[]): string =>
  table(
    ["what", "budget", "measured", "met"],
    sections.flatMap(({ budgets }) =>
      budgets.map(({ what, budget, measured, met }) => [what, budget, measured, met ? "yes" : "**no**"]),
    ),
  );

/** Budgets that take longer than a bench should. */
const ELSEWHERE = `## Measured elsewhere

- 100,000 shards enqueued, at most 1.2 x a bare loop: \`npm run shards\`, [results/shards.md](results/shards.md).
- Handlers in a thread, beside the main thread and a process: [results/worker-thread.md](results/worker-thread.md).
- What measuring made cheaper: [results/savings.md](results/savings.md).`;

const pageOf = (sections: readonly Section[]): string =>
  [
    "# Costs and speed, beside the alternatives",
    "`npm run bench` writes this page.",
    head,
    "## Budgets",
    budgetsOf(sections),
    ...sections.flatMap(({ title, text }) => [`## ${title}`, text]),
    ELSEWHERE,
  ].join("\n\n");

const head = headOf();
const sections: Section[] = [];
for (const [name, part] of Object.entries(PARTS)) {
  if (values.only !== undefined && values.only !== name) continue;
  console.error(`${name} ...`);
  sections.push(await part(Number(values.rounds)));
  // After each part: a run of many minutes that is stopped leaves what it has.
  if (values.only === undefined) writeFileSync(RESULTS, `${pageOf(sections)}\n`);
}
if (values.only !== undefined) console.log(pageOf(sections));
