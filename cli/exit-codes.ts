import { BelfryError, Conflict, InvalidInput, Unavailable } from "../lib/core/errors.ts";
import type { RunState } from "../lib/core/runs/run.ts";

/** What a script may rely on. docs/cli.md lists them. */
export const EXIT = {
  done: 0,
  /** The job or the operation failed. */
  failed: 1,
  /** Wrong usage, or input that can never work. */
  invalid: 2,
  /** The state refuses: already done, in flight, parked. */
  refused: 3,
  /** No stack answers. */
  unreachable: 4,
  /** The shell's own number for Ctrl-C: waiting was given up, the run goes on. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const exitCodeOfError = (error: unknown): ExitCode => {
  if (error instanceof InvalidInput) return EXIT.invalid;
  if (error instanceof Conflict) return EXIT.refused;
  if (error instanceof Unavailable) return EXIT.unreachable;
  return EXIT.failed;
};

/** For `--wait`. A run that is not over when the wait ends is "in flight". */
export const exitCodeOfState = (state: RunState): ExitCode => {
  switch (state) {
    case "succeeded":
    case "skipped":
      return EXIT.done;
    case "dead":
    case "cancelled":
    case "expired":
    case "missed":
      return EXIT.failed;
    case "parked":
    case "queued":
    case "running":
    case "waiting":
      return EXIT.refused;
  }
};

/** Stable, for programs; an error that is none of ours is a bug, and says so. */
export const codeOfError = (error: unknown): string =>
  error instanceof BelfryError ? error.code : "internal_error";
