import { createHmac } from "node:crypto";
import type { Alert } from "../../core/alerts/alert.ts";
import { alertText, type TextContext } from "../../core/alerts/alert-text.ts";
import { SECOND_MS, shortIsoOf } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import type { ChannelDeps } from "./channel-deps.ts";
import { byStatus, checkedUrl, postJson } from "./http.ts";

/** Shorter keys can be guessed. */
const MIN_KEY_BYTES = 24;

/** As Standard Webhooks writes keys: `whsec_` and base64; any other text is the key itself. */
const keyOf = (secret: string, variable: string): Buffer => {
  const text = secret.trim();
  const key = text.startsWith("whsec_") ? Buffer.from(text.slice(6), "base64") : Buffer.from(text);
  if (key.length >= MIN_KEY_BYTES) return key;
  throw new Error(`the secret ${variable} is shorter than ${MIN_KEY_BYTES} bytes`);
};

const bodyOf = (alert: Alert, context: TextContext) => {
  const { atMs, slotMs, ...rest } = alert;
  const { title, link } = alertText(alert, context);
  return JSON.stringify({
    version: 1,
    stage: context.stage,
    ...rest,
    title,
    at: shortIsoOf(atMs),
    ...(slotMs === undefined ? {} : { slot: shortIsoOf(slotMs) }),
    ...(link === undefined ? {} : { link }),
  });
};

/** Signed as Standard Webhooks says, so that its libraries verify it. See https://www.standardwebhooks.com */
export const webhookChannel = (
  { context, clock, secret }: ChannelDeps,
  definition: { readonly name: string; readonly url: string; readonly secret: string },
): Channel => ({
  name: definition.name,
  alertsPerMessage: 1,
  send: async ([alert]) => {
    if (alert === undefined) return { kind: "taken" };
    const url = checkedUrl(await secret(definition.url), definition.url);
    const key = keyOf(await secret(definition.secret), definition.secret);
    const body = bodyOf(alert, context);
    const timestamp = String(Math.floor(clock.nowMs() / SECOND_MS));
    const sign = createHmac("sha256", key).update(`${alert.id}.${timestamp}.${body}`).digest("base64");
    const headers = {
      "webhook-id": alert.id,
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${sign}`,
    };
    return byStatus(await postJson({ url: url.href, body, headers }, clock));
  },
});
