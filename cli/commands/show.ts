import type { Command } from "commander";
import type { FlipView } from "../../lib/app/health/list-flips.ts";
import { InvalidInput } from "../../lib/core/errors.ts";
import type { FlipsAnswer, RunAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines, tableLines } from "../output.ts";
import { runLines } from "../run-text.ts";
import { bothTexts } from "../times.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";

interface ShowOptions extends CommonOptions {
  readonly slot?: string;
  readonly flips?: boolean;
}

/** Only run ids have a tilde; names of jobs cannot. */
const isRunId = (text: string): boolean => text.includes("~");

const flipRow = ({ at, from, to, alert }: FlipView, timezone: string): readonly string[] => [
  bothTexts(at, timezone),
  from === to ? to : `${from} -> ${to}`,
  alert === undefined ? "not told" : `${alert.topic}: ${alert.kind}: ${alert.reason}`,
];

const showFlips = async (subject: string, options: ShowOptions): Promise<ExitCode> => {
  if (isRunId(subject) || options.slot !== undefined)
    throw new InvalidInput("usage", "flips are a job's, not a run's", {
      field: "flips",
      hint: "belfry show <job> --flips",
    });
  const path = `/v1/jobs/${encodeURIComponent(subject)}/flips`;
  const { flips, timezone } = await connect(options).get<FlipsAnswer>(path);
  if (options.json) printJson(flips);
  else if (flips.length === 0) note(`the health of ${subject} has not changed so far`);
  else
    printLines(
      tableLines(
        ["WHEN", "HEALTH", "TOLD"],
        flips.map((flip) => flipRow(flip, timezone)),
      ),
    );
  return EXIT.done;
};

const show = async (subject: string, options: ShowOptions): Promise<ExitCode> => {
  const { slot, flips } = options;
  if (flips === true) return showFlips(subject, options);
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
      ["show clean-sessions --flips", "how its health changed, and what was told"],
    ],
    exits: ["0  shown", "4  no stack answers"],
  })
    .option("--slot <time>", "of the job, the run of this slot; without a zone it is the job's")
    .option("--flips", "of the job, the changes of its health, newest first, instead of a run")
    .action(ending(show));
};
