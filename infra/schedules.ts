import type { JobDefinition } from "../lib/core/jobs/job.ts";
import { type JobList, scheduleOfJob } from "../lib/core/jobs/job-list.ts";
import { isMonitor } from "../lib/core/monitors/monitor.ts";
import { schedulerInput } from "../lib/core/runs/scheduler-event.ts";
import type { AwsExpression } from "../lib/core/schedule/aws-form.ts";
import { readInstant } from "../lib/core/time.ts";
import {
  allow,
  arnHere,
  getArn,
  placeholder,
  policyDocument,
  type Resource,
  type Resources,
  ref,
  sub,
  type Value,
} from "./cloudformation.ts";
import {
  type Deployment,
  functionKey,
  functionLogicalId,
  logicalId,
  scheduleGroupName,
  shortHash,
} from "./naming.ts";
import { DISPATCH_FAILURES } from "./queues.ts";

const GROUP = "BelfryScheduleGroup";
const ROLE = "BelfryScheduleRole";
const WATCHDOG_GROUP = "BelfryWatchdogScheduleGroup";
const TICK = "BelfryScheduleTick";

/** More distinct schedules than that share a minute tick: a template holds 500 resources. */
export const MOST_SCHEDULES = 300;

/**
 * A delivery that comes late does no harm: it names its slot, and the watchdog has long dispatched it. After an hour
 * it is of no use either.
 */
const RETRY_POLICY = { MaximumEventAgeInSeconds: 3_600, MaximumRetryAttempts: 30 } as const;

export interface ScheduleFacts {
  readonly deployment: Deployment;
  readonly jobs: JobList;
  /** When the template is made: a one-time schedule of the past is left out, for AWS may refuse it. */
  readonly nowMs: number;
  /** Default `MOST_SCHEDULES`. */
  readonly most?: number;
}

/** Every schedule of every job, with what it invokes and by which right. */
export const scheduleResources = (facts: ScheduleFacts): Resources => ({
  [GROUP]: group(facts.deployment, "jobs"),
  [ROLE]: invokeRole(facts.deployment, "jobs", functionLogicalId(functionKey("dispatcher")), [
    allow(["sqs:SendMessage"], [getArn(DISPATCH_FAILURES)]),
  ]),
  ...jobSchedules(facts),
  [WATCHDOG_GROUP]: group(facts.deployment, "watchdog"),
  ...everyMinute(facts.deployment, "watchdog"),
  ...everyMinute(facts.deployment, "notifier"),
});

const group = (deployment: Deployment, name: "jobs" | "watchdog"): Resource => ({
  Type: "AWS::Scheduler::ScheduleGroup",
  Properties: { Name: scheduleGroupName(deployment, name) },
});

/** Trusts only schedules of one group of this account, and may only invoke one function. */
const invokeRole = (
  deployment: Deployment,
  name: "jobs" | "watchdog",
  functionId: string,
  more: Parameters<typeof policyDocument>[0] = [],
): Resource => ({
  Type: "AWS::IAM::Role",
  Properties: {
    AssumeRolePolicyDocument: {
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Principal: { Service: "scheduler.amazonaws.com" },
          Action: "sts:AssumeRole",
          Condition: {
            StringEquals: {
              "aws:SourceAccount": ref("AWS::AccountId"),
              "aws:SourceArn": arnHere("scheduler", `schedule-group/${scheduleGroupName(deployment, name)}`),
            },
          },
        },
      ],
    },
    Policies: [
      {
        PolicyName: "invoke",
        PolicyDocument: policyDocument([
          allow(
            ["lambda:InvokeFunction"],
            [getArn(functionId), sub(`${placeholder(`${functionId}.Arn`)}:*`)],
          ),
          ...more,
        ]),
      },
    ],
  },
});

const jobSchedules = ({ deployment, jobs, nowMs, most = MOST_SCHEDULES }: ScheduleFacts): Resources => {
  const resources: { [logicalId: string]: Resource } = {};
  const sharing: JobDefinition[] = [];
  for (const job of jobs.all.filter((one) => !isMonitor(one))) {
    const own = schedulesOf(job, deployment, { enabled: jobs.firesHere(job), nowMs });
    const fits = Object.keys(resources).length + Object.keys(own).length <= most;
    if (fits) Object.assign(resources, own);
    else if (jobs.firesHere(job)) sharing.push(job);
  }
  return sharing.length === 0 ? resources : { ...resources, [TICK]: tick(deployment, sharing) };
};

const schedulesOf = (
  job: JobDefinition,
  deployment: Deployment,
  { enabled, nowMs }: { readonly enabled: boolean; readonly nowMs: number },
): Resources => {
  const expressions = scheduleOfJob(job)?.aws.expressions ?? [];
  const entries = expressions.map((each): [string, Resource] => {
    // Not by position: an expression taken out of the list must leave the others alone.
    const part = expressions.length === 1 ? undefined : shortHash(`${each.expression} ${each.timezone}`);
    const properties = {
      Name: part === undefined ? job.subject : `${job.subject}.${part}`,
      Description: `Belfry job ${job.name} in ${deployment.stage}`,
      ScheduleExpression: each.expression,
      ScheduleExpressionTimezone: each.timezone,
      State: enabled ? "ENABLED" : "DISABLED",
    };
    const id = logicalId("job", job.subject, "schedule", ...(part === undefined ? [] : [`x${part}`]));
    return [id, schedule(properties, schedulerInput([job.subject]))];
  });
  return Object.fromEntries(entries.filter((_, i) => !isPast(expressions[i], nowMs)));
};

/** One-time schedules are in UTC. */
const isPast = (each: AwsExpression | undefined, nowMs: number): boolean => {
  const at = /^at\((.+)\)$/.exec(each?.expression ?? "")?.[1];
  return at !== undefined && (readInstant(`${at}Z`) ?? nowMs) < nowMs;
};

const tick = (deployment: Deployment, sharing: readonly JobDefinition[]): Resource =>
  schedule(
    {
      // No subject has a capital, so none has this name.
      Name: "TICK",
      Description: `Belfry: every minute for ${sharing.length} jobs in ${deployment.stage}`,
      ScheduleExpression: "cron(* * * * ? *)",
      ScheduleExpressionTimezone: "UTC",
      State: "ENABLED",
    },
    schedulerInput(
      sharing.map(({ subject }) => subject),
      { isTick: true },
    ),
  );

const schedule = (properties: { readonly [name: string]: Value }, input: object): Resource => ({
  Type: "AWS::Scheduler::Schedule",
  Properties: {
    ...properties,
    GroupName: ref(GROUP),
    FlexibleTimeWindow: { Mode: "OFF" },
    Target: {
      Arn: getArn(functionLogicalId(functionKey("dispatcher"))),
      RoleArn: getArn(ROLE),
      Input: JSON.stringify(input),
      RetryPolicy: RETRY_POLICY,
      DeadLetterConfig: { Arn: getArn(DISPATCH_FAILURES) },
    },
  },
});

/**
 * Apart from the jobs' schedules, and each with a role of its own, so that no one mistake stops them all. A pass that
 * did not start is not tried again: the next one is due.
 */
const everyMinute = (deployment: Deployment, kind: "watchdog" | "notifier"): Resources => {
  const invoked = functionLogicalId(functionKey(kind));
  const roleId = logicalId(kind, "scheduleRole");
  return {
    [roleId]: invokeRole(deployment, "watchdog", invoked),
    [logicalId(kind, "schedule")]: {
      Type: "AWS::Scheduler::Schedule",
      Properties: {
        Name: kind,
        Description: `Belfry's ${kind} in ${deployment.stage}`,
        GroupName: ref(WATCHDOG_GROUP),
        ScheduleExpression: "rate(1 minute)",
        State: "ENABLED",
        FlexibleTimeWindow: { Mode: "OFF" },
        Target: {
          Arn: getArn(invoked),
          RoleArn: getArn(roleId),
          Input: "{}",
          RetryPolicy: { MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 0 },
        },
      },
    },
  };
};
