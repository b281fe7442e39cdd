import type { Command } from "commander";
import { Conflict, InvalidInput } from "../../lib/core/errors.ts";
import type { RetryDeadAnswer, RunsAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect, type Operate } from "../client.ts";
import { EXIT, type ExitCode, exitCodeOfError } from "../exit-codes.ts";
import { errorFacts, note, printJson, printLines } from "../output.ts";
import { seriesLine } from "../series-text.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";
import { actOnRuns, confirm } from "./acts.ts";
import { stopSeries } from "./backfill.ts";

interface RetryOptions extends CommonOptions {
  readonly dead?: true;
  readonly job?: string;
  readonly parallel?: number;
  readonly stop?: true;
  readonly shard?: readonly string[];
  readonly yes?: true;
}

/** As many as the router lists at once; that is enough to name the jobs and to say how much it is. */
const MOST = 1_000;

const countDead = async (operate: Operate, job: string | undefined): Promise<ReadonlyMap<string, number>> => {
  const { runs } = await operate.get<RunsAnswer>("/v1/runs", { state: "dead", job, limit: MOST });
  const byJob = Map.groupBy(runs, (run) => run.job);
  return new Map([...byJob].map(([name, its]) => [name, its.length]));
};

/** One answer: the job's series as it is now, or why it refused. */
const retryDeadOf = async (
  operate: Operate,
  job: string,
  { parallel, json }: RetryOptions,
): Promise<readonly [unknown, ExitCode]> => {
  try {
    const path = `/v1/jobs/${encodeURIComponent(job)}/retry-dead`;
    const { series } = await operate.post<RetryDeadAnswer>(path, { parallel });
    if (!json) printLines([series === null ? `${job} has no dead runs` : seriesLine(series)]);
    return [series ?? { job, total: 0 }, EXIT.done];
  } catch (error) {
    if (!(error instanceof Conflict || error instanceof InvalidInput)) throw error;
    if (!json) note(`error: ${errorFacts(error).message}`);
    return [{ job, error: errorFacts(error) }, exitCodeOfError(error)];
  }
};

const retryDead = async (options: RetryOptions): Promise<ExitCode> => {
  const { job, json } = options;
  const operate = connect(options);
  const dead = await countDead(operate, job);
  const total = [...dead.values()].reduce((sum, count) => sum + count, 0);
  if (total === 0) {
    if (json) printJson([]);
    else note("there are no dead runs");
    return EXIT.done;
  }
  const count = total === MOST ? `${MOST} dead runs or more` : `${total} dead runs`;
  await confirm(`retry ${count}?`, options.yes === true);
  const answers: unknown[] = [];
  const codes: ExitCode[] = [];
  for (const name of dead.keys()) {
    const [answer, code] = await retryDeadOf(operate, name, options);
    answers.push(answer);
    codes.push(code);
  }
  if (json) printJson(answers);
  else note('a few at a time, in the background: "belfry backfill --list" shows how far they are');
  return codes.find((code) => code === EXIT.invalid) ?? codes.find((code) => code !== EXIT.done) ?? EXIT.done;
};

/** Either some or all. */
const checkChoice = (isNamed: boolean, isAll: boolean): void => {
  if (isNamed && isAll)
    throw new InvalidInput("usage", "--dead is for all dead runs: leave it out, or the named runs", {
      field: "dead",
    });
  if (!isNamed && !isAll)
    throw new InvalidInput("usage", "name the runs to retry, or say --dead for all dead ones", {
      field: "run",
    });
};

const checkUsage = (runIds: readonly string[], { dead, job, parallel, stop, shard }: RetryOptions): void => {
  if (dead === undefined && (job ?? parallel ?? stop) !== undefined) {
    const field = job !== undefined ? "job" : parallel !== undefined ? "parallel" : "stop";
    throw new InvalidInput("usage", `--${field} goes with --dead, which is not given`, { field });
  }
  checkChoice(runIds.length > 0, dead === true);
  if (shard !== undefined && runIds.length !== 1)
    throw new InvalidInput("usage", "--shard needs the one run whose shards are to be retried", {
      field: "shard",
    });
  if (stop === true && job === undefined)
    throw new InvalidInput("usage", "--stop needs the job whose dead runs are being retried", {
      field: "job",
    });
};

const retry = async (runIds: readonly string[], options: RetryOptions): Promise<ExitCode> => {
  const json = options.json === true;
  checkUsage(runIds, options);
  if (options.stop === true && options.job !== undefined)
    return stopSeries(connect(options), options.job, { kind: "retry", json });
  if (options.dead === true) return retryDead(options);
  const body = options.shard === undefined ? {} : { shards: options.shard };
  return actOnRuns(connect(options), runIds, { path: "retry", body, json });
};

/** `belfry retry`: ended or parked runs again, under the identity they have. */
export const addRetry = (program: Command): void => {
  addVerb(program, {
    usage: "retry [runs...]",
    summary: "run ended or parked runs again, as the same occurrences",
    examples: [
      ["retry clean-sessions~20261007T180000Z", "one run, with a new set of attempts"],
      ["retry send-reports~20261007T180000Z --shard eu-1", "one failed shard of a run, and not the others"],
      ["retry --dead --job clean-sessions --yes", "all dead runs of a job, a few at a time"],
      ["retry --dead --job clean-sessions --stop", "hand out no more of them"],
    ],
    exits: [
      "0  all are queued again; with --dead: begun",
      "3  one is done, or on its way",
      "4  no stack answers",
    ],
  })
    .option("--shard <key...>", "of the named run: only these of its failed shards")
    .option("--dead", "all dead runs instead of named ones")
    .option("--job <name>", "with --dead: only those of this job")
    .addOption(
      wholeNumber(
        "--parallel <count>",
        "with --dead: runs of a job on their way at once (default: 5 at most)",
        [1, 1_000],
      ),
    )
    .option("--stop", "with --dead and --job: hand out nothing more; runs on their way end as they would")
    .option("--yes", "with --dead: do not ask")
    .action(ending(retry));
};
