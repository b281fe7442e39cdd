import { DEFAULT_POOL, type JobDefinition, type Manifest, type PoolDefinition } from "../jobs/job.ts";
import { scheduleOfJob } from "../jobs/job-list.ts";
import { isMonitor } from "../monitors/monitor.ts";
import { parseSchedule } from "../schedule/schedule.ts";
import { DAY_MS, MINUTE_MS } from "../time.ts";
import { type Strikes, startsOf, startUsd, strike } from "./cold-starts.ts";
import { PRICES } from "./prices.ts";
import {
  type Cost,
  costOf,
  deliveriesMs,
  FUNCTION_MEMORY_MB,
  passCost,
  secondsUsd,
  storyCost,
  sumOf,
  times,
  totalUsd,
} from "./run-cost.ts";
import { NOTHING, STORY_COUNTS, type StoryCounts } from "./story-counts.ts";
import { watchingCost } from "./watching-cost.ts";

/** A month is 30 days. */
export const MONTH_MS = 30 * DAY_MS;
const PASSES_A_MONTH = MONTH_MS / MINUTE_MS;
const MILLION = 1_000_000;

export interface JobEstimate {
  readonly job: string;
  readonly pool: string;
  /** Slots of the next 30 days. */
  readonly runs: number;
  /** Invocations by EventBridge: more than runs where it ticks finer than the slots. */
  readonly events: number;
  /** Messages to workers: one a run, and one for each shard. */
  readonly deliveries: number;
  readonly usdPerMonth: number;
  readonly usdPerMillionRuns: number;
  /** Absent where its own code lists them, and nobody knows how many. */
  readonly shards?: number;
}

/** Something that would cost less. */
export interface Saving {
  readonly kind: "pool" | "schedule" | "batch" | "memory";
  /** The jobs or pools that it is about. */
  readonly of: readonly string[];
  readonly usdPerMonth: number;
}

export interface Estimate {
  readonly jobs: readonly JobEstimate[];
  /** What a month costs in which nothing runs. */
  readonly fixed: {
    readonly watchingUsd: number;
    readonly pollingUsd: number;
    readonly passesUsd: number;
    /** Of a project with monitors: the secret of their addresses, and its alarm. A ping itself is not counted. */
    readonly pingsUsd: number;
    readonly usdPerMonth: number;
  };
  readonly runsUsdPerMonth: number;
  /** Of functions that had not been called for a while. */
  readonly coldStarts: {
    readonly dispatcher: number;
    readonly workers: number;
    readonly usdPerMonth: number;
  };
  readonly usdPerMonth: number;
  /** Best first. */
  readonly savings: readonly Saving[];
}

export interface EstimateOptions {
  /** Where schedules fire; absent = every job's does. */
  readonly stage?: string;
  readonly nowMs: number;
  /** How long a handler takes; default 0, since nobody knows. */
  readonly handlerMs?: number;
}

/** When EventBridge will invoke the dispatcher. */
const eventsOf = (job: JobDefinition, nowMs: number): readonly number[] => {
  const { expressions } = scheduleOfJob(job)?.aws ?? { expressions: [] };
  const { startsAtMs, endsAtMs } = job;
  const bounds = {
    ...(startsAtMs === undefined ? {} : { startsAtMs }),
    ...(endsAtMs === undefined ? {} : { endsAtMs }),
  };
  return expressions.flatMap(({ expression, timezone }) => [
    ...parseSchedule(expression, { timezone, ...bounds }).slots(nowMs, nowMs + MONTH_MS),
  ]);
};

/** A job's month. */
interface Month {
  readonly job: JobDefinition;
  readonly pool: PoolDefinition;
  readonly runs: readonly number[];
  readonly events: readonly number[];
}

const monthOf = (job: JobDefinition, pool: PoolDefinition, { nowMs, stage }: EstimateOptions): Month => {
  const isHere = stage === undefined || job.stages === undefined || job.stages.includes(stage);
  if (!isHere || isMonitor(job)) return { job, pool, runs: [], events: [] };
  const runs = [...(scheduleOfJob(job)?.slots(nowMs, nowMs + MONTH_MS) ?? [])];
  return { job, pool, runs, events: eventsOf(job, nowMs) };
};

/** One event, read and no more: the schedule, the dispatcher, the control item. */
const EVENT: StoryCounts = { ...NOTHING, dispatches: 1, reads: 1, readUnits: 0.5 };
const eventUsd = totalUsd(costOf(EVENT, { memoryMb: FUNCTION_MEMORY_MB }));

const runCost = ({ overlap, shards }: JobDefinition, compute: Parameters<typeof storyCost>[1]): Cost => {
  const own = storyCost(overlap === "allow" ? "succeeded" : "succeeded, with a lock", compute);
  const parts =
    shards?.count === undefined ? [] : [times(storyCost("each of 64 shards", compute), shards.count)];
  return sumOf(own, storyCost("watched, for each slot", compute), ...parts);
};

const jobEstimate = ({ job, pool, runs, events }: Month, handlerMs: number): JobEstimate => {
  const each = totalUsd(runCost(job, { memoryMb: pool.memoryMb, handlerMs }));
  const stray = Math.max(0, events.length - runs.length) * eventUsd;
  const shards = job.shards?.count;
  return {
    job: job.name,
    pool: job.pool,
    runs: runs.length,
    events: events.length,
    deliveries: runs.length * (1 + (shards ?? 0)),
    usdPerMonth: runs.length * each + stray,
    usdPerMillionRuns: each * MILLION,
    ...(shards === undefined ? {} : { shards }),
  };
};

/** Watchdog and notifier are called each minute, so they stay warm. */
const coldStartsOf = (months: readonly Month[], pools: Manifest["pools"]): Estimate["coldStarts"] => {
  const events: Strikes = new Map();
  const runs = new Map<string, Strikes>(Object.keys(pools).map((pool) => [pool, new Map()]));
  for (const month of months) {
    for (const atMs of month.events) strike(events, atMs);
    const ofPool = runs.get(month.job.pool);
    if (ofPool) for (const atMs of month.runs) strike(ofPool, atMs, 1 + (month.job.shards?.count ?? 0));
  }
  const dispatcher = startsOf(events);
  const workers = [...runs].map(([pool, strikes]) => {
    const { memoryMb, concurrency } = pools[pool] ?? DEFAULT_POOL;
    const starts = startsOf(strikes, concurrency);
    return { starts, usd: starts * startUsd(memoryMb) };
  });
  const sum = (of: (worker: (typeof workers)[number]) => number): number =>
    workers.reduce((total, worker) => total + of(worker), 0);
  return {
    dispatcher,
    workers: sum(({ starts }) => starts),
    usdPerMonth: dispatcher * startUsd() + sum(({ usd }) => usd),
  };
};

/** Lambda's pollers ask an empty queue again every 20 s. */
const pollerUsd = ((MONTH_MS / 20_000) * PRICES.queueRequests) / MILLION;
/** Five, because a pool limits its concurrency. */
const POOL_POLLERS = 5;
const DEAD_LETTER_POLLERS = 2;
const DISPATCH_FAILURE_POLLERS = 2;
/** Of the queue between the alarms' topic and the notifier. */
const ALARM_POLLERS = 2;

/** Of the alarm `ping-errors`. */
const PING_ALARM_METRICS = 2;

const fixedOf = ({ jobs, pools }: Pick<Manifest, "jobs" | "pools">): Estimate["fixed"] => {
  const { total, perJob } = watchingCost(jobs.filter(({ ownAlarms }) => ownAlarms).length, pools);
  const watchingUsd = total.usd + perJob.atMostUsd;
  const ofPools = Object.keys(pools).length * (POOL_POLLERS + DEAD_LETTER_POLLERS);
  const pollers = DISPATCH_FAILURE_POLLERS + ALARM_POLLERS + ofPools;
  const pollingUsd = pollers * pollerUsd;
  const passes = sumOf(passCost("a pass of the watchdog"), passCost("a pass of the notifier"));
  const passesUsd = totalUsd(times(passes, PASSES_A_MONTH));
  const pingsUsd = jobs.some(isMonitor) ? PRICES.secret + PING_ALARM_METRICS * PRICES.alarmMetric : 0;
  const usdPerMonth = watchingUsd + pollingUsd + passesUsd + pingsUsd;
  return { watchingUsd, pollingUsd, passesUsd, pingsUsd, usdPerMonth };
};

/** A pool less: its two queues, and its alarms. */
const poolSavings = ({ pools, jobs }: Manifest): readonly Saving[] => {
  const all = fixedOf({ jobs, pools }).usdPerMonth;
  return Object.keys(pools)
    .filter((name) => name !== "default")
    .map((name) => {
      const rest = Object.fromEntries(Object.entries(pools).filter(([other]) => other !== name));
      return { kind: "pool", of: [name], usdPerMonth: all - fixedOf({ jobs, pools: rest }).usdPerMonth };
    });
};

/** Jobs that strike at the same slots: as one job they would be dispatched by one event. */
const scheduleSavings = (manifest: Manifest, estimates: readonly JobEstimate[]): readonly Saving[] => {
  const eventsOfJob = new Map(estimates.map(({ job, events }) => [job, events]));
  const scheduled = manifest.jobs.filter((job) => job.schedules.length > 0 && !isMonitor(job));
  const together = Map.groupBy(
    scheduled,
    ({ schedules, timezone }) => `${[...schedules].sort().join("|")} ${timezone}`,
  );
  return [...together.values()]
    .filter((jobs) => jobs.length > 1)
    .map((jobs) => {
      const events = jobs.slice(1).reduce((sum, { name }) => sum + (eventsOfJob.get(name) ?? 0), 0);
      return { kind: "schedule", of: jobs.map(({ name }) => name), usdPerMonth: events * eventUsd };
    });
};

const deliveriesIn = (pool: string, estimates: readonly JobEstimate[]): number =>
  estimates.filter((each) => each.pool === pool).reduce((sum, { deliveries }) => sum + deliveries, 0);

/** As many messages as a batch can hold come together: one receive, one delete and one invocation for all of them. */
const BATCH = 10;
const REQUESTS_OF_DELIVERY_USD = (2 * PRICES.queueRequests + PRICES.functionRequests) / MILLION;
/** Least that a worker with a thread has been tried with. */
const LEAST_MEMORY_MB = 128;

/** Compute of one delivery: our own part takes longer with less memory, the handler's may not. */
const deliveryUsd = (memoryMb: number, handlerMs: number): number =>
  secondsUsd(deliveriesMs(STORY_COUNTS.succeeded, memoryMb) + handlerMs, memoryMb);

const workerSavings = (
  { pools }: Manifest,
  estimates: readonly JobEstimate[],
  handlerMs: number,
): readonly Saving[] =>
  Object.entries(pools).flatMap(([pool, { memoryMb }]): Saving[] => {
    const deliveries = deliveriesIn(pool, estimates);
    const batch = deliveries * (1 - 1 / BATCH) * REQUESTS_OF_DELIVERY_USD;
    const less = deliveryUsd(memoryMb, handlerMs) - deliveryUsd(LEAST_MEMORY_MB, handlerMs);
    return [
      { kind: "batch", of: [pool], usdPerMonth: batch },
      { kind: "memory", of: [pool], usdPerMonth: deliveries * less },
    ];
  });

/** What a deployment of these jobs costs a month, at list price. */
export const estimate = (manifest: Manifest, options: EstimateOptions): Estimate => {
  const { jobs, pools } = manifest;
  const { handlerMs = 0 } = options;
  const months = jobs.map((job) => monthOf(job, pools[job.pool] ?? DEFAULT_POOL, options));
  const estimates = months.map((month) => jobEstimate(month, handlerMs));
  const fixed = fixedOf(manifest);
  const coldStarts = coldStartsOf(months, pools);
  const runsUsdPerMonth = estimates.reduce((sum, { usdPerMonth }) => sum + usdPerMonth, 0);
  const savings = [
    ...poolSavings(manifest),
    ...scheduleSavings(manifest, estimates),
    ...workerSavings(manifest, estimates, handlerMs),
  ];
  return {
    jobs: estimates,
    fixed,
    runsUsdPerMonth,
    coldStarts,
    usdPerMonth: runsUsdPerMonth + coldStarts.usdPerMonth + fixed.usdPerMonth,
    savings: savings
      .filter(({ usdPerMonth }) => usdPerMonth > 0)
      .sort((left, right) => right.usdPerMonth - left.usdPerMonth),
  };
};
