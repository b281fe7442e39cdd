import type { AlertTopic } from "../alerts/alert.ts";
import type { MetricName } from "./metrics.ts";

/** Who measures, said without names of a deployment: the template and the embedded stack each fill them in. */
export type Measured =
  /** Our own log lines. */
  | { readonly of: "service"; readonly name: MetricName }
  /** Of a job that has metrics of its own. */
  | { readonly of: "job"; readonly name: JobMetric; readonly job: string }
  | { readonly of: "queue"; readonly name: QueueMetric; readonly queue: WatchedQueue }
  | { readonly of: "function"; readonly name: FunctionMetric; readonly function: WatchedFunction }
  | { readonly of: "schedules"; readonly name: SchedulesMetric; readonly group: "jobs" | "watchdog" };

export const JOB_METRICS = ["RunsDead", "RunsMissed", "RunsLate"] as const satisfies readonly MetricName[];
export type JobMetric = (typeof JOB_METRICS)[number];

export type QueueMetric =
  | "ApproximateAgeOfOldestMessage"
  | "ApproximateNumberOfMessagesVisible"
  | "NumberOfMessagesReceived"
  | "NumberOfMessagesSent";
export type FunctionMetric = "Errors" | "Throttles";
export type SchedulesMetric =
  | "TargetErrorCount"
  | "InvocationDroppedCount"
  | "InvocationsFailedToBeSentToDeadLetterCount";

export type WatchedQueue =
  | { readonly kind: "pool" | "dead-letters"; readonly pool: string }
  | { readonly kind: "dispatch-failures" | "alarms" };
export type WatchedFunction =
  | { readonly kind: "worker"; readonly pool: string }
  | { readonly kind: "dispatcher" | "dead-letters" | "ping" };

/** When an alarm rings: everything that CloudWatch has to know, and nothing that only people read. */
export interface AlarmRule {
  readonly statistic: "Sum" | "Maximum" | "Minimum";
  readonly periodS: number;
  /** It rings when so many of the last `evaluationPeriods` are breaching. */
  readonly datapointsToAlarm: number;
  readonly evaluationPeriods: number;
  readonly comparison: "at-least" | "below";
  readonly threshold: number;
  readonly missing: "breaching" | "notBreaching";
}

export interface AlarmDefinition extends AlarmRule {
  readonly key: string;
  /** Alarms about jobs repeat what the watchdog's flips tell: they are the net for when it cannot. */
  readonly about: "jobs" | "machinery";
  readonly topic: AlertTopic;
  /** Goes to people without passing the notifier, since it is the notifier that fails. */
  readonly pastNotifier?: true;
  /** One metric, or several whose sum is watched. */
  readonly metrics: readonly Measured[];
  /** One sentence. */
  readonly meaning: string;
  /** What to do about it, one sentence. */
  readonly remedy: string;
}

/** An alarm that rings now. */
export interface RingingAlarm {
  readonly alarm: AlarmDefinition;
  readonly sinceMs: number;
}

/** Unique in an account and region, as CloudWatch asks. */
export const alarmName = (
  { service, stage }: { readonly service: string; readonly stage: string },
  key: string,
): string => `${service}-${stage}-${key}`;
