import type { ChannelDeps } from "../adapters/channels/channel-deps.ts";
import { dingTalkChannel } from "../adapters/channels/dingtalk.ts";
import { feishuChannel } from "../adapters/channels/feishu.ts";
import { pagerDutyChannel } from "../adapters/channels/pagerduty.ts";
import { slackChannel } from "../adapters/channels/slack.ts";
import { terminalChannel } from "../adapters/channels/terminal.ts";
import { webhookChannel } from "../adapters/channels/webhook.ts";
import { weComChannel } from "../adapters/channels/wecom.ts";
import { systemClock } from "../adapters/system/system.ts";
import type { Route } from "../app/deliver.ts";
import { type AlertsConfig, type ChannelDefinition, secretsOf, topicsOf } from "../core/alert-channels.ts";
import type { Channel } from "../ports/channel.ts";
import type { StackConfig } from "./config.ts";

/** Looks one variable of `alerts.secrets` up. @throws when it cannot be read */
export type SecretReader = (variable: string) => Promise<string>;

/**
 * From SSM and Secrets Manager, when a channel first needs it; a failed look is made again with the next message, so
 * that a secret which is put right is found.
 */
export const deployedSecrets = (
  { secrets }: AlertsConfig,
  { stage, region }: Pick<StackConfig, "stage" | "region">,
): SecretReader => {
  const known = new Map<string, Promise<string>>();
  const read = async (variable: string): Promise<string> => {
    const { readSecrets } = await import("../adapters/secrets/aws-secrets.ts");
    const reference = secrets[variable] ?? "";
    return (await readSecrets({ [variable]: reference }, { stage, region }))[variable] ?? "";
  };
  return (variable) => {
    const value =
      known.get(variable) ??
      read(variable).catch((error: unknown) => {
        known.delete(variable);
        throw error;
      });
    known.set(variable, value);
    return value;
  };
};

const emailOf = (deps: ChannelDeps, name: string, config: StackConfig): Channel | undefined => {
  const topicArn = config.emailTopics?.[name];
  if (topicArn === undefined) return undefined;
  // Only a deployment that has such a channel pays for loading the client.
  let channel: Promise<Channel> | undefined;
  const load = async (): Promise<Channel> => {
    const [{ SNSClient }, { emailChannel }] = await Promise.all([
      import("@aws-sdk/client-sns"),
      import("../adapters/channels/email.ts"),
    ]);
    return emailChannel(deps, { name, topicArn, sns: new SNSClient({ region: config.region }) });
  };
  return {
    name,
    alertsPerMessage: 10,
    send: async (alerts) => {
      channel ??= load();
      return (await channel).send(alerts);
    },
  };
};

const channelOf = (
  deps: ChannelDeps,
  definition: ChannelDefinition,
  config: StackConfig,
): Channel | undefined => {
  switch (definition.kind) {
    case "slack":
      return slackChannel(deps, definition);
    case "dingtalk":
      return dingTalkChannel(deps, definition);
    case "wecom":
      return weComChannel(deps, definition);
    case "feishu":
      return feishuChannel(deps, definition);
    case "pagerduty":
      return pagerDutyChannel(deps, definition);
    case "webhook":
      return webhookChannel(deps, definition);
    case "email":
      return emailOf(deps, definition.name, config);
  }
};

export interface LocalAlerts {
  /** The value of a secret on this machine; undefined = it has none. */
  readonly secret: (variable: string) => string | undefined;
  /** A line for the person in front of the embedded stack. */
  readonly say: (line: string) => void;
}

/**
 * Each configured channel with its topics. In the embedded stack those whose secrets are on this machine, and the
 * terminal, which hears everything.
 */
export const routesOf = (
  config: StackConfig,
  alerts: AlertsConfig,
  local?: LocalAlerts,
): readonly Route[] => {
  const { stage } = config;
  const context = { stage, ...(alerts.link !== undefined && { link: alerts.link }) };
  const secret: SecretReader =
    local === undefined ? deployedSecrets(alerts, config) : async (variable) => local.secret(variable) ?? "";
  const deps: ChannelDeps = { context, clock: systemClock, secret };
  const routes = alerts.channels.flatMap((definition): Route[] => {
    const isHere = local === undefined || secretsOf(definition).every((each) => local.secret(each));
    const channel = isHere ? channelOf(deps, definition, config) : undefined;
    return channel === undefined ? [] : [{ channel, topics: topicsOf(alerts, definition.name) }];
  });
  if (local === undefined) return routes;
  return [{ channel: terminalChannel(context, local.say), topics: ["notify", "page"] }, ...routes];
};
