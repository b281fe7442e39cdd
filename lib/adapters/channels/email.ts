import { PublishCommand, type SNSClient } from "@aws-sdk/client-sns";
import { alertText, messageTitle, PLAIN, written } from "../../core/alerts/alert-text.ts";
import type { Channel } from "../../ports/channel.ts";
import { CHAT_ALERTS_PER_MESSAGE, type ChannelDeps } from "./channel-deps.ts";

/** SNS takes a subject of at most 100 characters of ASCII, without line ends. */
const subjectOf = (title: string): string => title.replace(/[^\x20-\x7e]/g, "?").slice(0, 100);

/** A topic whose subscribers are e-mail addresses. */
export const emailChannel = (
  { context }: Pick<ChannelDeps, "context">,
  { name, sns, topicArn }: { readonly name: string; readonly sns: SNSClient; readonly topicArn: string },
): Channel => ({
  name,
  alertsPerMessage: CHAT_ALERTS_PER_MESSAGE,
  send: async (alerts) => {
    const texts = alerts.map((alert) => alertText(alert, context));
    await sns.send(
      new PublishCommand({
        TopicArn: topicArn,
        Subject: subjectOf(messageTitle(texts, context)),
        Message: written(texts, PLAIN),
      }),
    );
    return { kind: "taken" };
  },
});
