import { createHmac } from "node:crypto";
import { alertText, messageTitle, type Style, written } from "../../core/alerts/alert-text.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import { CHAT_ALERTS_PER_MESSAGE, type ChannelDeps } from "./channel-deps.ts";
import { type BodyCodes, byBody, checkedUrl, postJson } from "./http.ts";

const MARKDOWN: Style = {
  title: (text) => `#### ${text}`,
  fact: (label, value) => `- ${label}: ${value}`,
  escape: (text) => text,
  maxBytes: 18_000,
};

/** Over 20 messages a minute, a robot is not heard for ten minutes. */
const CODES: BodyCodes = {
  code: "errcode",
  message: "errmsg",
  busy: { 130101: 10 * MINUTE_MS, 410100: 10 * MINUTE_MS },
  refused: [40035, 460101],
};

/** The robot's signature goes into the address. */
const signed = (url: URL, key: string | undefined, nowMs: number): string => {
  if (key === undefined) return url.href;
  const sign = createHmac("sha256", key).update(`${nowMs}\n${key}`).digest("base64");
  const address = new URL(url);
  address.searchParams.set("timestamp", String(nowMs));
  address.searchParams.set("sign", sign);
  return address.href;
};

/** A custom robot of a group. See https://open.dingtalk.com/document/orgapp/custom-robots-send-group-messages */
export const dingTalkChannel = (
  { context, clock, secret }: ChannelDeps,
  { name, webhook, sign }: { readonly name: string; readonly webhook: string; readonly sign?: string },
): Channel => ({
  name,
  alertsPerMessage: CHAT_ALERTS_PER_MESSAGE,
  send: async (alerts) => {
    const url = checkedUrl(await secret(webhook), webhook);
    const key = sign === undefined ? undefined : (await secret(sign)).trim();
    const texts = alerts.map((alert) => alertText(alert, context));
    const markdown = { title: messageTitle(texts, context), text: written(texts, MARKDOWN) };
    const body = JSON.stringify({ msgtype: "markdown", markdown });
    return byBody(await postJson({ url: signed(url, key, clock.nowMs()), body }, clock), CODES);
  },
});
