import type { Json } from "../../core/json.ts";
import type { Effect, Progress } from "../../core/runs/kept.ts";
import type { ListedShard } from "../../core/shards/shards.ts";
import type {
  AttemptEnd,
  AttemptRequest,
  AttemptServices,
  ErrorFacts,
  LogLevel,
} from "../../ports/attempts.ts";

/** What a thread is started with. */
export interface ThreadData {
  /** Address of the bundle whose default export maps a job's name to what `defineJob` made. */
  readonly jobsFile: string;
}

/** What a handler asks of the process that keeps its run's lease, and waits for. */
export type Question =
  | { readonly call: "previous" }
  | { readonly call: "loadState" }
  | { readonly call: "saveState"; readonly state: Json }
  | { readonly call: "addShards"; readonly shards: readonly ListedShard[] }
  | { readonly call: "recallEffect"; readonly key: string }
  | { readonly call: "recordEffect"; readonly key: string; readonly effect: Effect };

export type Answer = Awaited<ReturnType<AttemptServices[Question["call"]]>>;

/** To the thread. It has at most one attempt at a time; `turn` counts them. */
export type ToThread =
  | {
      readonly kind: "run";
      readonly turn: number;
      readonly request: AttemptRequest;
      readonly endsAtMs: number;
    }
  | { readonly kind: "abort"; readonly name: "TimeoutError" | "AbortError"; readonly message: string }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer }
  | { readonly kind: "answer"; readonly id: number; readonly error: ErrorFacts };

/** How a handler ended by itself; the other ends are seen from outside. */
export type HandlerEnd = Exclude<AttemptEnd, { readonly kind: "timed-out" | "stopped" | "out-of-memory" }>;

/** From the thread. */
export type FromThread =
  /** The jobs are loaded. */
  | { readonly kind: "ready" }
  /** Something of an earlier attempt failed: give this thread no other. */
  | { readonly kind: "worn" }
  | { readonly kind: "ended"; readonly end: HandlerEnd; readonly worn: boolean }
  | {
      readonly kind: "log";
      readonly level: LogLevel;
      readonly message: string;
      readonly fields: { readonly [name: string]: Json };
    }
  /** Of the attempt of that turn: what an earlier one left behind must not speak for a later one. */
  | { readonly kind: "ask"; readonly turn: number; readonly id: number; readonly question: Question }
  | { readonly kind: "progress"; readonly turn: number; readonly progress: Progress }
  /** Nobody caught an error, so the thread is about to end. */
  | { readonly kind: "broken"; readonly error: ErrorFacts };
