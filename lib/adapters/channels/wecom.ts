import { alertText, type Style, written } from "../../core/alerts/alert-text.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import { CHAT_ALERTS_PER_MESSAGE, type ChannelDeps } from "./channel-deps.ts";
import { type BodyCodes, byBody, checkedUrl, postJson } from "./http.ts";

/** Tags colour and mention, so no text may hold the beginning of one. */
const MARKDOWN: Style = {
  title: (text) => `**${text}**`,
  fact: (label, value) => `> ${label}: ${value}`,
  escape: (text) => text.replaceAll("<", "＜"),
  // 4096 is what a robot takes.
  maxBytes: 4_000,
};

const CODES: BodyCodes = {
  code: "errcode",
  message: "errmsg",
  busy: { 45009: MINUTE_MS },
  refused: [40008, 40058, 44004, 45002],
};

/** A robot of a group. See https://developer.work.weixin.qq.com/document/path/91770 */
export const weComChannel = (
  { context, clock, secret }: ChannelDeps,
  { name, webhook }: { readonly name: string; readonly webhook: string },
): Channel => ({
  name,
  alertsPerMessage: CHAT_ALERTS_PER_MESSAGE,
  send: async (alerts) => {
    const url = checkedUrl(await secret(webhook), webhook);
    const texts = alerts.map((alert) => alertText(alert, context));
    const body = JSON.stringify({ msgtype: "markdown", markdown: { content: written(texts, MARKDOWN) } });
    return byBody(await postJson({ url: url.href, body }, clock), CODES);
  },
});
