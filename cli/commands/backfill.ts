import { type Command, Option } from "commander";
import { InvalidInput } from "../../lib/core/errors.ts";
import type {
  BackfillAnswer,
  BackfillPlanAnswer,
  SeriesAnswer,
  SeriesListAnswer,
} from "../../lib/inbound/operate/answers.ts";
import { REDO_STATES } from "../../lib/inbound/operate/schemas.ts";
import { connect, type Operate } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { exitCodeOfSeries, followSeries } from "../follow-series.ts";
import { note, printJson, printLines, tableLines } from "../output.ts";
import { planLines, SERIES_HEADINGS, seriesLine, seriesRow } from "../series-text.ts";
import { addVerb, type CommonOptions, ending, type VerbText, wholeNumber } from "../verb.ts";
import { confirm } from "./acts.ts";

interface BackfillOptions extends CommonOptions {
  readonly from?: string;
  readonly to?: string;
  readonly parallel?: number;
  readonly redo?: readonly string[];
  readonly dryRun?: true;
  readonly detach?: true;
  readonly yes?: true;
  readonly list?: true;
  readonly stop?: true;
}

const list = async (operate: Operate, { json }: BackfillOptions): Promise<ExitCode> => {
  const { series } = await operate.get<SeriesListAnswer>("/v1/series");
  if (json) printJson(series);
  else if (series.length === 0) note("there has been no backfill, and no retry of all dead runs");
  else printLines(tableLines(SERIES_HEADINGS, series.map(seriesRow)));
  return EXIT.done;
};

/** Nothing more is handed out; the runs on their way end as they would. */
export const stopSeries = async (
  operate: Operate,
  job: string,
  { kind, json }: { readonly kind: "backfill" | "retry"; readonly json: boolean },
): Promise<ExitCode> => {
  const { series } = await operate.post<SeriesAnswer>(
    `/v1/jobs/${encodeURIComponent(job)}/series/${kind}/stop`,
    {},
  );
  if (json) printJson(series);
  else printLines([seriesLine(series)]);
  return EXIT.done;
};

/** Does this very backfill go on already? Then there is nothing to ask. */
const goesOn = async (operate: Operate, path: string, plan: BackfillPlanAnswer): Promise<boolean> => {
  try {
    const { series } = await operate.get<SeriesAnswer>(`${path}/series/backfill`);
    return series.state === "open" && series.from === plan.from && series.to === plan.to;
  } catch (error) {
    if (error instanceof InvalidInput && error.code === "unknown_series") return false;
    throw error;
  }
};

const follow = async (operate: Operate, begun: BackfillAnswer, json: boolean): Promise<ExitCode> => {
  note(`${begun.takenUp ? "goes on already" : "begun"}; Ctrl-C leaves it going on in the background`);
  const { series, interrupted } = await followSeries(operate, begun.series);
  if (interrupted) {
    note(
      "it goes on in the background; the same command again shows how far it is, " +
        `and "belfry backfill ${series.job} --stop" ends it`,
    );
    return EXIT.interrupted;
  }
  const [parked] = series.outstanding;
  if (parked !== undefined && series.state !== "done")
    note(`${parked.runId} is parked: the backfill goes on when somebody retries or cancels it`);
  if (json) printJson(series);
  else printLines([seriesLine(series)]);
  return exitCodeOfSeries(series);
};

const requestOf = ({ from, to, parallel, redo }: BackfillOptions) => {
  if (from !== undefined && to !== undefined) return { from, to, parallel, redo };
  const field = from === undefined ? "from" : "to";
  throw new InvalidInput("usage", "--from and --to say which slots", { field });
};

const dryRun = (plan: BackfillPlanAnswer, json: boolean): ExitCode => {
  if (json) printJson(plan);
  else printLines(planLines(plan));
  return EXIT.done;
};

const start = async (operate: Operate, job: string, options: BackfillOptions): Promise<ExitCode> => {
  const json = options.json === true;
  const request = requestOf(options);
  const path = `/v1/jobs/${encodeURIComponent(job)}`;
  const plan = await operate.post<BackfillPlanAnswer>(`${path}/backfill`, { ...request, dryRun: true });
  if (options.dryRun) return dryRun(plan, json);
  for (const line of planLines(plan)) note(line);
  if (!(await goesOn(operate, path, plan))) {
    if (plan.toRun === 0) return json ? dryRun(plan, json) : EXIT.done;
    await confirm(`run ${plan.toRun} slots of ${plan.job}?`, options.yes === true);
  }
  const begun = await operate.post<BackfillAnswer>(`${path}/backfill`, request);
  if (options.detach === undefined) return follow(operate, begun, json);
  if (json) printJson(begun.series);
  else printLines([seriesLine(begun.series)]);
  return EXIT.done;
};

const backfill = async (job: string | undefined, options: BackfillOptions): Promise<ExitCode> => {
  if (options.list) return list(connect(options), options);
  if (job === undefined)
    throw new InvalidInput("usage", "name the job, or say --list for what goes on", { field: "job" });
  if (options.stop)
    return stopSeries(connect(options), job, { kind: "backfill", json: options.json === true });
  return start(connect(options), job, options);
};

const redoOf = (text: string): readonly string[] => {
  const states = text === "none" ? [] : text.split(",");
  const wrong = states.find((state) => !REDO_STATES.some((known) => known === state));
  if (wrong === undefined) return states;
  throw new InvalidInput("invalid_option", `--redo cannot be "${wrong}"`, {
    field: "redo",
    hint: `it takes ${REDO_STATES.join(", ")}, with commas, or none`,
  });
};

const TEXT: VerbText = {
  usage: "backfill [job]",
  summary: "run past slots of a job, a few at a time, without being in the way of live ones",
  examples: [
    [
      "backfill daily-digest --from 2026-01-01 --to 2026-02-01 --dry-run",
      "what would run, and what is left alone",
    ],
    [
      "backfill daily-digest --from 2026-01-01 --to 2026-02-01",
      "the same range, with a bar; again = goes on watching",
    ],
    [
      "backfill daily-digest --from 2026-01-01 --to 2026-02-01 --redo dead",
      "only slots without a record, and dead ones",
    ],
    ["backfill --list", "what goes on, and the last of each job"],
    ["backfill daily-digest --stop", "hand out nothing more"],
  ],
  exits: [
    "0  done, and no run ended badly; with --detach: begun",
    "1  done, and some run ended dead, cancelled, expired or missed",
    "3  another backfill of the job goes on; stopped; or a run is parked",
    "4  no stack answers",
  ],
};

/** `belfry backfill`: past slots, a few at a time. */
export const addBackfill = (program: Command): void => {
  addVerb(program, TEXT)
    .option("--from <time>", "slots from then on; without a zone it is the job's")
    .option("--to <time>", "up to, and without, then; slots to come are left out")
    .addOption(wholeNumber("--parallel <count>", "runs on their way at once (default: 1)", [1, 1_000]))
    .addOption(
      new Option(
        "--redo <states>",
        "slots that ended so run again: of missed, expired, skipped, dead, cancelled, with commas, or none (default: missed,expired)",
      ).argParser(redoOf),
    )
    .addOption(new Option("--dry-run", "say what would run, start nothing").conflicts(["detach", "yes"]))
    .option("--detach", "begin it and return at once")
    .option("--yes", "do not ask")
    .addOption(
      new Option("--list", "backfills and bulk retries that go on, and the last ones").conflicts([
        "stop",
        "from",
        "to",
      ]),
    )
    .addOption(
      new Option("--stop", "hand out nothing more; runs on their way end as they would").conflicts([
        "from",
        "to",
      ]),
    )
    .action(ending(backfill));
};
