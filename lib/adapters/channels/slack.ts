import { alertText, messageTitle, type Style, written } from "../../core/alerts/alert-text.ts";
import type { Channel } from "../../ports/channel.ts";
import { CHAT_ALERTS_PER_MESSAGE, type ChannelDeps } from "./channel-deps.ts";
import { byStatus, checkedUrl, postJson } from "./http.ts";

/** See https://docs.slack.dev/messaging/formatting-message-text : three characters are control characters. */
const MRKDWN: Style = {
  title: (text) => `*${text}*`,
  fact: (label, value) => `${label}: ${value}`,
  escape: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  maxBytes: 30_000,
};

/** An incoming webhook: JSON in, `ok` out. See https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
export const slackChannel = (
  { context, clock, secret }: ChannelDeps,
  { name, webhook }: { readonly name: string; readonly webhook: string },
): Channel => ({
  name,
  alertsPerMessage: CHAT_ALERTS_PER_MESSAGE,
  send: async (alerts) => {
    const url = checkedUrl(await secret(webhook), webhook);
    const texts = alerts.map((alert) => alertText(alert, context));
    const heading = texts.length > 1 ? `${messageTitle(texts, context)}\n\n` : "";
    const body = JSON.stringify({ text: heading + written(texts, MRKDWN) });
    return byStatus(await postJson({ url: url.href, body }, clock));
  },
});
