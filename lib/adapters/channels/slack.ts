import type { Channel } from "../../ports/channel.ts";
import type { ChannelDeps } from "./channel-deps.ts";
import { type Chat, type ChatOptions, chatChannel } from "./chat-channel.ts";

const SLACK: Chat = {
  /** See https://docs.slack.dev/messaging/formatting-message-text : three characters are control characters. */
  style: {
    title: (text) => `*${text}*`,
    fact: (label, value) => `${label}: ${value}`,
    escape: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
    maxBytes: 30_000,
  },
  request: ({ title, text, count }) => ({ body: { text: count > 1 ? `${title}\n\n${text}` : text } }),
};

/** An incoming webhook: JSON in, `ok` out. See https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
export const slackChannel = (deps: ChannelDeps, options: ChatOptions): Channel =>
  chatChannel(deps, options, SLACK);
