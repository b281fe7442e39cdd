import type { AlertsConfig } from "../alerts/alert-channels.ts";
import type { Json } from "../json.ts";
import type { Tolerance } from "../shards/shards.ts";
import { HOUR_MS, MINUTE_MS } from "../time.ts";
import type { JobNeeds } from "./job-needs.ts";

/**
 * A job as data: what `defineJob` was given, checked, with every default filled in. It carries no handler, so it
 * travels: in the manifest of a deploy, in the table, to the dispatcher and the watchdog.
 */
export interface JobDefinition extends JobNeeds {
  readonly name: string;
  /** The oldest name of the `renamedFrom` chain: history and claims are kept under it. */
  readonly subject: string;
  readonly description?: string;
  readonly owner?: string;
  readonly runbook?: string;
  /** Expressions; their slots are a union. Empty = runs by hand only. */
  readonly schedules: readonly string[];
  readonly timezone: string;
  readonly dst: { readonly gap: "skip" | "run-after"; readonly repeat: "first" | "last" | "both" };
  /** Half-open: slots in [startsAtMs, endsAtMs). */
  readonly startsAtMs?: number;
  readonly endsAtMs?: number;
  /** What the handler gets when a run has no input of its own. */
  readonly input: Json;
  readonly overlap: Overlap;
  readonly misfire: Misfire;
  /** Longest wait from the slot to the start before the run is `expired`. */
  readonly startDeadlineMs: number;
  /** Per attempt. */
  readonly timeoutMs: number;
  readonly retry: Retry;
  readonly onUnknown: "retry" | "park";
  /** From the slot to when a run that has not started is overdue. */
  readonly graceMs: number;
  readonly alerts: Alerts;
  /** Has metrics and alarms in CloudWatch of its own. */
  readonly ownAlarms?: true;
  /** Where its schedule fires; absent = in every stage. */
  readonly stages?: readonly string[];
  readonly pool: string;
  /** Absent = a run is one piece of work. */
  readonly shards?: ShardsDefinition;
  /** It runs elsewhere, and pings tell of its runs; absent = it runs here. */
  readonly monitor?: {
    /** From a start to its end. */
    readonly endWithinMs: number;
    /** So long before its slot a ping counts for it; absent = half a period, at most an hour. */
    readonly earlyMs?: number;
  };
}

/** How a run is split, and what becomes of its parts. */
export interface ShardsDefinition {
  /** How many; absent = the job's own code lists them. */
  readonly count?: number;
  /** At most so many at once; absent = as many as the pool takes. */
  readonly maxInFlight?: number;
  /** Absent = none may fail. */
  readonly tolerance?: Tolerance;
  /** Job code runs once more, when all shards are over. */
  readonly joins: boolean;
}

/**
 * What becomes of a slot that finds earlier runs of its job not over: it is skipped, waits in slot order, stops and
 * replaces the one before it, or runs beside it. `max` allows so many at once before `whenFull` applies.
 */
export type Overlap =
  | "skip"
  | "queue"
  | "replace"
  | "allow"
  | { readonly max: number; readonly whenFull: "skip" | "queue" };

export interface Misfire {
  /** Of the slots that nothing dispatched in time: run none, the newest `max`, or all up to `max`. */
  readonly policy: "skip" | "latest" | "all";
  readonly max: number;
  /** Older slots than that are recorded as missed; absent = one period, judged at the slot. */
  readonly withinMs?: number;
}

/** What people are told of a job, and when. Failures are counted in a row, in the order of their slots. */
export interface Alerts {
  readonly notifyAfter: number;
  /** Absent = nobody is woken. */
  readonly pageAfter?: number;
  /** Absent = it never pauses itself. */
  readonly pauseAfter?: number;
  /** Longest time from a run's first start to its end, retries included; absent = no limit but the attempts' own. */
  readonly finishWithinMs?: number;
  /** A run that took longer is told of. */
  readonly slowAfterMs?: number;
  /** What is still wrong is told again after that long. */
  readonly remindEveryMs: number;
  /** Is the end of a trouble told? */
  readonly recovery: boolean;
}

export interface Retry {
  /** Attempts after the first. */
  readonly retries: number;
  /** The waits before the second attempt, the third, ...; the last one repeats. Instead of the exponential. */
  readonly ladderMs?: readonly number[];
  readonly firstWaitMs: number;
  readonly factor: number;
  readonly maxWaitMs: number;
  /** 0 to 1: up to that part of a wait is taken off at random. */
  readonly jitter: number;
  /** Recoveries from a lost worker, counted apart from failed attempts. */
  readonly crashes: number;
}

export const DEFAULTS = {
  timezone: "UTC",
  overlap: "skip",
  /** Long enough for a queue's hiccup, short enough that a dead start is seen the same morning. */
  startDeadlineMs: 24 * HOUR_MS,
  timeoutMs: 5 * MINUTE_MS,
  retry: {
    retries: 5,
    firstWaitMs: MINUTE_MS,
    factor: 2,
    maxWaitMs: 15 * MINUTE_MS,
    jitter: 0.1,
    crashes: 3,
  },
  graceMs: 5 * MINUTE_MS,
  alerts: { notifyAfter: 1, pageAfter: 3, remindEveryMs: 24 * HOUR_MS, recovery: true },
  pool: "default",
} as const;

export interface PoolDefinition {
  readonly memoryMb: number;
  /** Messages handled at once by one worker process. */
  readonly concurrency: number;
  /** Longest timeout that a job of the pool may have; absent = as long as a function can run. */
  readonly timeoutMs?: number;
  /** The network that its workers run in. */
  readonly vpc?: { readonly securityGroups: readonly string[]; readonly subnets: readonly string[] };
}

export const DEFAULT_POOL: PoolDefinition = { memoryMb: 256, concurrency: 10 };

/**
 * Everything a deploy knows of its jobs. `hash` is the SHA-256 of the rest in hexadecimal, so that two builds of
 * the same files are the same manifest.
 */
export interface Manifest {
  readonly version: 1;
  readonly hash: string;
  readonly stages: readonly string[];
  readonly pools: { readonly [name: string]: PoolDefinition };
  /** Absent = as with none. */
  readonly alerts?: AlertsConfig;
  /** In order of name. */
  readonly jobs: readonly JobDefinition[];
}
