import { durationMs } from "../../core/duration.ts";
import { InvalidInput } from "../../core/errors.ts";
import { markOutcome, type Outcome, type OutcomeEnd } from "../../core/jobs/authoring.ts";
import { isRecord, type Json } from "../../core/json.ts";
import { boundedJson, toJson, trimmed } from "../../core/json-safe.ts";
import { checkEffectKey, checkpointOf, effectOf, progressOf, resultOf } from "../../core/runs/kept.ts";
import type { ShardCounts } from "../../core/shards/shards.ts";
import type { JobContext, Shard } from "../../index.ts";
import type {
  AttemptRequest,
  AttemptServices,
  LogLevel,
  Part,
  PreviousSuccess,
} from "../../ports/attempts.ts";

const FIELDS_BYTES = 8 * 1024;
const TEXT_BYTES = 4 * 1024;

export interface ContextDeps {
  readonly request: AttemptRequest;
  readonly endsAtMs: number;
  readonly signal: AbortSignal;
  readonly input: unknown;
  readonly services: AttemptServices;
  now(): number;
}

/** What the handler is given, and the outcomes that it made of it. */
export const makeContext = (
  deps: ContextDeps,
): { readonly context: AnyContext; readonly outcomes: readonly Outcome[] } => {
  const { request, signal, input, endsAtMs, services } = deps;
  const outcomes: Outcome[] = [];
  const outcome = (end: OutcomeEnd): Outcome => {
    const made = markOutcome(end);
    outcomes.push(made);
    return made;
  };
  const line = (level: LogLevel) => (message: string, fields?: object) =>
    services.log(level, trimmed(String(message), TEXT_BYTES), fieldsOf(fields));
  const { part, runId } = request;
  // The shards of a run are pieces of work of their own.
  const workId = part?.kind === "shard" ? `${runId}/${part.key}` : runId;
  const reasonOf = (reason: unknown): string => trimmed(String(reason), TEXT_BYTES);
  const context: AnyContext = {
    input,
    ...partOf(request.part),
    slot: new Date(request.slotMs),
    attempt: request.attempt,
    runId: request.runId,
    job: request.job,
    trigger: request.trigger,
    signal,
    remaining: () => Math.max(0, endsAtMs - deps.now()),
    log: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
    idempotencyKey: (suffix) => (suffix === undefined ? workId : `${workId}:${suffix}`),
    previous: async () => previousOf(await services.previous()),
    progress: (done, total) => services.progress(progressOf(done, total)),
    checkpoint: {
      // The handler says what it saved; nobody checks it.
      load: async <State>() => (await services.loadState()) as State | undefined,
      save: async (state) => services.saveState(checkpointOf(state)),
    },
    once: rememberedBy(services),
    skip: (reason) => outcome({ kind: "skip", reason: reasonOf(reason) }),
    cancel: (reason) => outcome({ kind: "cancel", reason: reasonOf(reason) }),
    snooze: (wait) => outcome({ kind: "snooze", waitMs: durationMs(wait, "snooze") }),
    continueLater: (state) =>
      outcome({ kind: "continue", ...(state !== undefined && { state: checkpointOf(state) }) }),
  };
  return { context, outcomes };
};

/** What any of a job's functions is given; the types of the library say which has what. */
type AnyContext = Omit<JobContext<unknown, unknown>, "shard"> & {
  readonly shard: Shard<unknown> | undefined;
  readonly shards?: ShardCounts;
};

const partOf = (part: Part | undefined): Pick<AnyContext, "shard" | "shards"> => {
  if (part?.kind === "join") return { shard: undefined, shards: part.shards };
  if (part?.kind !== "shard") return { shard: undefined };
  const { index, count, key, input } = part;
  return { shard: { index, count, key, input } };
};

const previousOf = (found: PreviousSuccess | undefined): Awaited<ReturnType<JobContext["previous"]>> => {
  if (found === undefined) return undefined;
  const { slotMs, finishedAtMs, result } = found;
  return {
    slot: new Date(slotMs),
    finishedAt: new Date(finishedAtMs),
    ...(result !== undefined && { result }),
  };
};

/** `once`: the function is called unless an attempt of the run has recorded its end. */
const rememberedBy = ({ recallEffect, recordEffect }: AttemptServices): JobContext["once"] => {
  const running = new Set<string>();
  return async <Result>(key: string, act: () => Result | Promise<Result>): Promise<Result> => {
    checkEffectKey(key);
    if (typeof act !== "function") throw new TypeError(`once("${key}"): the second argument is no function`);
    if (running.has(key)) {
      throw new InvalidInput("in_flight", `once("${key}") is running already; await it, or take another key`);
    }
    running.add(key);
    try {
      const known = await recallEffect(key);
      if (known !== undefined) return resultOf(known) as Result;
      const effect = effectOf(key, await act());
      await recordEffect(key, effect);
      // As later attempts will get it.
      return resultOf(effect) as Result;
    } finally {
      running.delete(key);
    }
  };
};

const fieldsOf = (fields: object | undefined): { readonly [name: string]: Json } => {
  const safe = boundedJson(toJson(fields ?? {}) ?? {}, FIELDS_BYTES);
  return isRecord(safe) ? safe : { fields: safe };
};
