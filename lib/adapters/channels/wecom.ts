import { MINUTE_MS } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import type { ChannelDeps } from "./channel-deps.ts";
import { type Chat, type ChatOptions, chatChannel } from "./chat-channel.ts";

const WECOM: Chat = {
  /** Tags colour and mention, so no text may hold the beginning of one. */
  style: {
    title: (text) => `**${text}**`,
    fact: (label, value) => `> ${label}: ${value}`,
    escape: (text) => text.replaceAll("<", "＜"),
    // 4096 is what a robot takes.
    maxBytes: 4_000,
  },
  codes: {
    code: "errcode",
    message: "errmsg",
    busy: { 45009: MINUTE_MS },
    refused: [40008, 40058, 44004, 45002],
  },
  request: ({ text }) => ({ body: { msgtype: "markdown", markdown: { content: text } } }),
};

/** A robot of a group. See https://developer.work.weixin.qq.com/document/path/91770 */
export const weComChannel = (deps: ChannelDeps, options: ChatOptions): Channel =>
  chatChannel(deps, options, WECOM);
