import type { Command } from "commander";
import { InvalidInput } from "../../lib/core/errors.ts";
import type { RunAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { printJson, printLines } from "../output.ts";
import { runLines } from "../run-text.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";

interface ShowOptions extends CommonOptions {
  readonly slot?: string;
}

/** Only run ids have a tilde; names of jobs cannot. */
const isRunId = (text: string): boolean => text.includes("~");

const show = async (subject: string, options: ShowOptions): Promise<ExitCode> => {
  const { slot } = options;
  if (isRunId(subject) && slot !== undefined)
    throw new InvalidInput("usage", "a run id names its slot already: leave out --slot", { field: "slot" });
  const operate = connect(options);
  const name = encodeURIComponent(subject);
  const { run, timezone } = isRunId(subject)
    ? await operate.get<RunAnswer>(`/v1/runs/${name}`)
    : await operate.get<RunAnswer>(`/v1/jobs/${name}/run`, { slot });
  if (options.json) printJson(run);
  else printLines(runLines(run, timezone));
  return EXIT.done;
};

/** `belfry show`: one run with everything that is known of it. */
export const addShow = (program: Command): void => {
  addVerb(program, {
    usage: "show <run-or-job>",
    summary: "show a run, or the last run of a job: attempts, input, result, error and stack",
    examples: [
      ["show clean-sessions", "its last run"],
      ["show clean-sessions --slot 2026-10-08T02:00", "the run of a slot, in the job's zone"],
      ["show clean-sessions~20261007T180000Z", "a run by its id"],
    ],
    exits: ["0  shown", "4  no stack answers"],
  })
    .option("--slot <time>", "of the job, the run of this slot; without a zone it is the job's")
    .action(ending(show));
};
