import type { Json } from "../core/json.ts";
import type { Effect, Progress } from "../core/runs/kept.ts";
import type { ListedShard, ShardCounts } from "../core/shards/shards.ts";

/** A thrown value as it is kept: never more than that of what the handler threw. */
export interface ErrorFacts {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
}

export interface PreviousSuccess {
  readonly slotMs: number;
  readonly finishedAtMs: number;
  readonly result?: Json;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** What the handler may ask of the process around it while it runs. */
export interface AttemptServices {
  previous(): Promise<PreviousSuccess | undefined>;
  log(level: LogLevel, message: string, fields: { readonly [name: string]: Json }): void;
  /** What the run's attempts saved last; undefined where none did. */
  loadState(): Promise<Json | undefined>;
  /**
   * Resolves when the state is stored for later attempts. At most `CHECKPOINT_BYTES`.
   * @throws Conflict when another attempt has the run by now, Unavailable when nobody knows whether it is stored
   */
  saveState(state: Json): Promise<void>;
  /**
   * The side effect of that key, if an attempt of the run recorded it.
   * @throws InvalidInput when the run has no room for another key; Conflict and Unavailable as above
   */
  recallEffect(key: string): Promise<Effect | undefined>;
  /** After `recallEffect` of the same key. Throws as `saveState`. */
  recordEffect(key: string, effect: Effect): Promise<void>;
  /** Of the attempt that lists a run's shards: the next of them, in order. Resolves when they are stored. */
  addShards(shards: readonly ListedShard[]): Promise<void>;
  /** Shown with the run; kept with the next renewal of the lease, or with the end of the attempt. */
  progress(progress: Progress): void;
}

/** What of a run with shards the attempt does. */
export type Part =
  /** `shards` of the job is called, and what it lists goes to `addShards`. */
  | { readonly kind: "list" }
  /** `handler`, for one of them. */
  | {
      readonly kind: "shard";
      readonly index: number;
      readonly count: number;
      readonly key: string;
      readonly input?: Json;
    }
  /** `join`, after all of them. */
  | { readonly kind: "join"; readonly shards: ShardCounts };

export interface AttemptRequest {
  readonly job: string;
  readonly runId: string;
  readonly slotMs: number;
  /** Counted from 1. */
  readonly attempt: number;
  readonly trigger: string;
  readonly input: Json;
  readonly timeoutMs: number;
  /** Absent = the run has no shards: `handler` does all of it. */
  readonly part?: Part;
}

export type AttemptEnd =
  | {
      readonly kind: "returned";
      /** JSON-safe; absent = the handler returned nothing. */ readonly result?: Json;
    }
  | { readonly kind: "skip" | "cancel"; readonly reason: string }
  | { readonly kind: "snooze"; readonly waitMs: number }
  /** The next invocation goes on, with that state where there is one. */
  | { readonly kind: "continue"; readonly state?: Json }
  | {
      readonly kind: "threw";
      readonly error: ErrorFacts;
      /** The handler says that trying again is of no use. */ readonly permanent: boolean;
      /** The handler names the wait before the next attempt. */ readonly retryAfterMs?: number;
    }
  /** Ended from outside: over its timeout, or by `stop`. The handler is no longer running. */
  | { readonly kind: "timed-out" | "stopped"; readonly error: ErrorFacts }
  /** The handler ended its thread: `process.exit()`, out of memory, or the thread itself failed. */
  | { readonly kind: "exited" | "out-of-memory"; readonly error: ErrorFacts };

export interface RunningAttempt {
  /** Never rejects. Resolves when the handler is over: no code of it runs from then on. */
  readonly ended: Promise<AttemptEnd>;
  /** Aborts the handler's signal, and ends it by force if it has not obeyed shortly after. */
  stop(reason: string): void;
}

/**
 * Runs handlers so that no handler can harm the process that keeps its lease: one that blocks, exits or runs out
 * of memory ends alone. The timeout is enforced here: the signal is aborted, then the handler ended by force.
 */
export interface Attempts {
  start(request: AttemptRequest, services: AttemptServices): RunningAttempt;
}
