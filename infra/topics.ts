import { alarmName } from "../lib/core/alarms/alarm.ts";
import type { AlertsConfig, ChannelDefinition } from "../lib/core/alerts/alert-channels.ts";
import {
  allow,
  arnHere,
  placeholder,
  policyDocument,
  type Resource,
  type Resources,
  ref,
  sub,
  type Value,
} from "./cloudformation.ts";
import { type Deployment, logicalId, shortHash, type Topic, topicName } from "./naming.ts";

export const KEY = "BelfryAlertKey";
export const topicId = (topic: Topic): string => logicalId("topic", topic);

/** The one that feeds the notifier, and the one that passes it by. */
const FROM_CLOUDWATCH = ["alarms", "page"] as const;

export const emailTopic = (channel: string): Topic => `email-${channel}`;

type EmailChannel = Extract<ChannelDefinition, { kind: "email" }>;

export const emailChannels = ({ channels }: AlertsConfig): readonly EmailChannel[] =>
  channels.filter((channel) => channel.kind === "email");

/** Which of this account's alarms may publish, and use the key for it. */
const byOurAlarms = (deployment: Deployment): Value => ({
  StringEquals: { "aws:SourceAccount": ref("AWS::AccountId") },
  ArnLike: { "aws:SourceArn": arnHere("cloudwatch", `alarm:${alarmName(deployment, "*")}`) },
});

const CLOUDWATCH = { Service: "cloudwatch.amazonaws.com" };

/**
 * A key of our own, since CloudWatch may not use the standard one (`alias/aws/sns`): its alarms would ring and reach
 * nobody, without an error anywhere.
 */
const key = (deployment: Deployment): Resource => ({
  Type: "AWS::KMS::Key",
  DeletionPolicy: "Delete",
  UpdateReplacePolicy: "Delete",
  Properties: {
    Description: `Belfry: alerts of ${deployment.service} in ${deployment.stage}`,
    EnableKeyRotation: true,
    PendingWindowInDays: 7,
    KeyPolicy: policyDocument([
      {
        // Without it nobody could change the key any more; who in the account may use it, IAM says.
        ...allow(["kms:*"], ["*"]),
        Principal: {
          AWS: sub(`arn:${placeholder("AWS::Partition")}:iam::${placeholder("AWS::AccountId")}:root`),
        },
      },
      {
        ...allow(["kms:Decrypt", "kms:GenerateDataKey*"], ["*"]),
        Principal: CLOUDWATCH,
        Condition: byOurAlarms(deployment),
      },
    ]),
  },
});

const topic = (deployment: Deployment, name: Topic): Resources => ({
  [topicId(name)]: {
    Type: "AWS::SNS::Topic",
    Properties: { TopicName: topicName(deployment, name), KmsMasterKeyId: ref(KEY) },
  },
  [`${topicId(name)}Policy`]: {
    Type: "AWS::SNS::TopicPolicy",
    Properties: {
      Topics: [ref(topicId(name))],
      PolicyDocument: policyDocument([
        ...(FROM_CLOUDWATCH.some((one) => one === name) ? [publishing(deployment, name)] : []),
        {
          Effect: "Deny",
          Principal: "*",
          Action: ["sns:Publish"],
          Resource: [ref(topicId(name))],
          Condition: { Bool: { "aws:SecureTransport": "false" } },
        },
      ]),
    },
  },
});

const publishing = (deployment: Deployment, name: Topic) => ({
  ...allow(["sns:Publish"], [ref(topicId(name))]),
  Principal: CLOUDWATCH as Value,
  Condition: byOurAlarms(deployment),
});

/** An address of several channels hears of the notifier's own failure once. */
const subscriptions = (channels: readonly EmailChannel[]): Resources => {
  const all = new Set(channels.flatMap(({ to }) => to));
  return Object.assign(
    {},
    ...[...all].map((address) => subscription("page", address)),
    ...channels.flatMap(({ name, to }) => to.map((address) => subscription(emailTopic(name), address))),
  );
};

/** Named by the address, so that one more changes no other; SNS asks each for its consent. */
const subscription = (name: Topic, address: string): Resources => ({
  [`${topicId(name)}To${shortHash(address)}`]: {
    Type: "AWS::SNS::Subscription",
    Properties: { TopicArn: ref(topicId(name)), Protocol: "email", Endpoint: address },
  },
});

export const topicResources = (deployment: Deployment, alerts: AlertsConfig): Resources => {
  const channels = emailChannels(alerts);
  const topics: readonly Topic[] = [...FROM_CLOUDWATCH, ...channels.map(({ name }) => emailTopic(name))];
  return {
    [KEY]: key(deployment),
    ...Object.assign({}, ...topics.map((name) => topic(deployment, name))),
    ...subscriptions(channels),
  };
};
