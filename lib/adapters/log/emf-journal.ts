import { Console } from "node:console";
import process from "node:process";
import { JOB_METRICS } from "../../core/alarms/alarm.ts";
import { type MetricName, NAMESPACE } from "../../core/alarms/metrics.ts";
import type { Json } from "../../core/json.ts";
import { isTerminal } from "../../core/runs/run.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { LogLevel } from "../../ports/attempts.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AttemptEvent, Journal, NoticeCode } from "../../ports/journal.ts";

interface Metric {
  readonly name: MetricName;
  readonly value: number;
}

interface Labels {
  readonly stage: string;
  /** Where it has metrics of its own. */
  readonly job?: string;
}

const isOfJobs = ({ name }: Metric): boolean => JOB_METRICS.some((own) => own === name);

/**
 * Metrics inside a log line, by service (which every line names) and stage. Every further dimension value would be a
 * metric of its own, and a metric costs $0.30 a month. Units are in the metrics' names: each line is paid by the byte.
 * See https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
const embedded = (metrics: readonly Metric[], { stage, job }: Labels, nowMs: number) => {
  const directive = (dimensions: readonly string[], named: readonly Metric[]) => ({
    Namespace: NAMESPACE,
    Dimensions: [["service", "stage", ...dimensions]],
    Metrics: named.map(({ name }) => ({ Name: name })),
  });
  const own = job === undefined ? [] : metrics.filter(isOfJobs);
  return {
    _aws: {
      Timestamp: nowMs,
      CloudWatchMetrics: [directive([], metrics), ...(own.length > 0 ? [directive(["job"], own)] : [])],
    },
    stage,
    ...Object.fromEntries(metrics.map(({ name, value }) => [name, value])),
  };
};

const count = (name: MetricName): Metric => ({ name, value: 1 });

const METRIC_OF_STATE: { readonly [state: string]: MetricName } = {
  succeeded: "RunsSucceeded",
  dead: "RunsDead",
  parked: "RunsParked",
  waiting: "AttemptsFailed",
  skipped: "RunsSkipped",
  cancelled: "RunsCancelled",
};

/** Notices that are counted; the others are only said. */
const METRIC_OF_NOTICE: { readonly [code in NoticeCode]?: MetricName } = {
  "duplicate-delivery": "DuplicateDeliveries",
  "off-schedule-event": "OffScheduleEvents",
  "stale-result": "StaleResults",
  "lease-lost": "LeasesLost",
  "poison-message": "PoisonMessages",
  "unknown-job": "UnknownJobs",
  "record-gone": "RecordsGone",
  "caught-up": "RunsCaughtUp",
  missed: "RunsMissed",
  expired: "RunsExpired",
  dead: "RunsDead",
  parked: "RunsParked",
  cancelled: "RunsCancelled",
  late: "RunsLate",
  stuck: "RunsStuck",
  "page-threshold": "JobsAtPageThreshold",
  "ping-refused": "PingsRefused",
  "message-failed": "MessagesFailed",
  "invocation-failed": "InvocationsFailed",
  "watchdog-pass": "WatchdogPasses",
  "notifier-pass": "NotifierPasses",
  "alert-told": "AlertsTold",
  "alert-not-told": "AlertDeliveriesFailed",
  "alert-given-up": "AlertsUndelivered",
  "alert-untold": "AlertsUndelivered",
};

/** Of an attempt of a shard, whose state is not its run's. */
const METRIC_OF_SHARD: { readonly [state: string]: MetricName } = {
  succeeded: "ShardsSucceeded",
  dead: "ShardsFailed",
  waiting: "AttemptsFailed",
};

const metricsOf = (event: AttemptEvent): readonly Metric[] => {
  const name = (event.shard === undefined ? METRIC_OF_STATE : METRIC_OF_SHARD)[event.state];
  return [
    ...(name === undefined ? [] : [count(name)]),
    ...(event.outcome === "timed-out" ? [count("AttemptsTimedOut")] : []),
    { name: "durationMs", value: event.endedAtMs - event.startedAtMs },
    // A backfill is late by design: its slots passed long ago; and a shard starts when its turn comes.
    ...(isTerminal(event.state) && event.trigger !== "backfill" && event.shard === undefined
      ? [{ name: "latenessMs", value: event.latenessMs } as const]
      : []),
  ];
};

const levelOf = ({ state }: AttemptEvent): LogLevel =>
  state === "dead" ? "error" : state === "waiting" ? "warn" : "info";

type Fields = { readonly [name: string]: unknown };

const STREAM_OF = { debug: undefined, info: "log", warn: "warn", error: "error" } as const;

/**
 * Prints lines as Lambda's log format JSON wants them, `level` and `timestamp` in each. Not by the global console, which
 * Lambda wraps; a console of one's own shrugs off a closed pipe, as a stream does not.
 */
const printer = (clock: Clock, service: string) => {
  const console = new Console({ stdout: process.stdout, stderr: process.stderr });
  return (level: LogLevel, message: string, fields: Fields): void => {
    const stream = STREAM_OF[level];
    if (stream === undefined) return;
    const timestamp = new Date(clock.nowMs()).toISOString();
    const head = { level: level.toUpperCase(), message, timestamp, service };
    // Named twice: first in the line, and not to be replaced by what a handler calls its fields.
    console[stream](JSON.stringify({ ...head, ...fields, ...head }));
  };
};

/** What became of the attempt, where the state does not say it. */
const outcomeOf = ({ state, outcome }: AttemptEvent): Fields => (state === "succeeded" ? {} : { outcome });

interface Deployment {
  readonly service: string;
  readonly stage: string;
  /** Names of the jobs with metrics of their own. */
  readonly ownMetrics: ReadonlySet<string>;
}

/** One JSON line per attempt and per notice, each with its own metrics. */
export const emfJournal = (clock: Clock, { ownMetrics, service, stage }: Deployment): Journal => {
  const print = printer(clock, service);
  const labelsFor = (job: unknown): Labels =>
    typeof job === "string" && ownMetrics.has(job) ? { stage, job } : { stage };
  return {
    attempt(event) {
      const { slotMs, startedAtMs, endedAtMs, outcome: _, ...rest } = event;
      print(levelOf(event), "run", {
        ...rest,
        ...outcomeOf(event),
        slot: shortIsoOf(slotMs),
        durationMs: endedAtMs - startedAtMs,
        ...embedded(metricsOf(event), labelsFor(event.job), clock.nowMs()),
      });
    },
    notice(level, code, fields) {
      const metric = METRIC_OF_NOTICE[code];
      const metrics =
        metric === undefined ? {} : embedded([count(metric)], labelsFor(fields["job"]), clock.nowMs());
      print(level, code, { ...fields, ...metrics });
    },
    handlerLine(level: LogLevel, message: string, fields: { readonly [name: string]: Json }) {
      print(level, message, fields);
    },
  };
};
