/**
 * What CloudWatch does with embedded metrics, done here for the emulated AWS, which reads none: it takes them from the
 * deployed functions' logs, judges the deployed alarms on one metric each whose missing data is not breaching, and sets
 * their state. The emulator does what an alarm's change brings about.
 */
import { setTimeout as pause } from "node:timers/promises";
import { DescribeAlarmsCommand, type MetricAlarm, SetAlarmStateCommand } from "@aws-sdk/client-cloudwatch";
import { DescribeLogGroupsCommand, FilterLogEventsCommand } from "@aws-sdk/client-cloudwatch-logs";
import type { Aws } from "./aws.ts";

const LOOK_EVERY_MS = 3_000;

interface Point {
  readonly atMs: number;
  readonly value: number;
}

interface Directive {
  readonly Namespace: string;
  readonly Dimensions: readonly (readonly string[])[];
  readonly Metrics: readonly { readonly Name: string }[];
}

type Line = { readonly [member: string]: unknown } & {
  readonly _aws?: { readonly Timestamp: number; readonly CloudWatchMetrics: readonly Directive[] };
};

const keyOf = (namespace: string, name: string, dimensions: readonly (readonly [string, string])[]): string =>
  [namespace, name, ...dimensions.map((pair) => pair.join("=")).sort()].join(" ");

const parse = (text: string): Line | undefined => {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
};

/** By namespace, name and dimensions: what each line of a log says of its metrics. */
const pointsIn = (line: Line): readonly (readonly [key: string, point: Point])[] =>
  (line._aws?.CloudWatchMetrics ?? []).flatMap(({ Namespace, Dimensions, Metrics }) =>
    Dimensions.flatMap((names) => {
      const dimensions = names.map((name) => [name, String(line[name])] as const);
      return Metrics.map(
        ({ Name }) =>
          [
            keyOf(Namespace, Name, dimensions),
            { atMs: line._aws?.Timestamp ?? 0, value: Number(line[Name]) },
          ] as const,
      );
    }),
  );

const readPoints = async ({ logs }: Aws): Promise<ReadonlyMap<string, readonly Point[]>> => {
  const points = new Map<string, Point[]>();
  const { logGroups = [] } = await logs.send(
    new DescribeLogGroupsCommand({ logGroupNamePrefix: "/aws/lambda/" }),
  );
  for (const { logGroupName } of logGroups) {
    const { events = [] } = await logs.send(
      new FilterLogEventsCommand({ logGroupName, filterPattern: '"_aws"' }),
    );
    for (const { message = "" } of events)
      for (const [key, point] of pointsIn(parse(message) ?? {}))
        points.set(key, [...(points.get(key) ?? []), point]);
  }
  return points;
};

/** `m of n`: does it breach in that many of the periods that end with this one? */
const breaches = (alarm: MetricAlarm, points: readonly Point[], lastMs: number): boolean => {
  const { Period = 60, EvaluationPeriods = 1, DatapointsToAlarm = EvaluationPeriods, Threshold = 0 } = alarm;
  const periodMs = Period * 1_000;
  const sums = Array.from({ length: EvaluationPeriods }, (_, i) => {
    const fromMs = lastMs - i * periodMs;
    const within = points.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + periodMs);
    return within.reduce((sum, { value }) => sum + value, 0);
  });
  return sums.filter((sum) => sum >= Threshold).length >= DatapointsToAlarm;
};

/** Judged to the end of the period that goes on, and of the one before, whose last second is only read in this one. */
const isRinging = (alarm: MetricAlarm, points: readonly Point[], nowMs: number): boolean => {
  const periodMs = (alarm.Period ?? 60) * 1_000;
  const latestMs = Math.floor(nowMs / periodMs) * periodMs;
  return breaches(alarm, points, latestMs) || breaches(alarm, points, latestMs - periodMs);
};

const isJudgedHere = ({ Namespace, TreatMissingData, ComparisonOperator }: MetricAlarm): boolean =>
  !Namespace?.startsWith("AWS/") &&
  Namespace !== "MetricMath" &&
  TreatMissingData === "notBreaching" &&
  ComparisonOperator === "GreaterThanOrEqualToThreshold";

/** Judges until it is stopped. */
export const startAlarmWatch = (aws: Aws, onError: (error: unknown) => void) => {
  const stopping = new AbortController();
  const rang = new Set<string>();

  const look = async (): Promise<void> => {
    const points = await readPoints(aws);
    const { MetricAlarms = [] } = await aws.cloudWatch.send(new DescribeAlarmsCommand({ MaxRecords: 100 }));
    for (const alarm of MetricAlarms.filter(isJudgedHere)) {
      const { AlarmName = "", Namespace = "", MetricName = "", Dimensions = [], StateValue } = alarm;
      const key = keyOf(
        Namespace,
        MetricName,
        Dimensions.map(({ Name = "", Value = "" }) => [Name, Value]),
      );
      const state = isRinging(alarm, points.get(key) ?? [], Date.now()) ? "ALARM" : "OK";
      if (state === StateValue || (state === "OK" && StateValue === "INSUFFICIENT_DATA")) continue;
      if (state === "ALARM") rang.add(AlarmName);
      const StateReason = `${MetricName} in the functions' logs`;
      await aws.cloudWatch.send(new SetAlarmStateCommand({ AlarmName, StateValue: state, StateReason }));
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
