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

/** What nobody can count on a laptop: how long a call to the table or a queue takes from a function near it. */
export const ASSUMED_CALL_MS = 10;
/** As assumed: a pass of the watchdog or the notifier, which asks for several things at once. */
const ASSUMED_PASS_MS = 200;

/**
 * Processor time of our own part of an invocation: about twice what `npm run bench` measures without a network, since
 * there nothing is encrypted.
 */
export const CPU_MS = { dispatch: 1.5, delivery: 1.5 } as const;
/** @see https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html */
const MB_PER_PROCESSOR = 1_769;

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

/** How long our own part of an invocation lasts that makes so many calls. */
const lastsMs = (calls: number, cpuMs: number, memoryMb: number): number =>
  calls * ASSUMED_CALL_MS + (cpuMs * MB_PER_PROCESSOR) / Math.min(memoryMb, MB_PER_PROCESSOR);

/** How long our own part of the deliveries of a run lasts, at so much memory. */
export const deliveriesMs = ({ deliveries, workerCalls }: StoryCounts, memoryMb: number): number =>
  lastsMs(workerCalls, deliveries * CPU_MS.delivery, memoryMb);

/** Whoever else calls, for a run that no event dispatched, is paid for by other invocations. */
const dispatchesMs = ({ dispatches, workerCalls, ...counts }: StoryCounts): number => {
  const calls = counts.writes + counts.reads + counts.sends + counts.hides - workerCalls;
  return dispatches === 0 ? 0 : lastsMs(calls, dispatches * CPU_MS.dispatch, FUNCTION_MEMORY_MB);
};

/** What Lambda's poller asks of a queue for each message: a receive, and a delete at its end. */
const POLLER_REQUESTS = 2;

/** One run with these counts, or what was counted in its place. */
export const costOf = (counts: StoryCounts, { memoryMb, handlerMs = 0 }: Compute): Cost => ({
  schedules: (counts.dispatches * PRICES.scheduleInvocations) / MILLION,
  functions:
    ((counts.dispatches + counts.deliveries) * PRICES.functionRequests) / MILLION +
    secondsUsd(dispatchesMs(counts), FUNCTION_MEMORY_MB) +
    secondsUsd(deliveriesMs(counts, memoryMb) + counts.deliveries * handlerMs, memoryMb),
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
    functions:
      functions + PRICES.functionRequests / MILLION + secondsUsd(ASSUMED_PASS_MS, FUNCTION_MEMORY_MB),
  };
};
