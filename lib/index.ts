import type { AlertChannel } from "./core/alerts/channel-options.ts";
import type { Duration } from "./core/duration.ts";
import { type Job, markConfig, markJob, markMonitor, type Outcome } from "./core/jobs/authoring.ts";
import type { Json } from "./core/json.ts";
import type { StandardSchema } from "./core/standard-schema.ts";
import type { TimeZone } from "./core/time-zones.ts";

export { PermanentError, RetryAfter } from "./core/jobs/authoring.ts";
export { at, every } from "./core/schedule/expressions.ts";

/** One of the parts that a run is split into. */
export interface Shard<ShardInput = Json | undefined> {
  /** From 0. */
  readonly index: number;
  /** How many the run has. */
  readonly count: number;
  /** As listed; where `shards` is a number, the index as text. */
  readonly key: string;
  /** As listed; undefined where the list gives none, and where `shards` is a number. */
  readonly input: ShardInput;
}

/** An entry of a list of shards: a key of its own within the run, and what its handler gets with it. */
export type ShardEntry<ShardInput = Json | undefined> =
  | string
  | { readonly key: string; readonly input?: ShardInput };

/** How many shards a run has, or a function that lists them, whole or one by one. */
export type Shards<Input> =
  | number
  | ((ctx: JobContext<Input>) => ShardList | Promise<ShardList | Outcome> | Outcome);

type ShardList = Iterable<ShardEntry<unknown>> | AsyncIterable<ShardEntry<unknown>>;

type EntryOf<List> = List extends Iterable<infer Entry> | AsyncIterable<infer Entry> ? Entry : never;
type InputOfEntry<Entry> = Entry extends { readonly input?: infer ShardInput } ? ShardInput : undefined;
/** What `ctx.shard` is, by what the job's `shards` is. */
export type ShardOf<Of> = undefined extends Of
  ? undefined
  : Of extends (...args: never) => infer List
    ? Shard<InputOfEntry<EntryOf<Awaited<List>>>>
    : Shard<undefined>;

/** What `join` is given, when all shards of the run are over. */
export interface JoinContext<Input = Json> extends JobContext<Input> {
  readonly shards: { readonly total: number; readonly done: number; readonly failed: number };
}

/** What one attempt of a handler is given. Its functions need no `this`, so it can be taken apart. */
export interface JobContext<Input = Json, OneShard = undefined> {
  /**
   * In a job with `shards`, the part of the run that this call is for; undefined in any other, in `shards` and in
   * `join`.
   */
  readonly shard: OneShard;
  /** The run's own input, else the job's; with a `schema`, what the schema made of it. */
  readonly input: Input;
  /** The instant the schedule names, whenever the attempt really runs; for a run by hand, when it was asked for. */
  readonly slot: Date;
  /** Counted from 1. */
  readonly attempt: number;
  readonly runId: string;
  readonly job: string;
  /** `schedule`, `manual`, ...: what made the run. */
  readonly trigger: string;
  /**
   * Aborted at the timeout (`TimeoutError`) or when the attempt must end (`AbortError`); one second later the thread
   * is ended.
   */
  readonly signal: AbortSignal;
  /** Milliseconds until the timeout, never below 0. */
  remaining(): number;
  /** Goes to the job's log with the run's id. Fields may hold anything; what JSON cannot carry is shown as text. */
  readonly log: {
    readonly [level in "debug" | "info" | "warn" | "error"]: (message: string, fields?: object) => void;
  };
  /** The same text in every attempt of the run, for a receiver that drops repeats; a suffix tells effects apart. */
  idempotencyKey(suffix?: string): string;
  /** The job's last success, read when it is asked for; undefined when there is none. */
  previous(): Promise<{ readonly slot: Date; readonly finishedAt: Date; readonly result?: Json } | undefined>;
  /**
   * How far it is, shown with the run; kept at most half a lease later, and never at the price of a write. Numbers
   * from 0 on; any other is an error.
   */
  progress(done: number, total?: number): void;
  /** State that outlives the attempt: later attempts of the run load what was saved last, also after `retry`. */
  readonly checkpoint: {
    /** Undefined when nothing was saved. */
    load<State = Json>(): Promise<State | undefined>;
    /**
     * Any value that JSON can carry, at most 32 KB of it; durable when it resolves. Rejects for what is larger or no
     * JSON, and when another attempt has taken the run over.
     */
    save(state: unknown): Promise<void>;
  };
  /**
   * A side effect that is remembered: in the run's later attempts the function is not called again, and its result,
   * as JSON carries it, is returned. A worker that is killed after the effect and before it is remembered repeats it;
   * where even that must not be, pass on `idempotencyKey(key)`. What the function throws is thrown, and nothing
   * remembered.
   * @param key 1 to 100 characters; at most 100 keys a run
   * @param act its result has at most 4 KB of JSON; a larger one is an error, and the effect counts as done
   */
  once<Result>(key: string, act: () => Result | Promise<Result>): Promise<Result>;
  /** Nothing to do: the run ends `skipped`. Return it, or throw it from deeper down. */
  skip(reason: string): Outcome;
  /** Not to be done: the run ends `cancelled`. Return it, or throw it. */
  cancel(reason: string): Outcome;
  /** Later: the run waits that long and starts again, which is no failed attempt. Return it, or throw it. */
  snooze(wait: Duration): Outcome;
  /**
   * The work is longer than a timeout: the same run goes on in the next invocation, which loads the state from
   * `checkpoint`; at most 1,000 times. Each piece has its own timeout and attempts. Without a state the checkpoint
   * stays as it is. Return it, or throw it.
   * @throws for a state over 32 KB of JSON
   */
  continueLater(state?: unknown): Outcome;
}

/** What every kind of job has. */
interface CommonOptions {
  readonly name?: string;
  readonly description?: string;
  readonly owner?: string;
  readonly runbook?: string;
  /** An IANA name such as `Asia/Shanghai`; one that does not exist does not compile. */
  readonly timezone?: TimeZone;
  readonly dst?: { readonly gap?: "skip" | "run-after"; readonly repeat?: "first" | "last" | "both" };
  /** First instant at which it may fire: `2027-01-01`, `2027-01-01T09:00` (the job's zone), or with `Z` or an offset. */
  readonly startsAt?: string;
  /** First instant at which it fires no more. */
  readonly endsAt?: string;
  readonly grace?: Duration;
  readonly alerts?: AlertOptions;
  /** Metrics and alarms in CloudWatch for this job alone; $1.20 a month. Default: those of the service count all jobs. */
  readonly ownAlarms?: boolean;
  readonly stages?: readonly string[];
  /** Former names, the oldest first. */
  readonly renamedFrom?: string | readonly string[];
}

/** A monitor's options; docs/monitors.md has them all with their defaults. */
export interface MonitorOptions extends CommonOptions {
  /** When the job runs, wherever that is: its pings are expected then. */
  readonly schedule: string | readonly string[];
  /** So long before its slot a ping counts for it. Default: half a period, at most an hour. */
  readonly early?: Duration;
  /** From a start to its end. Default: an hour. */
  readonly endWithin?: Duration;
}

/** A job's options; docs/jobs.md has them all with their defaults. */
export interface JobOptions<Input, Output, Of extends Shards<Output> | undefined = undefined>
  extends CommonOptions {
  /** A cron text, `every(...)`, `at(...)`, or several, which are a union. None = runs by hand only. */
  readonly schedule?: string | readonly string[];
  readonly input?: Input;
  /** Any Standard Schema validator. Checks the input when the project is built and before each attempt. */
  readonly schema?: StandardSchema<Input, Output>;
  readonly overlap?:
    | "skip"
    | "queue"
    | "replace"
    | "allow"
    | { readonly max: number; readonly whenFull?: "skip" | "queue" };
  readonly misfire?:
    | MisfirePolicy
    | { readonly policy: MisfirePolicy; readonly max?: number; readonly within?: Duration };
  readonly startDeadline?: Duration;
  readonly timeout?: Duration;
  readonly retry?: RetryOptions;
  readonly onUnknown?: "retry" | "park";
  readonly pool?: string;
  /** What the handler may do on AWS. */
  readonly permissions?: readonly Permission[];
  /** Variables of its process; `{stage}` is filled in. */
  readonly environment?: { readonly [variable: string]: string };
  /** Variables filled from `ssm:<parameter>` or `secretsmanager:<secret>` when a worker starts; locally from `.env`. */
  readonly secrets?: { readonly [variable: string]: string };
  /** Splits each run into so many parts, or into those that the function lists; `handler` is called for each. */
  readonly shards?: Of;
  /** At most so many shards of a run at once; default: as many as the pool takes. */
  readonly maxInFlight?: number;
  /** So many shards, or a share such as `'2 %'`, may fail without failing the run; default 0. */
  readonly toleratedFailures?: number | `${number} %` | `${number}%`;
  /** Called once, when all shards are over and no more failed than may. What it returns is the run's result. */
  readonly join?: (ctx: JoinContext<NoInfer<Output>>) => unknown;
  /** What it returns is the run's result, as JSON carries it; of a shard nothing is kept. */
  readonly handler: (ctx: JobContext<NoInfer<Output>, ShardOf<NoInfer<Of>>>) => unknown;
}

/** An IAM statement. Every job of the pool gets it, since they share a function. */
export interface Permission {
  readonly actions: string | readonly string[];
  /** ARNs; `{stage}` is filled in, and `${NotesTable.Arn}` is a resource of the same serverless.yml. */
  readonly resources: string | readonly string[];
  readonly conditions?: {
    readonly [operator: string]: { readonly [key: string]: string | readonly string[] };
  };
}

type MisfirePolicy = "skip" | "latest" | "all";

/** What people are told of the job; docs/watching.md has the whole story. */
export interface AlertOptions {
  /** Failures in a row, in the order of their slots, that are told. */
  readonly notifyAfter?: number;
  /** So many in a row wake somebody. */
  readonly pageAfter?: number | "never";
  /** So many in a row pause the job. */
  readonly pauseAfter?: number;
  /** From a run's first start to its end, retries included. */
  readonly finishWithin?: Duration;
  readonly slowAfter?: Duration;
  readonly remindEvery?: Duration;
  /** False: the end of a trouble is not told. */
  readonly recovery?: boolean;
}

export interface RetryOptions {
  readonly retries?: number;
  readonly firstWait?: Duration;
  readonly factor?: number;
  readonly maxWait?: Duration;
  readonly jitter?: number;
  readonly ladder?: readonly Duration[];
  readonly crashes?: number;
}

/** The default export of a file in `jobs/`. Nothing is checked here; building the project names every fault at once. */
export const defineJob = <
  Input = Json,
  Output = Input,
  const Of extends Shards<Output> | undefined = Shards<Output> | undefined,
>(
  options: JobOptions<Input, Output, Of>,
): Job => markJob(options);

/**
 * The default export of a file in `jobs/`, for a job that runs elsewhere and pings: nothing here runs it, and a slot
 * without a ping is missed. See docs/monitors.md.
 */
export const monitor = (options: MonitorOptions): Job => markMonitor(options);

export interface ConfigOptions {
  /** Names of the deployments. */
  readonly stages?: readonly string[];
  /** Each pool is a queue and a worker of its own. There is always a pool named `default`. */
  readonly pools?: { readonly [name: string]: PoolOptions };
  /** Who is told when something is wrong, and how. See docs/alerts.md. */
  readonly alerts?: AlertsOptions;
}

export interface AlertsOptions {
  /** Variables that channels name, filled from `ssm:<parameter>` or `secretsmanager:<secret>`; locally from `.env`. */
  readonly secrets?: { readonly [variable: string]: string };
  /** Channels that hear everything. */
  readonly notify?: readonly AlertChannel[];
  /** Channels that hear only what should wake somebody. */
  readonly page?: readonly AlertChannel[];
  /** What only notifies waits until they are over. */
  readonly quietHours?: { readonly from: ClockTime; readonly to: ClockTime; readonly timezone: TimeZone };
  /** A page about a run or job, for the messages: `https://jobs.example.com/runs/{runId}`; also `{job}`, `{stage}`. */
  readonly link?: string;
}

/** A time of day: `22:00`. */
export type ClockTime = `${number}:${number}`;

export interface PoolOptions {
  /** Megabytes, 128 to 10240. */
  readonly memory?: number;
  /** Runs at once, 2 to 1000. */
  readonly concurrency?: number;
  /** Longest timeout that its jobs may have. */
  readonly timeout?: Duration;
  /** Ids of the network that its workers run in. */
  readonly vpc?: { readonly securityGroups: readonly string[]; readonly subnets: readonly string[] };
}

/** The default export of `belfry.config.ts`. Checked when the project is built. */
export const defineConfig = (options: ConfigOptions): { readonly config: ConfigOptions } =>
  markConfig(options);

export {
  type AlertChannel,
  dingTalk,
  email,
  feishu,
  pagerDuty,
  slack,
  webhook,
  weCom,
} from "./core/alerts/channel-options.ts";
export type { Duration } from "./core/duration.ts";
export type { Job, Outcome } from "./core/jobs/authoring.ts";
export type { Json } from "./core/json.ts";
export type { TimeZone } from "./core/time-zones.ts";
