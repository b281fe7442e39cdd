import { CloudWatchClient, type MetricAlarm, paginateDescribeAlarms } from "@aws-sdk/client-cloudwatch";
import { DescribeKeyCommand, GetKeyPolicyCommand, KMSClient } from "@aws-sdk/client-kms";
import { LambdaClient, paginateListEventSourceMappings } from "@aws-sdk/client-lambda";
import { GetTopicAttributesCommand, paginateListSubscriptionsByTopic, SNSClient } from "@aws-sdk/client-sns";
import { alarmsQueueName, type Deployment, functionName, topicName } from "../../infra/naming.ts";
import { alarmName } from "../../lib/core/alarms/alarm.ts";
import type { AlarmFacts, AlarmWay, KeyFacts, TopicFacts } from "./alarm-way.ts";
import { CLIENT_OPTIONS, nameOf } from "./aws.ts";

const lastPart = (arn: string): string => arn.slice(arn.lastIndexOf(":") + 1);

const deployedAlarms = async (deployment: Deployment): Promise<readonly MetricAlarm[]> => {
  const client = new CloudWatchClient(CLIENT_OPTIONS);
  const AlarmNamePrefix = alarmName(deployment, "");
  const alarms: MetricAlarm[] = [];
  for await (const page of paginateDescribeAlarms(
    { client },
    { AlarmNamePrefix, AlarmTypes: ["MetricAlarm"] },
  ))
    alarms.push(...(page.MetricAlarms ?? []));
  return alarms;
};

const factsOf = ({ ActionsEnabled, AlarmActions = [] }: MetricAlarm): AlarmFacts => ({
  isOn: ActionsEnabled !== false,
  topics: AlarmActions.map(lastPart),
});

const readKey = async (KeyId: string): Promise<KeyFacts> => {
  const kms = new KMSClient(CLIENT_OPTIONS);
  const { KeyMetadata } = await kms.send(new DescribeKeyCommand({ KeyId }));
  const of = { KeyId: KeyMetadata?.KeyId ?? KeyId };
  const { Policy = "{}" } = await kms.send(new GetKeyPolicyCommand(of));
  return {
    state: KeyMetadata?.KeyState ?? "unknown",
    isOfAws: KeyMetadata?.KeyManager === "AWS",
    policy: Policy,
  };
};

const readTopic = async (TopicArn: string): Promise<TopicFacts | undefined> => {
  const client = new SNSClient(CLIENT_OPTIONS);
  const found = await client.send(new GetTopicAttributesCommand({ TopicArn })).catch((error: unknown) => {
    if (nameOf(error).startsWith("NotFound")) return undefined;
    throw error;
  });
  if (found === undefined) return undefined;
  const { Policy = "{}", KmsMasterKeyId = "" } = found.Attributes ?? {};
  const queues: string[] = [];
  for await (const { Subscriptions = [] } of paginateListSubscriptionsByTopic({ client }, { TopicArn }))
    queues.push(
      ...Subscriptions.flatMap(({ Protocol, Endpoint = "" }) =>
        Protocol === "sqs" ? [lastPart(Endpoint)] : [],
      ),
    );
  return { policy: Policy, queues, ...(KmsMasterKeyId === "" ? {} : { key: await readKey(KmsMasterKeyId) }) };
};

const readMappings = async (deployment: Deployment): Promise<readonly string[]> => {
  const client = new LambdaClient(CLIENT_OPTIONS);
  const FunctionName = functionName(deployment, "notifier");
  const queue = alarmsQueueName(deployment);
  const states: string[] = [];
  for await (const { EventSourceMappings = [] } of paginateListEventSourceMappings(
    { client },
    { FunctionName },
  ))
    states.push(
      ...EventSourceMappings.flatMap(({ EventSourceArn = "", State = "unknown" }) =>
        lastPart(EventSourceArn) === queue ? [State] : [],
      ),
    );
  return states;
};

/** The way from the stage's alarms to its notifier, as AWS has it. */
export const readAlarmWay = async (deployment: Deployment): Promise<AlarmWay> => {
  const alarms = await deployedAlarms(deployment);
  // Its topics stand in the same partition, region and account.
  const [, partition, , region, account] = (alarms[0]?.AlarmArn ?? "").split(":");
  const names = (["alarms", "page"] as const).map((topic) => topicName(deployment, topic));
  const topics = new Map<string, TopicFacts>();
  for (const name of account === undefined ? [] : names) {
    const facts = await readTopic(`arn:${partition}:sns:${region}:${account}:${name}`);
    if (facts !== undefined) topics.set(name, facts);
  }
  return {
    alarms: new Map(alarms.map((alarm) => [alarm.AlarmName ?? "", factsOf(alarm)])),
    topics,
    mappings: await readMappings(deployment),
  };
};
