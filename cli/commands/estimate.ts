import type { Command } from "commander";
import { InvalidInput } from "../../lib/core/errors.ts";
import { PRICES } from "../../lib/core/prices.ts";
import { type WatchingCost, watchingCost } from "../../lib/core/watching-cost.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines, tableLines } from "../output.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface EstimateOptions extends CommonOptions {
  readonly watching?: true;
  readonly pools?: number;
}

const JOBS = [10, 100, 1_000];

const dollars = (usd: number): string => `$${usd.toFixed(2)}`;

type Row = readonly [what: string, of: (cost: WatchingCost) => number];

const rowsFor = ({ alarms, alarmMetrics, metrics, metricsAtMost }: WatchingCost): readonly Row[] => [
  [`${alarms.count} alarms over ${alarmMetrics.count} metrics`, (cost) => cost.alarmMetrics.usd],
  [`${metrics.count} metrics, while all is well`, (cost) => cost.metrics.usd],
  ["key of the topics", (cost) => cost.key.usd],
  ["dashboard (three of an account are free)", (cost) => cost.dashboard.usd],
  ["together", (cost) => cost.total.usd],
  [`with all ${metricsAtMost.count} metrics in every hour`, (cost) => cost.total.atMostUsd],
  ["more with ownAlarms in every job, while all is well", (cost) => cost.perJob.usd],
  ["more with ownAlarms in every job, at most", (cost) => cost.perJob.atMostUsd],
];

const estimate = async (options: EstimateOptions): Promise<ExitCode> => {
  if (!options.watching)
    throw new InvalidInput("usage", "say what to estimate", {
      field: "watching",
      hint: "belfry estimate --watching",
    });
  const pool = { memoryMb: 256, concurrency: 2 };
  const pools = Object.fromEntries(Array.from({ length: options.pools ?? 1 }, (_, n) => [`pool-${n}`, pool]));
  const costs = JOBS.map((jobs) => watchingCost(jobs, pools));
  const { region, asOf } = PRICES;
  if (options.json) {
    printJson({ currency: "USD", per: "month", region, asOf, pools: options.pools ?? 1, watching: costs });
    return EXIT.done;
  }
  const [first] = costs;
  const rows = first === undefined ? [] : rowsFor(first);
  printLines(
    tableLines(
      ["A MONTH", ...JOBS.map((jobs) => `${jobs} JOBS`)],
      rows.map(([what, of]) => [what, ...costs.map((cost) => dollars(of(cost)))]),
    ),
  );
  note(`list prices of ${region}, ${asOf}, without the free tier`);
  return EXIT.done;
};

/** `belfry estimate`: dollars before they are spent. */
export const addEstimate = (program: Command): void => {
  addVerb(program, {
    usage: "estimate",
    summary: "show what a deployment costs a month",
    examples: [
      ["estimate --watching", "alarms, metrics and dashboard at 10, 100 and 1,000 jobs"],
      ["estimate --watching --pools 3 --json", "with three pools, for a program"],
    ],
    exits: ["0  shown"],
  })
    .option("--watching", "what it costs that somebody notices")
    .addOption(wholeNumber("--pools <n>", "how many pools there are (default: 1)", [1, 50]))
    .action(ending(estimate));
};
