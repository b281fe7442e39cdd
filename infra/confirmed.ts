import {
  ListSubscriptionsByTopicCommand,
  paginateListTopics,
  SNSClient,
  type Subscription,
} from "@aws-sdk/client-sns";
import type { AlertsConfig } from "../lib/core/alerts/alert-channels.ts";
import { messageOf } from "../lib/core/errors.ts";
import { type Deployment, type Topic, topicName } from "./naming.ts";
import { emailChannels, emailTopic } from "./topics.ts";

const topicArns = async (sns: SNSClient): Promise<readonly string[]> => {
  const arns: string[] = [];
  for await (const { Topics = [] } of paginateListTopics({ client: sns }, {}))
    arns.push(...Topics.flatMap(({ TopicArn }) => TopicArn ?? []));
  return arns;
};

const pendingIn = async (sns: SNSClient, TopicArn: string): Promise<readonly Subscription[]> => {
  const { Subscriptions = [] } = await sns.send(new ListSubscriptionsByTopicCommand({ TopicArn }));
  return Subscriptions.filter(({ SubscriptionArn }) => SubscriptionArn === "PendingConfirmation");
};

/**
 * Whose consent is still missing, one line an address: SNS mails nothing else to it until then. Asked after a deploy,
 * since only that makes the subscriptions.
 */
const unconfirmed = async (
  sns: SNSClient,
  deployment: Deployment,
  alerts: AlertsConfig,
): Promise<readonly string[]> => {
  const channels = emailChannels(alerts);
  if (channels.length === 0) return [];
  const arns = await topicArns(sns);
  const linesOf = async (topic: Topic, what: string): Promise<readonly string[]> => {
    const arn = arns.find((each) => each.endsWith(`:${topicName(deployment, topic)}`));
    const pending = arn === undefined ? [] : await pendingIn(sns, arn);
    return pending.map(
      ({ Endpoint }) =>
        `${what} do not reach ${Endpoint} before it has confirmed: the link is in a mail of AWS Notifications`,
    );
  };
  const lines = await Promise.all([
    ...channels.map(({ name }) => linesOf(emailTopic(name), `alerts of the channel "${name}"`)),
    // SNS asks for each topic: who has confirmed one may not have confirmed the other.
    linesOf("page", "alarms about the notifier itself"),
  ]);
  return lines.flat();
};

/** A deploy has succeeded by then: what cannot be asked is said, and no failure of it. */
export const warnOfUnconfirmed = async (options: {
  /** Default: that of AWS_REGION, or of the profile. */
  readonly region?: string;
  readonly deployment: Deployment;
  readonly alerts: AlertsConfig;
  readonly warn: (line: string) => void;
}): Promise<void> => {
  const { region, deployment, alerts, warn } = options;
  try {
    const sns = new SNSClient(region === undefined ? {} : { region });
    for (const line of await unconfirmed(sns, deployment, alerts)) warn(line);
  } catch (error) {
    warn(`whether e-mail addresses have confirmed could not be asked: ${messageOf(error)}`);
  }
};
