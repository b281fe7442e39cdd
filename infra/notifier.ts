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
import { functionKey, functionLogicalId } from "./naming.ts";
import { secretStatements } from "./roles.ts";
import { emailChannels, emailTopic, KEY, topicId } from "./topics.ts";

const ALARMS = topicId("alarms");

/** Alarms reach the notifier by SNS, which may invoke it for this topic only. */
export const notifierResources = (): Resources => {
  const notifier = functionLogicalId(functionKey("notifier"));
  return {
    [`${ALARMS}ToNotifier`]: {
      Type: "AWS::SNS::Subscription",
      Properties: { TopicArn: ref(ALARMS), Protocol: "lambda", Endpoint: getArn(notifier) },
    },
    [`${ALARMS}Permission`]: {
      Type: "AWS::Lambda::Permission",
      Properties: {
        Action: "lambda:InvokeFunction",
        FunctionName: getArn(notifier),
        Principal: "sns.amazonaws.com",
        SourceArn: ref(ALARMS),
      },
    },
  };
};

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
