import { type AlarmDefinition, alarmName, type Measured } from "../lib/core/alarms/alarm.ts";
import { alarmsOf } from "../lib/core/alarms/alarms.ts";
import { NAMESPACE } from "../lib/core/alarms/metrics.ts";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { type Resource, type Resources, ref, type Value } from "./cloudformation.ts";
import {
  alarmsQueueName,
  type Deployment,
  deadLetterQueueName,
  dispatchFailuresName,
  functionName,
  logicalId,
  poolQueueName,
  scheduleGroupName,
} from "./naming.ts";
import { topicId } from "./topics.ts";

export const alarmId = (key: string): string => logicalId("alarm", key);

/** A metric of this deployment, as CloudWatch names it. */
export interface NamedMetric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
}

export const namedMetric = (deployment: Deployment, measured: Measured): NamedMetric => {
  const named = (Namespace: string, dimensions: { readonly [name: string]: string }): NamedMetric => ({
    Namespace,
    MetricName: measured.name,
    Dimensions: Object.entries(dimensions).map(([Name, Value]) => ({ Name, Value })),
  });
  const { service, stage } = deployment;
  switch (measured.of) {
    case "service":
      return named(NAMESPACE, { service, stage });
    case "job":
      return named(NAMESPACE, { service, stage, job: measured.job });
    case "queue":
      return named("AWS/SQS", { QueueName: queueName(deployment, measured.queue) });
    case "function": {
      const { kind } = measured.function;
      const pool = kind === "worker" ? measured.function.pool : undefined;
      return named("AWS/Lambda", { FunctionName: functionName(deployment, kind, pool) });
    }
    case "schedules":
      return named("AWS/Scheduler", { ScheduleGroup: scheduleGroupName(deployment, measured.group) });
  }
};

type WatchedQueue = Extract<Measured, { of: "queue" }>["queue"];

const queueName = (deployment: Deployment, queue: WatchedQueue): string => {
  switch (queue.kind) {
    case "pool":
      return poolQueueName(deployment, queue.pool);
    case "dead-letters":
      return deadLetterQueueName(deployment, queue.pool);
    case "dispatch-failures":
      return dispatchFailuresName(deployment);
    case "alarms":
      return alarmsQueueName(deployment);
  }
};

/** The metric itself; of several, their sum, in which one without data counts as nothing. */
const watched = (
  deployment: Deployment,
  { metrics, periodS, statistic }: AlarmDefinition,
): Resource["Properties"] => {
  const named = metrics.map((each) => namedMetric(deployment, each));
  const [only, ...others] = named;
  if (only !== undefined && others.length === 0)
    return { ...only, Dimensions: [...only.Dimensions], Period: periodS, Statistic: statistic };
  const parts = named.map(
    (Metric, i): Value => ({
      Id: `m${i}`,
      ReturnData: false,
      MetricStat: {
        Metric: { ...Metric, Dimensions: [...Metric.Dimensions] },
        Period: periodS,
        Stat: statistic,
      },
    }),
  );
  const sum = `SUM([${parts.map((_, i) => `FILL(m${i}, 0)`).join(", ")}])`;
  return { Metrics: [{ Id: "sum", Expression: sum, ReturnData: true }, ...parts] };
};

const COMPARISONS = { "at-least": "GreaterThanOrEqualToThreshold", below: "LessThanThreshold" } as const;

/** Before a new stack has said anything, its silence is no news. */
const WARM_UP_MINUTES = 15;

const alarm = (deployment: Deployment, definition: AlarmDefinition): Resource => {
  const { key, meaning, remedy, comparison, missing, pastNotifier } = definition;
  const told = ref(topicId(pastNotifier ? "page" : "alarms"));
  return {
    Type: "AWS::CloudWatch::Alarm",
    Properties: {
      AlarmName: alarmName(deployment, key),
      AlarmDescription: `${meaning} ${remedy}`,
      AlarmActions: [told],
      OKActions: [told],
      ComparisonOperator: COMPARISONS[comparison],
      Threshold: definition.threshold,
      EvaluationPeriods: definition.evaluationPeriods,
      DatapointsToAlarm: definition.datapointsToAlarm,
      TreatMissingData: missing,
      ...(missing === "breaching"
        ? { WarmUpConfiguration: { WarmUpPeriodDurationInMinutes: WARM_UP_MINUTES } }
        : {}),
      ...watched(deployment, definition),
    },
  };
};

export const alarmResources = (deployment: Deployment, manifest: Manifest): Resources =>
  Object.fromEntries(
    alarmsOf(manifest).map((definition) => [alarmId(definition.key), alarm(deployment, definition)]),
  );
