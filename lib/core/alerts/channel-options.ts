/** What the helpers make for `alerts` of `belfry.config.ts`; checked when the project is built. */
export interface AlertChannel {
  readonly kind: string;
  readonly [option: string]: unknown;
}

interface Named {
  /** Needed where two channels are of one kind; default: the kind. Delivery is remembered under it. */
  readonly name?: string;
}

/** Options that name a variable of `alerts.secrets`, never the secret itself. */
interface Chat extends Named {
  /** Of the webhook's address. */
  readonly webhook: string;
}

interface SignedChat extends Chat {
  /** Of the robot's signing key. */
  readonly sign?: string;
}

/** A Slack channel, by an incoming webhook. */
export const slack = (options: Chat): AlertChannel => ({ kind: "slack", ...options });

/** A DingTalk group, by a custom robot. */
export const dingTalk = (options: SignedChat): AlertChannel => ({ kind: "dingtalk", ...options });

/** A WeCom group, by a group robot. */
export const weCom = (options: Chat): AlertChannel => ({ kind: "wecom", ...options });

/** A Feishu or Lark group, by a custom bot. */
export const feishu = (options: SignedChat): AlertChannel => ({ kind: "feishu", ...options });

/** A PagerDuty service, by its Events API v2 integration; what is well again is resolved. */
export const pagerDuty = (
  options: Named & {
    /** Of the integration key. */
    readonly routingKey: string;
    readonly region?: "eu";
  },
): AlertChannel => ({ kind: "pagerduty", ...options });

/** Any address that takes signed JSON; docs/alerts.md has its form and how to verify it. */
export const webhook = (
  options: Named & {
    /** Of the address. */
    readonly url: string;
    /** Of the signing key. */
    readonly secret: string;
  },
): AlertChannel => ({ kind: "webhook", ...options });

/** E-mail by SNS; each address gets one mail that asks for its consent. Tells nothing on a laptop. */
export const email = (options: Named & { readonly to: readonly string[] }): AlertChannel => ({
  kind: "email",
  ...options,
});
