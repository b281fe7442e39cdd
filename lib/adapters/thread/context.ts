import { markOutcome, type Outcome, type OutcomeEnd } from "../../core/authoring.ts";
import { durationMs } from "../../core/duration.ts";
import type { Json } from "../../core/json.ts";
import { boundedJson, toJson, trimmed } from "../../core/json-safe.ts";
import type { JobContext } from "../../index.ts";
import type { AttemptRequest, LogLevel, PreviousSuccess } from "../../ports/attempts.ts";

const FIELDS_BYTES = 8 * 1024;
const TEXT_BYTES = 4 * 1024;

export interface ContextDeps {
  readonly request: AttemptRequest;
  readonly endsAtMs: number;
  readonly signal: AbortSignal;
  readonly input: unknown;
  log(level: LogLevel, message: string, fields: { readonly [name: string]: Json }): void;
  previous(): Promise<PreviousSuccess | undefined>;
}

/** What the handler is given, and the outcomes that it made of it. */
export const makeContext = (
  deps: ContextDeps,
): { readonly context: JobContext<unknown>; readonly outcomes: readonly Outcome[] } => {
  const { request, signal, input, endsAtMs } = deps;
  const outcomes: Outcome[] = [];
  const outcome = (end: OutcomeEnd): Outcome => {
    const made = markOutcome(end);
    outcomes.push(made);
    return made;
  };
  const line = (level: LogLevel) => (message: string, fields?: object) =>
    deps.log(level, trimmed(String(message), TEXT_BYTES), fieldsOf(fields));
  const reasonOf = (reason: unknown): string => trimmed(String(reason), TEXT_BYTES);
  const context: JobContext<unknown> = {
    input,
    slot: new Date(request.slotMs),
    attempt: request.attempt,
    runId: request.runId,
    job: request.job,
    trigger: request.trigger,
    signal,
    remaining: () => Math.max(0, endsAtMs - Date.now()),
    log: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
    idempotencyKey: (suffix) => (suffix === undefined ? request.runId : `${request.runId}:${suffix}`),
    previous: async () => {
      const found = await deps.previous();
      if (found === undefined) return undefined;
      const { slotMs, finishedAtMs, result } = found;
      return {
        slot: new Date(slotMs),
        finishedAt: new Date(finishedAtMs),
        ...(result !== undefined && { result }),
      };
    },
    skip: (reason) => outcome({ kind: "skip", reason: reasonOf(reason) }),
    cancel: (reason) => outcome({ kind: "cancel", reason: reasonOf(reason) }),
    snooze: (wait) => outcome({ kind: "snooze", waitMs: durationMs(wait, "snooze") }),
  };
  return { context, outcomes };
};

const fieldsOf = (fields: object | undefined): { readonly [name: string]: Json } => {
  const safe = boundedJson(toJson(fields ?? {}) ?? {}, FIELDS_BYTES);
  return isRecord(safe) ? safe : { fields: safe };
};

const isRecord = (value: Json): value is { readonly [name: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
