import { MINUTE_MS, SECOND_MS } from "../time.ts";
import type { AlarmDefinition, AlarmRule, Measured } from "./alarm.ts";

export type AlarmState = "ok" | "alarm";

/** What was measured at an instant. */
export interface Point {
  readonly atMs: number;
  readonly value: number;
}

export const jobMetricId = (name: string, job: string): string => `${name} of job ${job}`;

/** One text for one metric, whoever names it. */
export const metricId = (measured: Measured): string => {
  switch (measured.of) {
    case "service":
      return measured.name;
    case "job":
      return jobMetricId(measured.name, measured.job);
    case "queue":
      return [measured.name, ...Object.values(measured.queue)].join(" ");
    case "function":
      return [measured.name, ...Object.values(measured.function)].join(" ");
    case "schedules":
      return `${measured.name} ${measured.group}`;
  }
};

/**
 * CloudWatch asks for more periods than it judges, so that a few without data need not be guessed. How many more it
 * does not promise; its documentation shows two.
 */
const MORE_PERIODS = 2;

/** So far back an alarm looks. */
export const lookBackMs = ({ evaluationPeriods, periodS }: AlarmRule): number =>
  (evaluationPeriods + MORE_PERIODS) * periodS * SECOND_MS;

const STATISTICS = {
  Sum: (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0),
  Maximum: (values: readonly number[]) => Math.max(...values),
  Minimum: (values: readonly number[]) => Math.min(...values),
} as const;

/** One value a period, oldest first, the last one ending at `untilMs`; undefined = nothing was measured in it. */
const periodsOf = (
  rule: AlarmRule,
  points: readonly Point[],
  untilMs: number,
): readonly (number | undefined)[] => {
  const periodMs = rule.periodS * SECOND_MS;
  const count = rule.evaluationPeriods + MORE_PERIODS;
  return Array.from({ length: count }, (_, i) => {
    const fromMs = untilMs - (count - i) * periodMs;
    const inside = points.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + periodMs);
    return inside.length === 0 ? undefined : STATISTICS[rule.statistic](inside.map(({ value }) => value));
  });
};

/** The sum, in which what has no data counts as nothing; of nothing but gaps it is a gap. */
const summed = (series: readonly (readonly (number | undefined)[])[]): readonly (number | undefined)[] =>
  (series[0] ?? []).map((_, i) => {
    const values = series.map((each) => each[i]).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : STATISTICS.Sum(values);
  });

/**
 * As CloudWatch judges: the newest values that there are, as many as the alarm evaluates; where there are fewer, all of
 * them, and the rest as missing data count.
 * See https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
 * @param values one a period, oldest first; undefined = no data
 */
export const judge = (rule: AlarmRule, values: readonly (number | undefined)[]): AlarmState => {
  const real = values.filter((value) => value !== undefined).slice(-rule.evaluationPeriods);
  const breaches = (value: number): boolean =>
    rule.comparison === "below" ? value < rule.threshold : value >= rule.threshold;
  const filled = rule.missing === "breaching" ? rule.evaluationPeriods - real.length : 0;
  return real.filter(breaches).length + filled >= rule.datapointsToAlarm ? "alarm" : "ok";
};

/**
 * The state of an alarm by what was measured, its periods counted back from the last whole minute.
 * @param minuteMs how long a minute is; the embedded stack lives faster
 */
export const stateOf = (
  alarm: AlarmDefinition,
  pointsOf: (measured: Measured) => readonly Point[],
  { nowMs, minuteMs = MINUTE_MS }: { readonly nowMs: number; readonly minuteMs?: number },
): AlarmState => {
  const untilMs = Math.floor(nowMs / minuteMs) * minuteMs;
  return judge(alarm, summed(alarm.metrics.map((each) => periodsOf(alarm, pointsOf(each), untilMs))));
};
