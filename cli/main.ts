import { Command, CommanderError } from "commander";
import { InvalidInput } from "../lib/core/errors.ts";
import { addAlarms } from "./commands/alarms.ts";
import { addAlert, addAlerts } from "./commands/alerts.ts";
import { addBackfill } from "./commands/backfill.ts";
import { addCancel } from "./commands/cancel.ts";
import { addDev } from "./commands/dev.ts";
import { addDiff } from "./commands/diff.ts";
import { addDismiss } from "./commands/dismiss.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addEjectExamples } from "./commands/eject-examples.ts";
import { addEstimate } from "./commands/estimate.ts";
import { addHeartbeat } from "./commands/heartbeat.ts";
import { addList } from "./commands/list.ts";
import { addMute, addUnmute } from "./commands/mute.ts";
import { addNew } from "./commands/new.ts";
import { addNext } from "./commands/next.ts";
import { addPause, addResume, addSkipNext } from "./commands/pause.ts";
import { addRetry } from "./commands/retry.ts";
import { addRun } from "./commands/run.ts";
import { addRuns } from "./commands/runs.ts";
import { addShow } from "./commands/show.ts";
import { addSimulate } from "./commands/simulate.ts";
import { EXIT, type ExitCode, exitCodeOfError } from "./exit-codes.ts";
import { printError } from "./output.ts";
import { packageVersion } from "./package-version.ts";

const VERBS = [
  addDev,
  addList,
  addNext,
  addRun,
  addRuns,
  addShow,
  addDiff,
  addDoctor,
  addRetry,
  addCancel,
  addBackfill,
  addDismiss,
  addPause,
  addResume,
  addSkipNext,
  addHeartbeat,
  addMute,
  addUnmute,
  addAlerts,
  addAlarms,
  addAlert,
  addSimulate,
  addNew,
  addEjectExamples,
  addEstimate,
];

const HELP_TAIL = `
Exit codes:
  0  done; with --wait: succeeded or skipped
  1  the job or the operation failed; with --wait: dead, cancelled, expired or missed
  2  wrong usage or invalid input
  3  refused by the state: already done, in flight; with --wait: parked
  4  the stack is unreachable

Start with "belfry dev", then "belfry list" in a second terminal.`;

/** Commander's own complaints as one line, with its guess ("did you mean") as the hint. */
const usageError = (error: CommanderError): InvalidInput => {
  const [first = "", ...rest] = error.message.split("\n");
  const guess = /\(Did you mean (.+)\?\)/.exec(rest.join(" "))?.[1];
  const hint = guess === undefined ? 'see "belfry --help"' : `did you mean ${guess}?`;
  return new InvalidInput("usage", first.replace(/^error: /, ""), { hint });
};

const makeProgram = (): Command => {
  const program = new Command("belfry")
    .description("Scheduled jobs on AWS that run once, on time, and never fail in silence.")
    .version(packageVersion(), "--version", "print the version")
    .addHelpText("after", HELP_TAIL)
    .exitOverride()
    // Errors are told once, below, in the form the user asked for.
    .configureOutput({ outputError: () => undefined });
  for (const add of VERBS) add(program);
  return program;
};

/** Help or the version was asked for, or help given for want of a verb; undefined = something else. */
const helpExit = (error: unknown): ExitCode | undefined => {
  if (!(error instanceof CommanderError) || !/^commander\.(help|version)/.test(error.code)) return undefined;
  return error.exitCode === 0 ? EXIT.done : EXIT.invalid;
};

const wantsJson = (argv: readonly string[]): boolean => {
  const end = argv.indexOf("--");
  return (end === -1 ? argv : argv.slice(0, end)).includes("--json");
};

// A reader that had enough (`| head`), or a terminal that was closed, is no failure of ours.
const allowClosedPipe = (): void => {
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
    });
};

/** One command line, without `node` and the script. Sets `process.exitCode`; never ends the process itself. */
export const main = async (argv: readonly string[]): Promise<void> => {
  allowClosedPipe();
  const program = makeProgram();
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    const told = error instanceof CommanderError ? usageError(error) : error;
    const code = helpExit(error);
    if (code === undefined) printError(told, wantsJson(argv));
    process.exitCode = code ?? exitCodeOfError(told);
  }
};
