import type { Command } from "commander";
import { ASSUMED_START_MS, ASSUMED_WARM_MS } from "../../lib/core/costs/cold-starts.ts";
import { type Estimate, estimate, type JobEstimate, type Saving } from "../../lib/core/costs/estimate.ts";
import { PRICES } from "../../lib/core/costs/prices.ts";
import {
  ASSUMED_CALL_MS,
  CPU_MS,
  FUNCTION_MEMORY_MB,
  type Story,
  storyCost,
  totalUsd,
} from "../../lib/core/costs/run-cost.ts";
import { STORY_COUNTS } from "../../lib/core/costs/story-counts.ts";
import { type WatchingCost, watchingCost } from "../../lib/core/costs/watching-cost.ts";
import { durationMs, durationText } from "../../lib/core/duration.ts";
import { InvalidInput } from "../../lib/core/errors.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, pairLines, printJson, printLines, tableLines } from "../output.ts";
import { checkStage } from "../simulate/choice.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";
import { buildHere } from "./diff.ts";

interface EstimateOptions extends CommonOptions {
  readonly watching?: true;
  readonly pools?: number;
  readonly handler?: string;
}

const { region, asOf } = PRICES;
const PRICED = { currency: "USD", region, asOf } as const;
const priceNote = `list prices of ${region}, ${asOf}, without the free tier`;

const dollars = (usd: number): string => `$${usd.toFixed(2)}`;
/** Nobody changes anything for less than a cent. */
const LEAST_SAVING_USD = 0.01;
/** A job may cost less than a cent. */
const fine = (usd: number): string => (usd === 0 || usd >= 1 ? dollars(usd) : `$${usd.toFixed(4)}`);

const MILLION = 1_000_000;

/** Of each story, what a million of them cost. */
const perMillion = (handlerMs: number): { readonly [story: string]: number } =>
  Object.fromEntries(
    (Object.keys(STORY_COUNTS) as Story[])
      .filter((story) => !story.startsWith("a pass"))
      .map((story) => [
        story,
        totalUsd(storyCost(story, { memoryMb: FUNCTION_MEMORY_MB, handlerMs })) * MILLION,
      ]),
  );

const rowOf = ({ job, pool, runs, usdPerMonth, usdPerMillionRuns }: JobEstimate): readonly string[] => [
  job,
  pool,
  String(runs),
  fine(usdPerMonth),
  fine(usdPerMillionRuns),
];

const SAVINGS: { readonly [kind in Saving["kind"]]: (of: readonly string[]) => string } = {
  pool: ([pool]) => `the pool ${pool} merged into another`,
  schedule: (jobs) => `${jobs.join(", ")}, which strike together, as one job`,
  batch: ([pool]) =>
    `ten messages at a time in the pool ${pool}, if they always came together (there is no setting)`,
  memory: ([pool]) => `128 MB for the pool ${pool}, if its handlers took no longer`,
};

const printEstimate = (answer: Estimate, handlerMs: number): void => {
  const { jobs, coldStarts, fixed, runsUsdPerMonth, usdPerMonth, savings } = answer;
  printLines(tableLines(["JOB", "POOL", "RUNS A MONTH", "A MONTH", "A MILLION RUNS"], jobs.map(rowOf)));
  printLines([
    "",
    ...pairLines([
      ["runs", fine(runsUsdPerMonth)],
      [
        `cold starts: ${coldStarts.dispatcher} of the dispatcher, ${coldStarts.workers} of workers`,
        fine(coldStarts.usdPerMonth),
      ],
      ["alarms, metrics, dashboard, key", dollars(fixed.watchingUsd)],
      ["polling of empty queues", dollars(fixed.pollingUsd)],
      ["a pass of watchdog and notifier each minute", dollars(fixed.passesUsd)],
      ...(fixed.pingsUsd === 0
        ? []
        : [["addresses of monitors: secret and alarm", dollars(fixed.pingsUsd)] as const]),
      ["together, a month", dollars(usdPerMonth)],
    ]),
  ]);
  // For people; programs get all of them.
  const worthwhile = savings.filter((saving) => saving.usdPerMonth >= LEAST_SAVING_USD);
  if (worthwhile.length > 0) printLines(["", "cheaper, a month:"]);
  printLines(pairLines(worthwhile.map(({ kind, of, usdPerMonth: usd }) => [SAVINGS[kind](of), fine(usd)])));
  const handler = handlerMs === 0 ? "handlers' own time apart" : `handlers take ${durationText(handlerMs)}`;
  note(`${priceNote}; ${handler}; no retries`);
  note(
    `assumed: ${ASSUMED_CALL_MS} ms for a call to table or queue, ${ASSUMED_START_MS} ms for a cold start`,
  );
};

const estimateJobs = async ({ json, stage, handler }: EstimateOptions): Promise<ExitCode> => {
  const handlerMs = handler === undefined ? 0 : durationMs(handler, "handler");
  const manifest: Manifest = await buildHere();
  checkStage(manifest, stage);
  const answer = estimate(manifest, {
    nowMs: Date.now(),
    handlerMs,
    ...(stage === undefined ? {} : { stage }),
  });
  if (json) {
    const assumed = {
      handlerMs,
      callMs: ASSUMED_CALL_MS,
      cpuMs: CPU_MS,
      startMs: ASSUMED_START_MS,
      warmMs: ASSUMED_WARM_MS,
    };
    printJson({ ...PRICED, per: "month", assumed, ...answer, usdPerMillion: perMillion(handlerMs) });
  } else printEstimate(answer, handlerMs);
  return EXIT.done;
};

const JOBS = [10, 100, 1_000];

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

const estimateWatching = (options: EstimateOptions): ExitCode => {
  const pool = { memoryMb: 256, concurrency: 2 };
  const pools = Object.fromEntries(Array.from({ length: options.pools ?? 1 }, (_, n) => [`pool-${n}`, pool]));
  const costs = JOBS.map((jobs) => watchingCost(jobs, pools));
  if (options.json) {
    printJson({ ...PRICED, per: "month", pools: options.pools ?? 1, watching: costs });
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
  note(priceNote);
  return EXIT.done;
};

const estimateVerb = async (options: EstimateOptions): Promise<ExitCode> => {
  if (options.watching) return estimateWatching(options);
  if (options.pools === undefined) return estimateJobs(options);
  throw new InvalidInput("usage", "--pools goes with --watching, which is not given", {
    field: "pools",
    hint: "the jobs of this folder are in the pools that they name",
  });
};

/** `belfry estimate`: dollars before they are spent. */
export const addEstimate = (program: Command): void => {
  addVerb(program, {
    usage: "estimate",
    summary: "show what the jobs of this folder cost a month, and what would be cheaper",
    stage: "count the schedules that fire in this stage (default: all of them); no stack is asked",
    examples: [
      ["estimate", "each job, the fixed part, and what would be cheaper"],
      ["estimate --handler '2 seconds' --json", "with handlers that take so long, for a program"],
      ["estimate --watching", "alarms, metrics and dashboard at 10, 100 and 1,000 jobs"],
      ["estimate --watching --pools 3 --json", "with three pools, for a program"],
    ],
    exits: ["0  shown"],
  })
    .option("--handler <duration>", "how long a handler takes (default: its time is left out)")
    .option("--watching", "only what it costs that somebody notices, for any project")
    .addOption(wholeNumber("--pools <n>", "with --watching: how many pools (default: 1)", [1, 50]))
    .action(ending(estimateVerb));
};
