import { alertText, messageTitle, type Style, written } from "../../core/alerts/alert-text.ts";
import type { Channel } from "../../ports/channel.ts";
import { CHAT_ALERTS_PER_MESSAGE, type ChannelDeps } from "./channel-deps.ts";
import { type BodyCodes, byBody, byStatus, checkedUrl, postJson } from "./http.ts";

/** A group's robot, by the names of its secrets. */
export interface ChatOptions {
  readonly name: string;
  readonly webhook: string;
  /** Of the signing key. */
  readonly sign?: string;
}

/** What is posted once, and what it may be signed with. */
interface ChatMessage {
  readonly url: URL;
  readonly title: string;
  readonly text: string;
  /** How many alerts it tells of. */
  readonly count: number;
  readonly key: string | undefined;
  readonly nowMs: number;
}

/** How one product's group chats are written to. */
export interface Chat {
  readonly style: Style;
  /** Where the status says nothing and the answer's body all; absent = the status says it. */
  readonly codes?: BodyCodes;
  /** The body, as JSON will carry it; the address where it is not the webhook's own. */
  request(message: ChatMessage): { readonly body: object; readonly url?: URL };
}

/** A chat whose address is its secret: what has waited together is one message. */
export const chatChannel = (
  { context, clock, secret }: ChannelDeps,
  { name, webhook, sign }: ChatOptions,
  { style, codes, request }: Chat,
): Channel => ({
  name,
  alertsPerMessage: CHAT_ALERTS_PER_MESSAGE,
  send: async (alerts) => {
    const webhookUrl = checkedUrl(await secret(webhook), webhook);
    const key = sign === undefined ? undefined : (await secret(sign)).trim();
    const texts = alerts.map((alert) => alertText(alert, context));
    const { body, url = webhookUrl } = request({
      url: webhookUrl,
      title: messageTitle(texts, context),
      text: written(texts, style),
      count: texts.length,
      key,
      nowMs: clock.nowMs(),
    });
    const answer = await postJson({ url: url.href, body: JSON.stringify(body) }, clock);
    return codes === undefined ? byStatus(answer) : byBody(answer, codes);
  },
});
