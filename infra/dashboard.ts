import { alarmName, type Measured, type WatchedFunction } from "../lib/core/alarms/alarm.ts";
import { alarmsOf } from "../lib/core/alarms/alarms.ts";
import type { MetricName } from "../lib/core/alarms/metrics.ts";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { namedMetric } from "./alarms.ts";
import { placeholder, type Resources, sub } from "./cloudformation.ts";
import { type Deployment, dashboardName, type FunctionKind, functionName, hasPings } from "./naming.ts";

/** One line of a graph. */
interface Line {
  readonly measured: Measured;
  readonly stat: string;
  readonly label?: string;
  readonly yAxis?: "right";
}

interface Widget {
  readonly type: "alarm" | "metric" | "log";
  readonly width: number;
  readonly height: number;
  readonly properties: object;
}

/** Of every widget but the last. */
const ROW = 6;

const REGION = placeholder("AWS::Region");

const graph = (deployment: Deployment, title: string, lines: readonly Line[], more: object = {}): Widget => ({
  type: "metric",
  width: 12,
  height: ROW,
  properties: {
    title,
    region: REGION,
    view: "timeSeries",
    period: 300,
    metrics: lines.map(({ measured, ...options }) => {
      const { Namespace, MetricName: name, Dimensions } = namedMetric(deployment, measured);
      return [Namespace, name, ...Dimensions.flatMap(({ Name, Value }) => [Name, Value]), options];
    }),
    ...more,
  },
});

const counts = (...names: readonly MetricName[]): readonly Line[] =>
  names.map((name) => ({ measured: { of: "service", name }, stat: "Sum" }));

const quantiles = (name: MetricName): readonly Line[] =>
  ["p50", "p99"].map((stat) => ({ measured: { of: "service", name }, stat, label: `${name} ${stat}` }));

const ofPool = (deployment: Deployment, pool: string): Widget => {
  const depth = "ApproximateNumberOfMessagesVisible";
  const queue = (kind: "pool" | "dead-letters", name: typeof depth | "ApproximateAgeOfOldestMessage") =>
    ({ of: "queue", queue: { kind, pool }, name }) as const;
  return graph(deployment, `Pool ${pool}`, [
    { measured: queue("pool", depth), stat: "Maximum", label: "waiting" },
    { measured: queue("dead-letters", depth), stat: "Maximum", label: "dead letters" },
    {
      measured: queue("pool", "ApproximateAgeOfOldestMessage"),
      stat: "Maximum",
      label: "age of the oldest, s",
      yAxis: "right",
    },
  ]);
};

const ofFunctions = (deployment: Deployment, manifest: Manifest): Widget => {
  const functions: readonly WatchedFunction[] = [
    { kind: "dispatcher" },
    { kind: "dead-letters" },
    ...(hasPings(manifest) ? [{ kind: "ping" } as const] : []),
    ...Object.keys(manifest.pools).map((pool) => ({ kind: "worker", pool }) as const),
  ];
  const lines = functions.flatMap((one): Line[] => {
    const label = one.kind === "worker" ? `worker ${one.pool}` : one.kind;
    return (["Errors", "Throttles"] as const).map((name) => ({
      measured: { of: "function", function: one, name },
      stat: "Sum",
      label: `${label} ${name.toLowerCase()}`,
    }));
  });
  return graph(deployment, "Functions", lines);
};

const ofSchedules = (deployment: Deployment): Widget =>
  graph(
    deployment,
    "Schedules that were not delivered",
    (["TargetErrorCount", "InvocationDroppedCount"] as const).map((name) => ({
      measured: { of: "schedules", group: "jobs", name },
      stat: "Sum",
    })),
  );

/** Read, and paid for, only while somebody looks at it. */
const badLines = (deployment: Deployment, manifest: Manifest): Widget => {
  const kinds: readonly (readonly [FunctionKind, string?])[] = [
    ["dispatcher"],
    ["watchdog"],
    ["dead-letters"],
    ["notifier"],
    ...(hasPings(manifest) ? [["ping"] as const] : []),
    ...Object.keys(manifest.pools).map((pool) => ["worker", pool] as const),
  ];
  const sources = kinds.map(([kind, pool]) => `SOURCE '/aws/lambda/${functionName(deployment, kind, pool)}'`);
  const query = [
    "fields @timestamp, level, message, job, runId, reason, why",
    'filter level in ["ERROR", "WARN"]',
    "sort @timestamp desc",
    "limit 50",
  ];
  return {
    type: "log",
    width: 24,
    height: 8,
    properties: {
      title: "What went wrong lately",
      region: REGION,
      view: "table",
      query: [...sources, ...query].join(" | "),
    },
  };
};

/** A widget takes so many alarms. */
const MOST_ALARMS = 100;

const ofAlarms = (deployment: Deployment, manifest: Manifest): readonly Widget[] => {
  const arns = alarmsOf(manifest).map(
    ({ key }) =>
      `arn:${placeholder("AWS::Partition")}:cloudwatch:${REGION}:${placeholder("AWS::AccountId")}:alarm:${alarmName(deployment, key)}`,
  );
  return Array.from({ length: Math.ceil(arns.length / MOST_ALARMS) }, (_, i) => ({
    type: "alarm",
    width: 24,
    height: ROW,
    properties: { title: "Alarms", alarms: arns.slice(i * MOST_ALARMS, (i + 1) * MOST_ALARMS) },
  }));
};

/** Side by side as far as they fit, then below. */
const placed = (widgets: readonly Widget[]): readonly object[] => {
  let [x, y] = [0, 0];
  return widgets.map((widget) => {
    if (x + widget.width > 24) {
      x = 0;
      y += ROW;
    }
    const at = { ...widget, x, y };
    x += widget.width;
    return at;
  });
};

/** One page with all that is watched, of the same list as the alarms. */
export const dashboardResources = (deployment: Deployment, manifest: Manifest): Resources => {
  const pools = Object.keys(manifest.pools);
  const widgets: readonly Widget[] = [
    ...ofAlarms(deployment, manifest),
    graph(
      deployment,
      "Runs by how they ended",
      counts(
        "RunsSucceeded",
        "RunsDead",
        "RunsMissed",
        "RunsExpired",
        "RunsSkipped",
        "RunsCancelled",
        "RunsParked",
      ),
      { stacked: true },
    ),
    graph(deployment, "Lateness and duration, ms", [...quantiles("latenessMs"), ...quantiles("durationMs")]),
    graph(deployment, "Attempts that failed", counts("AttemptsFailed", "AttemptsTimedOut", "LeasesLost")),
    graph(deployment, "Passes", counts("WatchdogPasses", "NotifierPasses")),
    ...pools.map((pool) => ofPool(deployment, pool)),
    ofFunctions(deployment, manifest),
    ofSchedules(deployment),
    badLines(deployment, manifest),
  ];
  return {
    BelfryDashboard: {
      Type: "AWS::CloudWatch::Dashboard",
      Properties: {
        DashboardName: dashboardName(deployment),
        DashboardBody: sub(JSON.stringify({ widgets: placed(widgets) })),
      },
    },
  };
};
