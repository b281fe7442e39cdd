/**
 * What the emulated AWS lacks, done here: EventBridge Scheduler with time zones, context attributes, roles, its retry
 * policy and its dead-letter queue. It reads what was deployed back through the AWS APIs, and knows nothing of how it
 * came about. docs/conformance.md lists the gaps.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import {
  GetScheduleCommand,
  type GetScheduleCommandOutput,
  paginateListSchedules,
} from "@aws-sdk/client-scheduler";
import { GetQueueUrlCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { awsFires } from "../support/aws-evaluator.ts";
import { ACCOUNT, type Aws, REGION } from "./aws.ts";
import { type DeployedResource, deployedTemplates } from "./deployed.ts";
import { mayDo, trusts } from "./permissions.ts";

const LOOK_EVERY_MS = 500;
/** How often, at most, what is deployed is read anew. */
const READ_EVERY_MS = 2_000;
/** A minute of a retry policy passes here in so much time. */
const MINUTE_OF_RETRIES_MS = 100;
const MOST_TRIES = 5;

/** What became of one delivery. */
export interface Delivery {
  /** `<group>/<name>`. */
  readonly schedule: string;
  readonly slot: string;
  readonly end: "delivered" | "dead letter" | "dropped";
  readonly tries: number;
  readonly error?: string;
}

/** A schedule as its template has it: the emulator forgets the zone when it makes a schedule of one. */
interface Deployed {
  readonly name: string;
  readonly group: string;
  readonly expression: string;
  readonly timezone: string;
}

/** The schedules of all stacks. What they invoke is read when they strike. */
const readSchedules = async (
  { scheduler }: Aws,
  resources: readonly DeployedResource[],
): Promise<readonly Deployed[]> => {
  const deployed = new Map(
    resources
      .filter(({ type }) => type === "AWS::Scheduler::Schedule")
      .map(({ stack, properties }) => [`${stack} ${properties["Name"]}`, properties]),
  );
  const found: Deployed[] = [];
  for await (const { Schedules = [] } of paginateListSchedules({ client: scheduler }, {}))
    for (const { Name: name = "", GroupName: group = "" } of Schedules) {
      const properties = deployed.get(`${group.replace(/-belfry-[a-z]+$/, "")} ${name}`);
      if (properties === undefined) continue;
      const timezone = String(properties["ScheduleExpressionTimezone"] ?? "UTC");
      found.push({ name, group, expression: String(properties["ScheduleExpression"]), timezone });
    }
  // The emulator's own scheduler strikes by UTC, at the right hour then.
  return found.filter(({ timezone }) => timezone !== "UTC");
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
  const facts = { schedule: `${schedule.GroupName}/${schedule.Name}`, slot: isoOf(slotMs) };
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

const firesBetween = ({ expression, timezone }: Deployed, fromMs: number, untilMs: number): number[] =>
  awsFires({ expression, timezone }, [fromMs, untilMs], "first");

/** Strikes until it is stopped; `deliveries` grows as they end. */
export const startCompanion = (aws: Aws, onError: (error: unknown) => void) => {
  const stopping = new AbortController();
  const deliveries: Delivery[] = [];
  const underWay = new Set<Promise<void>>();
  const templates = deployedTemplates(aws);
  let schedules: readonly Deployed[] = [];
  let readAtMs = 0;
  let lookedMs = Date.now();

  const read = async (): Promise<void> => {
    if (Date.now() - readAtMs < READ_EVERY_MS) return;
    const { resources, isNew } = await templates.resources();
    if (isNew) schedules = await readSchedules(aws, resources);
    readAtMs = Date.now();
  };

  const strike = async ({ name, group }: Deployed, slotMs: number): Promise<void> => {
    const asked = { Name: name, GroupName: group };
    const schedule = await aws.scheduler.send(new GetScheduleCommand(asked));
    if (schedule.State !== "ENABLED" || !schedule.Target?.Input?.includes("<aws.scheduler.")) return;
    deliveries.push(await deliver(aws, schedule, slotMs));
  };

  const look = async (): Promise<void> => {
    await read();
    const nowMs = Date.now();
    for (const schedule of schedules)
      for (const slotMs of firesBetween(schedule, lookedMs, nowMs)) {
        const one = strike(schedule, slotMs).catch(onError);
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
