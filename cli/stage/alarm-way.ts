import { alarmsQueueName, type Deployment, type Topic, topicName } from "../../infra/naming.ts";
import { alarmName } from "../../lib/core/alarms/alarm.ts";
import { alarmsOf } from "../../lib/core/alarms/alarms.ts";
import { DEFAULT_POOL } from "../../lib/core/jobs/job.ts";
import type { JobList } from "../../lib/core/jobs/job-list.ts";
import { isRecord } from "../../lib/core/json.ts";

export interface AlarmFacts {
  readonly isOn: boolean;
  /** Names of those that it publishes to. */
  readonly topics: readonly string[];
}

export interface TopicFacts {
  /** JSON. */
  readonly policy: string;
  /** Absent where the topic is not encrypted. */
  readonly key?: KeyFacts;
  /** Names of the queues that subscribe to it. */
  readonly queues: readonly string[];
}

export interface KeyFacts {
  /** `Enabled`, if it can be used. */
  readonly state: string;
  readonly isOfAws: boolean;
  /** JSON. */
  readonly policy: string;
}

/** From the alarms to whoever tells of them, as AWS has it. */
export interface AlarmWay {
  /** By name. */
  readonly alarms: ReadonlyMap<string, AlarmFacts>;
  /** By name; those that exist. */
  readonly topics: ReadonlyMap<string, TopicFacts>;
  /** States of what feeds the queue of the alarms to the notifier. */
  readonly mappings: readonly string[];
}

/** Which topic each alarm of the stage's jobs has to publish to, by name. */
export const wantedAlarms = (deployment: Deployment, jobs: JobList): ReadonlyMap<string, string> => {
  const pools = Object.fromEntries(jobs.all.map(({ pool }) => [pool, DEFAULT_POOL]));
  return new Map(
    alarmsOf({ jobs: jobs.all, pools }).map(({ key, pastNotifier }) => [
      alarmName(deployment, key),
      topicName(deployment, pastNotifier ? "page" : "alarms"),
    ]),
  );
};

const CLOUDWATCH = "cloudwatch.amazonaws.com";

const texts = (value: unknown): readonly string[] =>
  [value].flat().filter((one): one is string => typeof one === "string");

const isForCloudWatch = (principal: unknown): boolean =>
  principal === "*" ||
  (isRecord(principal) &&
    (texts(principal["Service"]).includes(CLOUDWATCH) || texts(principal["AWS"]).includes("*")));

const covers = (pattern: string, action: string): boolean =>
  pattern.endsWith("*")
    ? action.toLowerCase().startsWith(pattern.slice(0, -1).toLowerCase())
    : pattern.toLowerCase() === action.toLowerCase();

/** Whether a policy lets CloudWatch do that, whatever its conditions. */
const letsCloudWatch = (policy: string, action: string): boolean => {
  const { Statement = [] } = JSON.parse(policy) as { readonly Statement?: unknown };
  return [Statement]
    .flat()
    .some(
      (each) =>
        isRecord(each) &&
        each["Effect"] === "Allow" &&
        isForCloudWatch(each["Principal"]) &&
        texts(each["Action"]).some((pattern) => covers(pattern, action)),
    );
};

const keyFaults = (topic: string, { state, isOfAws, policy }: KeyFacts): readonly string[] => {
  if (state !== "Enabled") return [`the key of the topic ${topic} is ${state}`];
  const mayUse = ["kms:Decrypt", "kms:GenerateDataKey"].every((action) => letsCloudWatch(policy, action));
  return isOfAws || !mayUse ? [`CloudWatch may not use the key of the topic ${topic}`] : [];
};

const topicFaults = (topic: string, facts: TopicFacts | undefined): readonly string[] => {
  if (facts === undefined) return [`the topic ${topic} is missing`];
  return [
    ...(letsCloudWatch(facts.policy, "sns:Publish")
      ? []
      : [`CloudWatch may not publish to the topic ${topic}`]),
    ...(facts.key === undefined ? [] : keyFaults(topic, facts.key)),
  ];
};

/** Why alarms of the stage would ring for nobody, or not at all. */
export const alarmFaults = (
  deployment: Deployment,
  wanted: ReadonlyMap<string, string>,
  { alarms, topics, mappings }: AlarmWay,
): readonly string[] => {
  const name = (topic: Topic): string => topicName(deployment, topic);
  const queue = alarmsQueueName(deployment);
  const ofAlarms = [...wanted].flatMap(([alarm, topic]): string[] => {
    const facts = alarms.get(alarm);
    if (facts === undefined) return [`the alarm ${alarm} is missing`];
    if (!facts.isOn) return [`the alarm ${alarm} is switched off: it rings for nobody`];
    return facts.topics.includes(topic) ? [] : [`the alarm ${alarm} does not go to the topic ${topic}`];
  });
  const feeds = topics.get(name("alarms"))?.queues ?? [queue];
  return [
    ...ofAlarms,
    ...(["alarms", "page"] as const).flatMap((topic) => topicFaults(name(topic), topics.get(name(topic)))),
    ...(feeds.includes(queue) ? [] : [`the topic ${name("alarms")} does not feed the queue ${queue}`]),
    ...(mappings.some((state) => !/^Disabl/.test(state))
      ? []
      : [`the notifier takes nothing from the queue ${queue}: its mapping is ${mappings[0] ?? "missing"}`]),
  ];
};
