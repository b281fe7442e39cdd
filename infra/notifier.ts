import type { AlertsConfig } from "../lib/core/alerts/alert-channels.ts";
import {
  allow,
  getArn,
  placeholder,
  type Resources,
  ref,
  type Statement,
  sub,
  type Value,
} from "./cloudformation.ts";
import { alarmsQueueName, type Deployment, functionKey, functionLogicalId } from "./naming.ts";
import { queue, tlsOnly } from "./queues.ts";
import { secretStatements } from "./roles.ts";
import { emailChannels, emailTopic, KEY, topicId } from "./topics.ts";

const ALARMS = topicId("alarms");

/** Keeps alarms until the notifier has stored them, for as long as that takes: its tries by SNS end after minutes. */
export const ALARMS_QUEUE = "BelfryAlarmsQueue";

/**
 * How long the notifier has for an invocation, and when an alarm comes back that it could not store: one that is
 * delivered twice does no harm, so there is no need to wait longer.
 */
export const NOTIFIER_TIMEOUT_SECONDS = 60;

/** Alarms reach the notifier by a queue, which takes them from their topic only. */
export const notifierResources = (deployment: Deployment): Resources => ({
  [ALARMS_QUEUE]: queue(alarmsQueueName(deployment), NOTIFIER_TIMEOUT_SECONDS),
  ...tlsOnly(ALARMS_QUEUE, [
    {
      ...allow(["sqs:SendMessage"], [getArn(ALARMS_QUEUE)]),
      Principal: { Service: "sns.amazonaws.com" },
      Condition: { ArnEquals: { "aws:SourceArn": ref(ALARMS) } },
    },
  ]),
  [`${ALARMS}ToNotifier`]: {
    Type: "AWS::SNS::Subscription",
    Properties: { TopicArn: ref(ALARMS), Protocol: "sqs", Endpoint: getArn(ALARMS_QUEUE) },
  },
  [`${ALARMS_QUEUE}Mapping`]: {
    Type: "AWS::Lambda::EventSourceMapping",
    Properties: {
      EventSourceArn: getArn(ALARMS_QUEUE),
      FunctionName: ref(functionLogicalId(functionKey("notifier"))),
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      BatchSize: 10,
    },
  },
});

/** What its channels need beside the table: their secrets, and for e-mail a topic each, which are encrypted. */
export const notifierStatements = (alerts: AlertsConfig, stage: string): readonly Statement[] => {
  const topics = emailChannels(alerts).map(({ name }) => ref(topicId(emailTopic(name))));
  return [
    ...secretStatements(Object.values(alerts.secrets), stage),
    ...(topics.length === 0
      ? []
      : [allow(["sns:Publish"], topics), allow(["kms:Decrypt", "kms:GenerateDataKey"], [getArn(KEY)])]),
  ];
};

export const notifierVariables = (alerts: AlertsConfig): { readonly [name: string]: Value } => {
  const entries = emailChannels(alerts).map(
    ({ name }) => `"${name}":"${placeholder(topicId(emailTopic(name)))}"`,
  );
  return entries.length === 0 ? {} : { BELFRY_EMAIL_TOPICS: sub(`{${entries.join(",")}}`) };
};
