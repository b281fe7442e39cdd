import { createHmac } from "node:crypto";
import { PLAIN } from "../../core/alerts/alert-text.ts";
import { MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import type { ChannelDeps } from "./channel-deps.ts";
import { type Chat, type ChatOptions, chatChannel } from "./chat-channel.ts";

/** The key signs nothing: the time and the key together are the key. */
const signature = (key: string, nowMs: number): { readonly timestamp: string; readonly sign: string } => {
  const timestamp = String(Math.floor(nowMs / SECOND_MS));
  return { timestamp, sign: createHmac("sha256", `${timestamp}\n${key}`).digest("base64") };
};

const FEISHU: Chat = {
  /** A request of 20 KB is the most that a bot takes. */
  style: { ...PLAIN, maxBytes: 14_000 },
  codes: {
    code: "code",
    message: "msg",
    busy: { 11232: MINUTE_MS },
    refused: [9499, 19001, 19002],
  },
  request: ({ title, text, key, nowMs }) => {
    const content = text.split("\n").map((line) => [{ tag: "text", text: line }]);
    // The language is a label of the content; every reader sees the one there is.
    const post = { en_us: { title, content } };
    const signing = key === undefined ? {} : signature(key, nowMs);
    return { body: { ...signing, msg_type: "post", content: { post } } };
  },
};

/** A custom bot of a Feishu or Lark group. See https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot */
export const feishuChannel = (deps: ChannelDeps, options: ChatOptions): Channel =>
  chatChannel(deps, options, FEISHU);
