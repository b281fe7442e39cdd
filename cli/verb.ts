import { type Command, Option } from "commander";
import { InvalidInput } from "../lib/core/errors.ts";
import type { ExitCode } from "./exit-codes.ts";

/** What every verb takes. */
export interface CommonOptions {
  readonly json?: true;
  readonly stage?: string;
  readonly data?: string;
}

export interface VerbText {
  /** As the user types it: `show <run or job>`'s arguments are commander's, `show <run-or-job>`. */
  readonly usage: string;
  readonly summary: string;
  /** Each is a command line and what it does. */
  readonly examples: readonly (readonly [command: string, meaning: string])[];
  /** What `--stage` means where no deployed stage is talked to. */
  readonly stage?: string;
  /** The exit codes this verb can end with, beyond 2 (wrong usage). */
  readonly exits: readonly string[];
}

const helpTail = ({ examples, exits }: VerbText): string => {
  const width = Math.max(...examples.map(([command]) => command.length));
  const lines = examples.map(([command, meaning]) => `  $ belfry ${command.padEnd(width)}  ${meaning}`);
  const codes = [...exits, "2  wrong usage or invalid input"].sort().map((line) => `  ${line}`);
  return ["", "Examples:", ...lines, "", "Exit codes:", ...codes].join("\n");
};

/** A verb with the options that all verbs share, and a help text with examples and exit codes. */
export const addVerb = (program: Command, text: VerbText): Command =>
  program
    .command(text.usage)
    .summary(text.summary)
    .description(`${text.summary}.`)
    .option("--json", "print one JSON document on stdout; all else goes to stderr")
    .option("--stage <name>", text.stage ?? "talk to a deployed stage instead of the local stack")
    .option("--data <dir>", "folder of the local stack (default: BELFRY_DATA, else .belfry here or above)")
    .addHelpText("after", helpTail(text));

/** The exit code goes into process.exitCode, so that whatever was written still reaches its pipe. */
export const ending =
  <Arguments extends readonly unknown[]>(act: (...given: Arguments) => Promise<ExitCode>) =>
  async (...given: Arguments): Promise<void> => {
    process.exitCode = await act(...given);
  };

/** A whole number within bounds; the error names the option. */
export const wholeNumber = (flags: string, about: string, [least, most]: readonly [number, number]): Option =>
  new Option(flags, about).argParser((text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const name = flags.split(" ")[0] ?? flags;
    throw new InvalidInput(
      "invalid_option",
      `${name} must be a whole number from ${least} to ${most}, not "${text}"`,
      {
        field: name.replace(/^--/, ""),
      },
    );
  });
