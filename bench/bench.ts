/**
 * `npm run bench [-- --rounds N] [-- --only <part>]`: what the budgets promise, each beside its alternative in one
 * run, in turn. Writes bench/results.md, unless only a part was asked for: then it prints. A part that fails says so in
 * its place, and the others go on; exit 1 then.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { devStart } from "./parts/dev-start.ts";
import { imports } from "./parts/imports.ts";
import { messages } from "./parts/messages.ts";
import { nextSlots } from "./parts/next-slots.ts";
import { passes } from "./parts/passes.ts";
import { sends } from "./parts/sends.ts";
import { stories } from "./parts/stories.ts";
import { type Section, table } from "./section.ts";

const PARTS: { readonly [name: string]: (rounds: number) => Promise<Section> } = {
  stories,
  imports,
  messages,
  sends,
  passes,
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

const loadText = (): string => (loadavg()[0] ?? 0).toFixed(0);
const startLoad = loadText();

/** Of the minute before; more than there are processors = others were at work. */
const machineText = (): string => {
  const [cpu] = cpus();
  return `${cpus().length} x ${cpu?.model.trim()}, load ${startLoad} at the start and ${loadText()} at the end`;
};

const headOf = (): string =>
  [
    `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${machineText()}.`,
    "Where the load is higher than the processors are many, absolute times are too long: read the ratios, which are medians of",
    "rounds in which both sides took their turn.",
    "",
    `${COMPARED.map(versionOf).join(", ")}.`,
  ].join("\n");

const budgetsOf = (sections: readonly Section[]): string =>
  table(
    ["what", "budget", "measured", "met"],
    sections.flatMap(({ budgets }) =>
      budgets.map(({ what, budget, measured, met }) => [what, budget, measured, met ? "yes" : "**no**"]),
    ),
  );

/** Budgets that take longer than a bench should. */
const ELSEWHERE = `## Measured elsewhere

- A run of many shards from its claim to its end, over the embedded stores: \`npm run shards\`, [results/shards.md](results/shards.md).
- Handlers in a thread, beside the main thread and a process: [results/worker-thread.md](results/worker-thread.md).
- What measuring made cheaper: [results/savings.md](results/savings.md).`;

const pageOf = (sections: readonly Section[]): string =>
  [
    "# Costs and speed, beside the alternatives",
    "`npm run bench` writes this page.",
    headOf(),
    "## Budgets",
    budgetsOf(sections),
    ...sections.flatMap(({ title, text }) => [`## ${title}`, text]),
    ELSEWHERE,
  ].join("\n\n");

const failed = (part: string, error: unknown): Section => {
  console.error(error);
  process.exitCode = 1;
  const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const text = `This part failed: ${why.split("\n", 1)[0]}`;
  return { title: part, text, budgets: [{ what: part, budget: "", measured: "it failed", met: false }] };
};

const { only } = values;
const chosen = Object.entries(PARTS).filter(([name]) => only === undefined || only === name);
if (chosen.length === 0)
  throw new Error(`there is no part "${only}"; there are ${Object.keys(PARTS).join(", ")}`);
const sections: Section[] = [];
for (const [index, [name, part]] of chosen.entries()) {
  console.error(`${index + 1} of ${chosen.length}: ${name} ...`);
  const begunMs = performance.now();
  sections.push(await part(Number(values.rounds)).catch((error: unknown) => failed(name, error)));
  console.error(`${name} took ${((performance.now() - begunMs) / 1_000).toFixed(0)} s`);
  // After each part: a run of many minutes that is stopped leaves what it has.
  if (only === undefined) writeFileSync(RESULTS, `${pageOf(sections)}\n`);
}
if (only !== undefined) console.log(pageOf(sections));
process.exit();
