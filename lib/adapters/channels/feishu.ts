import { createHmac } from "node:crypto";
import { alertText, messageTitle, PLAIN, written } from "../../core/alerts/alert-text.ts";
import { MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import { CHAT_ALERTS_PER_MESSAGE, type ChannelDeps } from "./channel-deps.ts";
import { type BodyCodes, byBody, checkedUrl, postJson } from "./http.ts";

const CODES: BodyCodes = {
  code: "code",
  message: "msg",
  busy: { 11232: MINUTE_MS },
  refused: [9499, 19001, 19002],
};

/** A request of 20 KB is the most that a bot takes. */
const STYLE = { ...PLAIN, maxBytes: 14_000 };

/** The key signs nothing: the time and the key together are the key. */
const signature = (key: string, nowMs: number): { readonly timestamp: string; readonly sign: string } => {
  const timestamp = String(Math.floor(nowMs / SECOND_MS));
  return { timestamp, sign: createHmac("sha256", `${timestamp}\n${key}`).digest("base64") };
};

/** A custom bot of a Feishu or Lark group. See https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot */
export const feishuChannel = (
  { context, clock, secret }: ChannelDeps,
  { name, webhook, sign }: { readonly name: string; readonly webhook: string; readonly sign?: string },
): Channel => ({
  name,
  alertsPerMessage: CHAT_ALERTS_PER_MESSAGE,
  send: async (alerts) => {
    const url = checkedUrl(await secret(webhook), webhook);
    const key = sign === undefined ? undefined : (await secret(sign)).trim();
    const texts = alerts.map((alert) => alertText(alert, context));
    const lines = written(texts, STYLE)
      .split("\n")
      .map((text) => [{ tag: "text", text }]);
    // The language is a label of the content; every reader sees the one there is.
    const post = { en_us: { title: messageTitle(texts, context), content: lines } };
    const body = JSON.stringify({
      ...(key === undefined ? {} : signature(key, clock.nowMs())),
      msg_type: "post",
      content: { post },
    });
    return byBody(await postJson({ url: url.href, body }, clock), CODES);
  },
});
