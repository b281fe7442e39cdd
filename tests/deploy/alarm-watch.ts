/**
 * What CloudWatch does with alarms, done here for the emulated AWS: it takes embedded metrics from the deployed
 * functions' logs, asks the emulator for AWS's own, judges each deployed alarm on a sum, missing data included, and sets
 * its state. The emulator does what an alarm's change brings about.
 */
import { setTimeout as pause } from "node:timers/promises";
import {
  GetMetricDataCommand,
  type Metric,
  paginateDescribeAlarms,
  SetAlarmStateCommand,
} from "@aws-sdk/client-cloudwatch";
import { DescribeLogGroupsCommand, FilterLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import type { Aws } from "./aws.ts";
import { type DeployedResource, deployedTemplates } from "./deployed.ts";

const LOOK_EVERY_MS = 3_000;
const MINUTE_MS = 60_000;
/** Longer than any alarm of this scenario looks back. */
const KEPT_MS = 20 * MINUTE_MS;
/** What a minute has brought is known so much later; before that its silence means nothing. */
const LATE_MS = 15_000;

interface Point {
  readonly atMs: number;
  readonly value: number;
}

type Points = ReadonlyMap<string, readonly Point[]>;

/** As deployed: an alarm on the sum of some metrics. */
interface Alarm {
  readonly name: string;
  readonly metrics: readonly Metric[];
  readonly periodMs: number;
  readonly evaluationPeriods: number;
  readonly datapointsToAlarm: number;
  readonly threshold: number;
  readonly rings: "at-least" | "below";
  readonly isMissingBreaching: boolean;
}

interface MetricStat {
  readonly Metric: Metric;
  readonly Period: number;
  readonly Stat: string;
}

interface AlarmProperties extends Metric {
  readonly AlarmName: string;
  readonly Statistic?: string;
  readonly Period?: number;
  readonly Metrics?: readonly { readonly MetricStat?: MetricStat }[];
  readonly EvaluationPeriods: number;
  readonly DatapointsToAlarm: number;
  readonly Threshold: number;
  readonly ComparisonOperator: string;
  readonly TreatMissingData: string;
}

/** One metric, or those that a sum is made of. */
const statsOf = (properties: AlarmProperties): readonly MetricStat[] => {
  const { Metrics, Namespace, MetricName, Dimensions, Period = 60, Statistic = "" } = properties;
  return Metrics === undefined
    ? [{ Metric: { Namespace, MetricName, Dimensions }, Period, Stat: Statistic }]
    : Metrics.flatMap(({ MetricStat }) => (MetricStat === undefined ? [] : [MetricStat]));
};

const alarmOf = (properties: AlarmProperties): Alarm | undefined => {
  const stats = statsOf(properties);
  if (stats.some(({ Stat }) => Stat !== "Sum")) return undefined;
  return {
    name: properties.AlarmName,
    metrics: stats.map(({ Metric }) => Metric),
    periodMs: (stats[0]?.Period ?? 60) * 1_000,
    evaluationPeriods: properties.EvaluationPeriods,
    datapointsToAlarm: properties.DatapointsToAlarm,
    threshold: properties.Threshold,
    rings: properties.ComparisonOperator === "LessThanThreshold" ? "below" : "at-least",
    isMissingBreaching: properties.TreatMissingData === "breaching",
  };
};

const alarmsIn = (resources: readonly DeployedResource[]): readonly Alarm[] =>
  resources
    .filter(({ type }) => type === "AWS::CloudWatch::Alarm")
    .flatMap(({ properties }) => alarmOf(properties as unknown as AlarmProperties) ?? []);

const keyOf = ({ Namespace, MetricName, Dimensions = [] }: Metric): string =>
  [Namespace, MetricName, ...Dimensions.map(({ Name, Value }) => `${Name}=${Value}`).sort()].join(" ");

interface Directive {
  readonly Namespace: string;
  readonly Dimensions: readonly (readonly string[])[];
  readonly Metrics: readonly { readonly Name: string }[];
}

type Line = { readonly [member: string]: unknown } & {
  readonly _aws?: { readonly Timestamp: number; readonly CloudWatchMetrics: readonly Directive[] };
};

const parse = (text: string): Line | undefined => {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
};

/** What a line of a log says of its metrics. */
const pointsIn = (line: Line): readonly (readonly [key: string, point: Point])[] =>
  (line._aws?.CloudWatchMetrics ?? []).flatMap(({ Namespace, Dimensions, Metrics }) =>
    Dimensions.flatMap((names) =>
      Metrics.map(({ Name }) => {
        const dimensions = names.map((name) => ({ Name: name, Value: String(line[name]) }));
        const key = keyOf({ Namespace, MetricName: Name, Dimensions: dimensions });
        return [key, { atMs: line._aws?.Timestamp ?? 0, value: Number(line[Name]) }] as const;
      }),
    ),
  );

/** Adds what the functions' logs have got since the last call. */
const readLogs = ({ logs }: Aws) => {
  const points = new Map<string, Point[]>();
  const read = new Set<string>();
  let readUntilMs = Date.now();
  return async (nowMs: number): Promise<Points> => {
    const { logGroups = [] } = await logs.send(
      new DescribeLogGroupsCommand({ logGroupNamePrefix: "/aws/lambda/" }),
    );
    for (const { logGroupName } of logGroups) {
      const asked = { logGroupName, filterPattern: '"_aws"', startTime: readUntilMs - MINUTE_MS };
      // Gone meanwhile, with its stack.
      const nothing = { events: [] };
      const { events = [] } = await logs.send(new FilterLogEventsCommand(asked)).catch(() => nothing);
      for (const { logStreamName, timestamp, message = "" } of events) {
        // Not every event has an id here.
        const event = `${logStreamName} ${timestamp} ${message}`;
        if (read.has(event)) continue;
        read.add(event);
        for (const [key, point] of pointsIn(parse(message) ?? {}))
          points.set(key, [...(points.get(key) ?? []), point]);
      }
    }
    readUntilMs = nowMs;
    return points;
  };
};

const isOfAws = ({ Namespace }: Metric): boolean => Namespace?.startsWith("AWS/") === true;

/** AWS's own metrics, as far as the emulator has them: a point for each minute. */
const readMetrics = async ({ cloudWatch }: Aws, alarms: readonly Alarm[], nowMs: number): Promise<Points> => {
  const metrics = [
    ...new Map(alarms.flatMap((alarm) => alarm.metrics.filter(isOfAws)).map((each) => [keyOf(each), each])),
  ];
  if (metrics.length === 0) return new Map();
  const { MetricDataResults = [] } = await cloudWatch.send(
    new GetMetricDataCommand({
      StartTime: new Date(nowMs - KEPT_MS),
      EndTime: new Date(nowMs + MINUTE_MS),
      MetricDataQueries: metrics.map(([, Metric], i) => ({
        Id: `m${i}`,
        MetricStat: { Metric, Period: 60, Stat: "Sum" },
      })),
    }),
  );
  return new Map(
    MetricDataResults.map(({ Id = "", Timestamps = [], Values = [] }) => [
      metrics[Number(Id.slice(1))]?.[0] ?? "",
      Timestamps.map((at, i) => ({ atMs: at.getTime(), value: Values[i] ?? 0 })),
    ]),
  );
};

/** `m of n`: does it breach in that many of the periods that end with the one that begins then? */
const breaches = (alarm: Alarm, points: readonly Point[], lastMs: number): boolean => {
  const isBreaching = (fromMs: number): boolean => {
    const within = points.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + alarm.periodMs);
    if (within.length === 0) return alarm.isMissingBreaching;
    const sum = within.reduce((all, { value }) => all + value, 0);
    return alarm.rings === "below" ? sum < alarm.threshold : sum >= alarm.threshold;
  };
  const periods = Array.from({ length: alarm.evaluationPeriods }, (_, i) => lastMs - i * alarm.periodMs);
  return periods.filter(isBreaching).length >= alarm.datapointsToAlarm;
};

/**
 * Silence is judged when a period is over. What happened is judged in the period that goes on too, and in the one
 * before, whose last second is only read in this one. An alarm on silence warms up until it has heard something and so
 * many periods have passed since.
 */
const isRinging = (alarm: Alarm, points: readonly Point[], nowMs: number): boolean | undefined => {
  const { periodMs } = alarm;
  const startOf = (atMs: number): number => Math.floor(atMs / periodMs) * periodMs;
  if (alarm.isMissingBreaching) {
    const lastMs = startOf(nowMs - LATE_MS) - periodMs;
    const heardMs = Math.min(...points.map(({ atMs }) => atMs));
    const isWarm = lastMs - heardMs > (alarm.evaluationPeriods - 1) * periodMs;
    return isWarm ? breaches(alarm, points, lastMs) : undefined;
  }
  const latestMs = startOf(nowMs);
  return breaches(alarm, points, latestMs) || breaches(alarm, points, latestMs - periodMs);
};

const readStates = async ({ cloudWatch }: Aws): Promise<ReadonlyMap<string, string>> => {
  const states = new Map<string, string>();
  for await (const { MetricAlarms = [] } of paginateDescribeAlarms({ client: cloudWatch }, {}))
    for (const { AlarmName = "", StateValue = "" } of MetricAlarms) states.set(AlarmName, StateValue);
  return states;
};

/** Judges until it is stopped. */
export const startAlarmWatch = (aws: Aws, onError: (error: unknown) => void) => {
  const stopping = new AbortController();
  const rang = new Set<string>();
  const templates = deployedTemplates(aws);
  const logs = readLogs(aws);

  const put = async (
    { name, metrics }: Alarm,
    before: string | undefined,
    isRingingNow: boolean | undefined,
  ): Promise<void> => {
    // Undefined = gone meanwhile, or not judged yet.
    if (before === undefined || isRingingNow === undefined) return;
    const state = isRingingNow ? "ALARM" : "OK";
    if (state === before || (state === "OK" && before === "INSUFFICIENT_DATA")) return;
    if (isRingingNow) rang.add(name);
    const StateReason = `${metrics.map(({ MetricName }) => MetricName).join(", ")}, as measured`;
    const asked = { AlarmName: name, StateValue: state, StateReason } as const;
    await aws.cloudWatch.send(new SetAlarmStateCommand(asked));
  };

  const look = async (): Promise<void> => {
    const nowMs = Date.now();
    const alarms = alarmsIn((await templates.resources()).resources);
    const states = await readStates(aws);
    const points = new Map([...(await logs(nowMs)), ...(await readMetrics(aws, alarms, nowMs))]);
    for (const alarm of alarms) {
      const own = alarm.metrics.flatMap((metric) => points.get(keyOf(metric)) ?? []);
      await put(alarm, states.get(alarm.name), isRinging(alarm, own, nowMs));
    }
  };

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await look().catch(onError);
      await pause(LOOK_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };

  const looping = loop();
  return {
    /** Names of alarms that have rung. */
    rang,
    stop: async (): Promise<void> => {
      stopping.abort();
      await looping;
    },
  };
};
