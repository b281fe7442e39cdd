import { type Command, Option } from "commander";
import { RUN_STATES, type RunView } from "../../lib/core/runs/run.ts";
import type { RunsAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines, tableLines } from "../output.ts";
import { whyText } from "../run-text.ts";
import { localText, spanText } from "../times.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface RunsOptions extends CommonOptions {
  readonly job?: string;
  readonly state?: string;
  readonly since?: string;
  readonly limit?: number;
}

const HEADINGS = ["RUN", "STATE", "TRIGGER", "SLOT (ZONE)", "SLOT (UTC)", "TOOK", "RESULT OR REASON"];
const WHY_WIDTH = 60;

const cut = (text: string): string => (text.length > WHY_WIDTH ? `${text.slice(0, WHY_WIDTH - 1)}…` : text);

const rowOf = (run: RunView, zone: string): readonly string[] => [
  run.runId,
  run.state,
  run.trigger,
  `${localText(run.slot, zone)} ${zone}`,
  run.slot,
  run.durationMs === null ? "-" : spanText(run.durationMs),
  cut(whyText(run)),
];

const runs = async (options: RunsOptions): Promise<ExitCode> => {
  const { job, state, since, limit } = options;
  const answer = await connect(options).get<RunsAnswer>("/v1/runs", { job, state, since, limit });
  if (options.json) printJson(answer.runs);
  else if (answer.runs.length === 0) note("no runs match");
  else
    printLines(
      tableLines(
        HEADINGS,
        answer.runs.map((run) => rowOf(run, answer.timezones[run.job] ?? "UTC")),
      ),
    );
  return EXIT.done;
};

/** `belfry runs`: the history, newest first. */
export const addRuns = (program: Command): void => {
  addVerb(program, {
    usage: "runs",
    summary: "show runs, newest first",
    examples: [
      ["runs", "the last 20 of all jobs"],
      ["runs --job clean-sessions --limit 5", "the last 5 of one job"],
      ["runs --state dead --since 2026-10-01", "what ended badly since the first of October"],
    ],
    exits: ["0  shown, or none match", "4  no stack answers"],
  })
    .option("--job <name>", "only runs of this job")
    .addOption(new Option("--state <state>", "only runs in this state").choices(RUN_STATES))
    .option("--since <time>", "only slots from then on; without a zone in the job's, or in UTC without --job")
    .addOption(wholeNumber("--limit <count>", "at most so many (default: 20)", [1, 1_000]))
    .action(ending(runs));
};
