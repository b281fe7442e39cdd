import type { Json } from "../json.ts";
import type { Trigger } from "./message.ts";

export const RUN_STATES = [
  "queued",
  "running",
  "waiting",
  "parked",
  "succeeded",
  "dead",
  "skipped",
  "missed",
  "expired",
  "cancelled",
] as const;
export type RunState = (typeof RUN_STATES)[number];

/** Over for good, unless somebody retries it. A parked run is not: it waits for a person. */
export const TERMINAL_STATES: ReadonlySet<string> = new Set<RunState>([
  "succeeded",
  "dead",
  "skipped",
  "missed",
  "expired",
  "cancelled",
]);

export const isTerminal = (state: string | undefined): boolean =>
  state !== undefined && TERMINAL_STATES.has(state);

/** Nothing more will happen by itself: over, or parked for a person. */
export const isSettled = ({ state }: { readonly state: RunState }): boolean =>
  isTerminal(state) || state === "parked";

export interface AttemptView {
  readonly n: number;
  /** Which set of attempts, counted from 1: each retry begins one; absent = the first. */
  readonly set?: number;
  /** Which piece of a run that continues later; absent = the first. */
  readonly piece?: number;
  /** Of a run that is split: whether it listed and sent the shards, or joined them. */
  readonly part?: "shards" | "join";
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly outcome: string;
  readonly error?: string;
}

/** How far the shards of a run are; of one that goes on, as they were when they were read. */
export interface ShardsView {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  /** In some worker's hands. */
  readonly running: number;
  /** Between two attempts. */
  readonly waiting: number;
  /** The first of those that failed, by their number. */
  readonly dead: readonly DeadShardView[];
}

export interface DeadShardView {
  readonly index: number;
  readonly key: string;
  readonly input: Json;
  /** How many attempts of it were made. */
  readonly attempts: number;
  readonly failedAt: string;
  readonly error: { readonly name: string; readonly message: string; readonly stack?: string };
}

/** A run as the CLI and the API show it. Instants are ISO 8601 in UTC; what is not known yet is null. */
export interface RunView {
  readonly runId: string;
  readonly job: string;
  /** Of a run-time schedule of the job: its id. */
  readonly automation?: string;
  /** For a run by hand, the instant it was asked for. */
  readonly slot: string;
  readonly trigger: Trigger;
  /** Of a job with several schedules: those of them, as they are now, that name the slot. */
  readonly schedules?: readonly string[];
  readonly state: RunState;
  readonly reason?: string;
  /** Of a slot that was skipped for another run of its job: which. */
  readonly blockedBy?: string;
  /** The last few, oldest first. */
  readonly attempts: readonly AttemptView[];
  readonly queuedAt: string | null;
  readonly startedAt: string | null;
  /** Of a waiting run: when its next attempt is due. */
  readonly nextAttemptAt?: string;
  readonly finishedAt: string | null;
  /** From the first start to the end. */
  readonly durationMs: number | null;
  /** From the slot to the first start. */
  readonly latenessMs: number | null;
  /** Deliveries of the same occurrence beyond the first. */
  readonly duplicates: number;
  readonly input: Json;
  readonly result: Json;
  /** What the handler said last of how far it is; at most half a lease old while it runs. */
  readonly progress?: { readonly done: number; readonly total?: number };
  /** Of a run that is split: absent until its shards are listed. */
  readonly shards?: ShardsView;
  /** How many pieces of a run that continues later have begun, or are about to; absent = it has only one. */
  readonly pieces?: number;
  readonly error?: { readonly name: string; readonly message: string; readonly stack?: string };
  /** How many slots in a row share this record (after a long outage), and the first of them. */
  readonly range?: { readonly count: number; readonly from: string };
}
