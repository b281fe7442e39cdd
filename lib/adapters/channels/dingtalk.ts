import { createHmac } from "node:crypto";
import { MINUTE_MS } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import type { ChannelDeps } from "./channel-deps.ts";
import { type Chat, type ChatOptions, chatChannel } from "./chat-channel.ts";

/** The robot's signature goes into the address. */
const signed = (url: URL, key: string, nowMs: number): URL => {
  const sign = createHmac("sha256", key).update(`${nowMs}\n${key}`).digest("base64");
  const address = new URL(url);
  address.searchParams.set("timestamp", String(nowMs));
  address.searchParams.set("sign", sign);
  return address;
};

const DINGTALK: Chat = {
  style: {
    title: (text) => `#### ${text}`,
    fact: (label, value) => `- ${label}: ${value}`,
    escape: (text) => text,
    maxBytes: 18_000,
  },
  /** Over 20 messages a minute, a robot is not heard for ten minutes. */
  codes: {
    code: "errcode",
    message: "errmsg",
    busy: { 130101: 10 * MINUTE_MS, 410100: 10 * MINUTE_MS },
    refused: [40035, 460101],
  },
  request: ({ url, title, text, key, nowMs }) => ({
    body: { msgtype: "markdown", markdown: { title, text } },
    ...(key === undefined ? {} : { url: signed(url, key, nowMs) }),
  }),
};

/** A custom robot of a group. See https://open.dingtalk.com/document/orgapp/custom-robots-send-group-messages */
export const dingTalkChannel = (deps: ChannelDeps, options: ChatOptions): Channel =>
  chatChannel(deps, options, DINGTALK);
