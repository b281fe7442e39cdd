/**
 * What the emulated AWS lacks, done here: EventBridge Scheduler with time zones, context attributes, roles, its retry
 * policy and its dead-letter queue. It reads what was deployed back through the AWS APIs, and knows nothing of how it
 * came about. docs/conformance.md lists the gaps.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { DescribeStacksCommand, GetTemplateCommand } from "@aws-sdk/client-cloudformation";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import {
  GetScheduleCommand,
  type GetScheduleCommandOutput,
  ListSchedulesCommand,
} from "@aws-sdk/client-scheduler";
import { GetQueueUrlCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { awsFires } from "../support/aws-evaluator.ts";
import { ACCOUNT, type Aws, REGION } from "./aws.ts";
import { mayDo, trusts } from "./permissions.ts";

const LOOK_EVERY_MS = 500;
/** How often, at most, what is deployed is read anew. */
const READ_EVERY_MS = 2_000;
/** A minute of a retry policy passes here in so much time. */
const MINUTE_OF_RETRIES_MS = 100;
const MOST_TRIES = 5;

/** What became of one delivery. */
export interface Delivery {
  readonly schedule: string;
  readonly slot: string;
  readonly end: "delivered" | "dead letter" | "dropped";
  readonly tries: number;
  readonly error?: string;
}

/** A schedule as it was deployed. */
interface Deployed extends GetScheduleCommandOutput {
  readonly timezone: string;
}

interface Template {
  readonly Resources: {
    readonly [id: string]: {
      readonly Type: string;
      readonly Properties: { readonly Name?: string; readonly ScheduleExpressionTimezone?: string };
    };
  };
}

/** By stack and name, from the deployed templates: the emulator forgets the zone when it makes a schedule of one. */
const readZones = async ({ cloudFormation }: Aws): Promise<ReadonlyMap<string, string>> => {
  const zones = new Map<string, string>();
  const { Stacks = [] } = await cloudFormation.send(new DescribeStacksCommand({}));
  for (const { StackName = "" } of Stacks) {
    const answer = await cloudFormation.send(new GetTemplateCommand({ StackName })).catch(() => undefined);
    const { Resources = {} } = JSON.parse(answer?.TemplateBody ?? "{}") as Partial<Template>;
    for (const { Type, Properties } of Object.values(Resources))
      if (Type === "AWS::Scheduler::Schedule")
        zones.set(`${StackName} ${Properties.Name}`, Properties.ScheduleExpressionTimezone ?? "UTC");
  }
  return zones;
};

/** Fires what the emulator's own scheduler cannot: whatever has context attributes, at the hour of its zone. */
const isOurs = ({ Target, timezone }: Deployed): boolean =>
  (Target?.Input ?? "").includes("<aws.scheduler.") && timezone !== "UTC";

const readSchedules = async (aws: Aws): Promise<readonly Deployed[]> => {
  const { scheduler } = aws;
  const zones = await readZones(aws);
  const { Schedules = [] } = await scheduler.send(new ListSchedulesCommand({ MaxResults: 100 }));
  const found = await Promise.all(
    Schedules.map(async ({ Name, GroupName = "" }): Promise<Deployed | undefined> => {
      const stack = GroupName.replace(/-belfry-[a-z]+$/, "");
      const timezone = zones.get(`${stack} ${Name}`) ?? "UTC";
      const schedule = await scheduler
        .send(new GetScheduleCommand({ Name, GroupName }))
        .catch(() => undefined);
      return schedule && { ...schedule, timezone };
    }),
  );
  return found.filter((schedule) => schedule !== undefined).filter(isOurs);
};

const isoOf = (ms: number): string => new Date(ms).toISOString().replace(".000Z", "Z");

/** The input as Scheduler sends it: the context attributes are replaced in its text. */
const inputFor = ({ Arn = "", Target }: GetScheduleCommandOutput, slotMs: number, attempt: number): string =>
  (Target?.Input ?? "")
    .replaceAll("<aws.scheduler.scheduled-time>", isoOf(slotMs))
    .replaceAll("<aws.scheduler.schedule-arn>", Arn)
    .replaceAll("<aws.scheduler.execution-id>", randomUUID())
    .replaceAll("<aws.scheduler.attempt-number>", String(attempt));

/** One try, with the schedule's own role; undefined = taken, else why not. */
const invoke = async (
  aws: Aws,
  schedule: GetScheduleCommandOutput,
  payload: string,
): Promise<string | undefined> => {
  const { Arn: target = "", RoleArn: roleArn = "" } = schedule.Target ?? {};
  const group = `arn:aws:scheduler:${REGION}:${ACCOUNT}:schedule-group/${schedule.GroupName}`;
  const facts = { "aws:SourceAccount": ACCOUNT, "aws:SourceArn": group };
  if (!(await trusts(aws, roleArn, { service: "scheduler.amazonaws.com", facts })))
    return "the role does not let the scheduler in";
  if (!(await mayDo(aws, { roleArn, action: "lambda:InvokeFunction", resource: target })))
    return `the role may not invoke ${target}`;
  const Payload = new TextEncoder().encode(payload);
  return aws.lambda
    .send(new InvokeCommand({ FunctionName: target, InvocationType: "Event", Payload }))
    .then(() => undefined, String);
};

/** To the schedule's dead-letter queue, with the role's right to send there. */
const bury = async (aws: Aws, schedule: GetScheduleCommandOutput, payload: string): Promise<boolean> => {
  const { DeadLetterConfig, RoleArn: roleArn = "" } = schedule.Target ?? {};
  const arn = DeadLetterConfig?.Arn;
  if (arn === undefined || !(await mayDo(aws, { roleArn, action: "sqs:SendMessage", resource: arn })))
    return false;
  const QueueName = arn.slice(arn.lastIndexOf(":") + 1);
  const { QueueUrl } = await aws.sqs.send(new GetQueueUrlCommand({ QueueName }));
  await aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: payload }));
  return true;
};

const deliver = async (aws: Aws, schedule: GetScheduleCommandOutput, slotMs: number): Promise<Delivery> => {
  const { MaximumRetryAttempts = 185 } = schedule.Target?.RetryPolicy ?? {};
  const most = Math.min(MOST_TRIES, MaximumRetryAttempts + 1);
  const facts = { schedule: schedule.Name ?? "", slot: isoOf(slotMs) };
  let error: string | undefined;
  let payload = "";
  for (let tries = 1; tries <= most; tries++) {
    payload = inputFor(schedule, slotMs, tries);
    error = await invoke(aws, schedule, payload);
    if (error === undefined) return { ...facts, end: "delivered", tries };
    await pause(MINUTE_OF_RETRIES_MS);
  }
  const end = (await bury(aws, schedule, payload)) ? "dead letter" : "dropped";
  return { ...facts, end, tries: most, ...(error === undefined ? {} : { error }) };
};

const firesBetween = (schedule: Deployed, fromMs: number, untilMs: number): number[] => {
  const { ScheduleExpression: expression = "", timezone, State } = schedule;
  return State === "ENABLED" ? awsFires({ expression, timezone }, [fromMs, untilMs], "first") : [];
};

/** Strikes until it is stopped; `deliveries` grows as they end. */
export const startCompanion = (aws: Aws, onError: (error: unknown) => void) => {
  const stopping = new AbortController();
  const deliveries: Delivery[] = [];
  const underWay = new Set<Promise<void>>();
  let schedules: readonly Deployed[] = [];
  let readAtMs = 0;
  let lookedMs = Date.now();

  const look = async (): Promise<void> => {
    if (Date.now() - readAtMs >= READ_EVERY_MS) {
      schedules = await readSchedules(aws);
      readAtMs = Date.now();
    }
    const nowMs = Date.now();
    for (const schedule of schedules)
      for (const slotMs of firesBetween(schedule, lookedMs, nowMs)) {
        const one = deliver(aws, schedule, slotMs).then((end) => void deliveries.push(end), onError);
        underWay.add(one);
        void one.then(() => underWay.delete(one));
      }
    lookedMs = nowMs;
  };

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await look().catch(onError);
      await pause(LOOK_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    await Promise.all(underWay);
  };

  const looping = loop();
  return {
    deliveries,
    stop: async (): Promise<void> => {
      stopping.abort();
      await looping;
    },
  };
};
