import type { Command } from "commander";
import { InvalidInput } from "../../lib/core/errors.ts";
import type { RunsAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect, type Operate } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson } from "../output.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";
import { actOnRuns, confirm } from "./acts.ts";

interface RetryOptions extends CommonOptions {
  readonly dead?: true;
  readonly job?: string;
  readonly yes?: true;
}

/** As many as the router lists at once; who has more says the command again. */
const MOST = 1_000;

const deadRuns = async (operate: Operate, job: string | undefined): Promise<readonly string[]> => {
  const { runs } = await operate.get<RunsAnswer>("/v1/runs", { state: "dead", job, limit: MOST });
  return runs.map(({ runId }) => runId);
};

const retry = async (runIds: readonly string[], options: RetryOptions): Promise<ExitCode> => {
  const json = options.json === true;
  if (options.dead === undefined && options.job !== undefined)
    throw new InvalidInput("usage", "--job narrows --dead, which is not given", { field: "job" });
  if ((options.dead === true) === runIds.length > 0)
    throw new InvalidInput("usage", "name the runs to retry, or say --dead for all dead ones", {
      field: "run",
    });
  const operate = connect(options);
  if (options.dead === undefined) return actOnRuns(operate, runIds, { path: "retry", json });
  const dead = await deadRuns(operate, options.job);
  if (dead.length === 0) {
    if (json) printJson([]);
    else note("there are no dead runs");
    return EXIT.done;
  }
  await confirm(`retry ${dead.length} dead runs?`, options.yes === true);
  return actOnRuns(operate, dead, { path: "retry", json });
};

/** `belfry retry`: ended or parked runs again, under the identity they have. */
export const addRetry = (program: Command): void => {
  addVerb(program, {
    usage: "retry [runs...]",
    summary: "run ended or parked runs again, as the same occurrences",
    examples: [
      ["retry clean-sessions~20261007T180000Z", "one run, with a new set of attempts"],
      ["retry --dead --job clean-sessions --yes", "all dead runs of a job, one after the other"],
    ],
    exits: ["0  all are queued again", "3  one is done, or on its way", "4  no stack answers"],
  })
    .option("--dead", "all dead runs instead of named ones")
    .option("--job <name>", "with --dead: only those of this job")
    .option("--yes", "with --dead: do not ask")
    .action(ending(retry));
};
