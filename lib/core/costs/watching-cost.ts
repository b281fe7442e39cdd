import { JOB_METRICS } from "../alarms/alarm.ts";
import { alarmsOf } from "../alarms/alarms.ts";
import { METRICS, type MetricName } from "../alarms/metrics.ts";
import type { PoolDefinition } from "../jobs/job.ts";
import { PRICES } from "./prices.ts";

/** Written by a service that is well; the others only in the hours in which something is not. */
const HEALTHY: readonly MetricName[] = [
  "RunsSucceeded",
  "durationMs",
  "latenessMs",
  "WatchdogPasses",
  "NotifierPasses",
];

/** How many there are, and what they cost a month in US dollars. */
interface Item {
  readonly count: number;
  readonly usd: number;
}

/** What it costs a month to watch a deployment, at list price. */
export interface WatchingCost {
  readonly jobs: number;
  readonly alarms: Item;
  /** Of alarms, the watched metrics are billed. */
  readonly alarmMetrics: Item;
  readonly metrics: Item;
  /** With every metric written in every hour. */
  readonly metricsAtMost: Item;
  readonly key: Item;
  readonly dashboard: Item;
  readonly total: { readonly usd: number; readonly atMostUsd: number };
  /** More, if every job had metrics and alarms of its own (`ownAlarms`). */
  readonly perJob: {
    readonly alarmMetrics: Item;
    readonly metricsAtMost: Item;
    readonly usd: number;
    readonly atMostUsd: number;
  };
}

const cents = (usd: number): number => Math.round(usd * 100) / 100;
const item = (count: number, price: number): Item => ({ count, usd: cents(count * price) });
const sum = (...items: readonly Item[]): number => cents(items.reduce((total, { usd }) => total + usd, 0));

/** Alarms and metrics are those of the service, so they do not grow with the jobs; those of a job would. */
export const watchingCost = (
  jobs: number,
  pools: { readonly [name: string]: PoolDefinition },
): WatchingCost => {
  const all = alarmsOf({ jobs: [], pools });
  const alarmMetrics = item(
    all.reduce((count, { metrics }) => count + metrics.length, 0),
    PRICES.alarmMetric,
  );
  const metrics = item(HEALTHY.length, PRICES.customMetric);
  const metricsAtMost = item(Object.keys(METRICS).length, PRICES.customMetric);
  const [key, dashboard] = [item(1, PRICES.key), item(1, PRICES.dashboard)];
  const ownAlarms = item(jobs * JOB_METRICS.length, PRICES.alarmMetric);
  const ownMetrics = item(jobs * JOB_METRICS.length, PRICES.customMetric);
  return {
    jobs,
    alarms: { count: all.length, usd: alarmMetrics.usd },
    alarmMetrics,
    metrics,
    metricsAtMost,
    key,
    dashboard,
    total: {
      usd: sum(alarmMetrics, metrics, key, dashboard),
      atMostUsd: sum(alarmMetrics, metricsAtMost, key, dashboard),
    },
    perJob: {
      alarmMetrics: ownAlarms,
      metricsAtMost: ownMetrics,
      usd: ownAlarms.usd,
      atMostUsd: sum(ownAlarms, ownMetrics),
    },
  };
};
