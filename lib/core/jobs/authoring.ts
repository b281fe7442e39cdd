import { type Duration, durationMs } from "../duration.ts";
import type { Json } from "../json.ts";

/**
 * Marks by which the product knows what an author's file made, whichever copy of the library made it: a bundle
 * has one, the process that reads the bundle another, so `instanceof` would not do.
 */
const JOB = Symbol.for("belfry.job");
const MONITOR = Symbol.for("belfry.monitor");
const CONFIG = Symbol.for("belfry.config");
const THROWN = Symbol.for("belfry.thrown");
const OUTCOME = Symbol.for("belfry.outcome");

/** What `defineJob` and `monitor` return: the options as given. They are checked when the project is built. */
export interface Job {
  readonly options: object;
}

const marked = (value: unknown, mark: symbol): value is { readonly [mark: symbol]: unknown } =>
  typeof value === "object" && value !== null && mark in value;

export const markJob = (options: object): Job => Object.freeze({ [JOB]: 1, options });
export const markMonitor = (options: object): Job => Object.freeze({ [JOB]: 1, [MONITOR]: 1, options });
/** Of what is a job: does it run elsewhere? */
export const isMarkedMonitor = (value: Job): boolean => marked(value, MONITOR);
export const isJob = (value: unknown): value is Job => marked(value, JOB);

export const markConfig = <C extends object>(config: C): { readonly config: C } =>
  Object.freeze({ [CONFIG]: 1, config });
export const isConfig = (value: unknown): value is { readonly config: object } => marked(value, CONFIG);

/** Thrown by a handler when trying again is of no use: the run is `dead` at once. */
export class PermanentError extends Error {
  override readonly name = "PermanentError";
  readonly [THROWN] = { permanent: true };
}

/** Thrown by a handler that knows when trying again is worth while, for example from a `Retry-After` header. */
export class RetryAfter extends Error {
  override readonly name = "RetryAfter";
  readonly [THROWN]: { readonly retryAfterMs: number };

  /** @throws InvalidInput when `wait` is not a duration. */
  constructor(wait: Duration, message = `try again in ${wait}`, options?: ErrorOptions) {
    super(message, options);
    this[THROWN] = { retryAfterMs: durationMs(wait, "RetryAfter") };
  }
}

/** What the thrown value says about the next attempt; nothing, when it is any other value. */
export const adviceOf = (
  thrown: unknown,
): { readonly permanent: boolean; readonly retryAfterMs?: number } => {
  const advice: unknown = marked(thrown, THROWN) ? thrown[THROWN] : undefined;
  if (typeof advice !== "object" || advice === null) return { permanent: false };
  if ("permanent" in advice && advice.permanent === true) return { permanent: true };
  if ("retryAfterMs" in advice && typeof advice.retryAfterMs === "number")
    return { permanent: false, retryAfterMs: advice.retryAfterMs };
  return { permanent: false };
};

/** An end of an attempt that is neither a result nor an error. */
export type OutcomeEnd =
  | { readonly kind: "skip" | "cancel"; readonly reason: string }
  | { readonly kind: "snooze"; readonly waitMs: number }
  /** Absent = the checkpoint stays as it is. */
  | { readonly kind: "continue"; readonly state?: Json };

/** Made by `ctx.skip`, `ctx.cancel`, `ctx.snooze` and `ctx.continueLater`; counts when it is returned or thrown. */
export interface Outcome {
  readonly [OUTCOME]: OutcomeEnd;
}

export const markOutcome = (end: OutcomeEnd): Outcome => Object.freeze({ [OUTCOME]: end });
export const isOutcome = (value: unknown): value is Outcome => marked(value, OUTCOME);
export const outcomeOf = (outcome: Outcome): OutcomeEnd => outcome[OUTCOME];
