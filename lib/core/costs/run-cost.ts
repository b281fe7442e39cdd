import { PRICES } from "./prices.ts";
import { STORY_COUNTS, type StoryCounts } from "./story-counts.ts";

/** US dollars, by the service that bills them. */
export interface Cost {
  readonly schedules: number;
  readonly functions: number;
  readonly queues: number;
  readonly table: number;
  readonly logs: number;
}

export type Story = keyof typeof STORY_COUNTS;

/** Memory of every function but the workers. */
export const FUNCTION_MEMORY_MB = 256;

/**
 * What nobody can count on a laptop: how long our own part of an invocation lasts on Lambda, mostly waiting for two or
 * three answers of the table and the queue. The handler's own time comes on top.
 */
export const ASSUMED_MS = { dispatch: 40, delivery: 40, pass: 200 } as const;

export interface Compute {
  /** Of the pool. */
  readonly memoryMb: number;
  /** The handler's own time; default 0. */
  readonly handlerMs?: number;
}

const MB_PER_GB = 1_024;
const BYTES_PER_GB = 1_024 ** 3;
const MILLION = 1_000_000;

/** Of compute. */
export const secondsUsd = (ms: number, memoryMb: number): number =>
  (ms / 1_000) * (memoryMb / MB_PER_GB) * PRICES.functionGbSecond;
const invocationUsd = (ms: number, memoryMb: number): number =>
  PRICES.functionRequests / MILLION + secondsUsd(ms, memoryMb);

/** What Lambda's poller asks of a queue for each message: a receive, and a delete at its end. */
const POLLER_REQUESTS = 2;

/** One run with these counts, or what was counted in its place. */
export const costOf = (counts: StoryCounts, { memoryMb, handlerMs = 0 }: Compute): Cost => ({
  schedules: (counts.dispatches * PRICES.scheduleInvocations) / MILLION,
  functions:
    counts.dispatches * invocationUsd(ASSUMED_MS.dispatch, FUNCTION_MEMORY_MB) +
    counts.deliveries * invocationUsd(ASSUMED_MS.delivery + handlerMs, memoryMb),
  queues:
    ((counts.sends + counts.hides + POLLER_REQUESTS * counts.deliveries) * PRICES.queueRequests) / MILLION,
  table: (counts.writeUnits * PRICES.writeUnits + counts.readUnits * PRICES.readUnits) / MILLION,
  logs: (counts.logBytes / BYTES_PER_GB) * PRICES.logGb,
});

export const totalUsd = (cost: Cost): number => Object.values(cost).reduce((sum, usd) => sum + usd, 0);

export const sumOf = (...costs: readonly Cost[]): Cost => {
  const sum = (name: keyof Cost): number => costs.reduce((total, cost) => total + cost[name], 0);
  return {
    schedules: sum("schedules"),
    functions: sum("functions"),
    queues: sum("queues"),
    table: sum("table"),
    logs: sum("logs"),
  };
};

export const times = (cost: Cost, factor: number): Cost => ({
  schedules: cost.schedules * factor,
  functions: cost.functions * factor,
  queues: cost.queues * factor,
  table: cost.table * factor,
  logs: cost.logs * factor,
});

/** A run that ended so. */
export const storyCost = (story: Story, compute: Compute): Cost => costOf(STORY_COUNTS[story], compute);

/** One of the passes that watchdog and notifier make each minute. */
export const passCost = (pass: "a pass of the watchdog" | "a pass of the notifier"): Cost => {
  const { schedules, functions, ...rest } = storyCost(pass, { memoryMb: FUNCTION_MEMORY_MB });
  return {
    ...rest,
    schedules: schedules + PRICES.scheduleInvocations / MILLION,
    functions: functions + invocationUsd(ASSUMED_MS.pass, FUNCTION_MEMORY_MB),
  };
};
