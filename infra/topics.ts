import { alarmName } from "../lib/core/alarm.ts";
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
import { type Deployment, logicalId, type Topic, topicName } from "./naming.ts";

export const KEY = "BelfryAlertKey";
export const topicId = (topic: Topic): string => logicalId("topic", topic);

/** Alarms go to the notifier; what it tells, and what it cannot tell itself, goes to people. */
export const TOPICS = ["alarms", "notify", "page"] as const satisfies readonly Topic[];

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
        ...(name === "notify" ? [] : [publishing(deployment, name)]),
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

export const topicResources = (deployment: Deployment): Resources => ({
  [KEY]: key(deployment),
  ...Object.assign({}, ...TOPICS.map((name) => topic(deployment, name))),
});
