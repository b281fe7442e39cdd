import { type Command, Option } from "commander";
import { InvalidInput, Unavailable } from "../../lib/core/errors.ts";
import { isSettled } from "../../lib/core/runs/run.ts";
import type { AcceptedAnswer, DryRunAnswer, RunAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect, type Operate } from "../client.ts";
import { EXIT, type ExitCode, exitCodeOfState } from "../exit-codes.ts";
import { readInput } from "../json-input.ts";
import { note, pairLines, printJson, printLines } from "../output.ts";
import { runLines } from "../run-text.ts";
import { bothTexts } from "../times.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface RunOptions extends CommonOptions {
  readonly input?: string;
  readonly slot?: string;
  readonly reason?: string;
  readonly wait?: true;
  /** In seconds. */
  readonly timeout?: number;
  readonly dryRun?: true;
}

/** One request waits so long for the end of the run; then the next one asks. */
const POLL_MS = 20_000;

/** Asks until the run is settled or the time is over. Answers undefined when Ctrl-C came first. */
const waitFor = async (
  operate: Operate,
  first: RunAnswer,
  timeoutMs: number,
): Promise<RunAnswer | undefined> => {
  const interrupt = new AbortController();
  const onInterrupt = () => interrupt.abort();
  process.once("SIGINT", onInterrupt);
  const untilMs = performance.now() + timeoutMs;
  try {
    let answer = first;
    let leftMs = timeoutMs;
    while (!isSettled(answer.run) && leftMs > 0) {
      const waitMs = Math.ceil(Math.min(POLL_MS, leftMs));
      answer = await operate.get<RunAnswer>(
        `/v1/runs/${encodeURIComponent(first.run.runId)}`,
        { waitMs },
        interrupt.signal,
      );
      leftMs = untilMs - performance.now();
    }
    return answer;
  } catch (error) {
    if (interrupt.signal.aborted) return undefined;
    throw error;
  } finally {
    process.off("SIGINT", onInterrupt);
  }
};

const printRun = ({ run, timezone, notice }: AcceptedAnswer, json: boolean): void => {
  if (json) printJson(notice === undefined ? run : { ...run, notice });
  else printLines(runLines(run, timezone));
};

const runAndWait = async (
  operate: Operate,
  accepted: AcceptedAnswer,
  options: RunOptions,
): Promise<ExitCode> => {
  const { runId } = accepted.run;
  const timeoutMs = options.timeout === undefined ? Number.POSITIVE_INFINITY : options.timeout * 1_000;
  if (!options.json) note(`waiting for ${runId}; Ctrl-C stops the waiting, not the run`);
  const answer = await waitFor(operate, accepted, timeoutMs).catch((error: unknown) => {
    if (error instanceof Unavailable) note(`the run goes on when the stack is back: belfry show ${runId}`);
    throw error;
  });
  if (answer === undefined) {
    note(`stopped waiting; the run goes on: belfry show ${runId}`);
    return EXIT.interrupted;
  }
  printRun({ ...accepted, ...answer }, options.json === true);
  if (!isSettled(answer.run))
    note(`not over after ${options.timeout} s; the run goes on: belfry show ${runId}`);
  return exitCodeOfState(answer.run.state);
};

const printDryRun = ({ job, slot, runId, input, timezone }: DryRunAnswer): void => {
  printLines(
    pairLines([
      ["would run", job],
      ["as", slot === null ? "a run of its own" : bothTexts(slot, timezone)],
      ["run", runId ?? "gets its id when it is asked for"],
      ["input", JSON.stringify(input)],
    ]),
  );
};

const run = async (job: string, options: RunOptions): Promise<ExitCode> => {
  if (options.timeout !== undefined && options.wait === undefined)
    throw new InvalidInput("usage", "--timeout bounds --wait, which is not given", { field: "timeout" });
  const { slot, reason, input } = options;
  const request = {
    slot,
    reason,
    ...(input === undefined ? {} : { input: await readInput(input) }),
  };
  const operate = connect(options);
  const path = `/v1/jobs/${encodeURIComponent(job)}/runs`;
  if (options.dryRun) {
    const answer = await operate.post<DryRunAnswer>(path, { ...request, dryRun: true });
    if (options.json) printJson(answer);
    else printDryRun(answer);
    return EXIT.done;
  }
  const accepted = await operate.post<AcceptedAnswer>(path, request);
  if (accepted.notice !== undefined) note(`note: ${accepted.notice}`);
  if (options.wait) return runAndWait(operate, accepted, options);
  if (options.json) printRun(accepted, true);
  else printLines([`${accepted.run.state} ${accepted.run.runId}`]);
  return EXIT.done;
};

/** `belfry run`: a run by hand. */
export const addRun = (program: Command): void => {
  addVerb(program, {
    usage: "run <job>",
    summary: "run a job now, or as one of its slots",
    examples: [
      ["run clean-sessions --wait", "run it and wait for the end"],
      ["run clean-sessions --slot 2026-10-08T02:00 --wait", "as that slot, if it has not run yet"],
      ["run daily-digest --input '{\"limit\": 3}'", "with an input of its own"],
      ["run daily-digest --input @input.json --dry-run", "only check what would run"],
    ],
    exits: [
      "0  accepted; with --wait: succeeded or skipped",
      "1  with --wait: dead, cancelled, expired or missed",
      "3  already done, or in flight; with --wait: parked, or not over by --timeout",
      "4  no stack answers",
    ],
  })
    .option("--input <json>", "input instead of the job's: JSON, @<file>, or - for standard input")
    .option("--slot <time>", "run as the occurrence of this slot; without a zone it is the job's")
    .option("--reason <text>", "why, kept with the run")
    .option("--wait", "wait until the run is over or parked; Ctrl-C stops only the waiting")
    .addOption(wholeNumber("--timeout <seconds>", "wait at most so long (default: no limit)", [1, 604_800]))
    .addOption(new Option("--dry-run", "check everything, start nothing").conflicts("wait"))
    .action(ending(run));
};
