import type { Json } from "../../core/json.ts";
import type {
  AttemptEnd,
  AttemptRequest,
  ErrorFacts,
  LogLevel,
  PreviousSuccess,
} from "../../ports/attempts.ts";

/** What a thread is started with. */
export interface ThreadData {
  /** Address of the bundle whose default export maps a job's name to what `defineJob` made. */
  readonly jobsFile: string;
}

/** To the thread. It has at most one attempt at a time. */
export type ToThread =
  | { readonly kind: "run"; readonly request: AttemptRequest; readonly endsAtMs: number }
  | { readonly kind: "abort"; readonly name: "TimeoutError" | "AbortError"; readonly message: string }
  | { readonly kind: "previous"; readonly found?: PreviousSuccess; readonly error?: ErrorFacts };

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
  | { readonly kind: "previous" }
  /** Nobody caught an error, so the thread is about to end. */
  | { readonly kind: "broken"; readonly error: ErrorFacts };
