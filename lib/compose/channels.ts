import type { ChannelDeps } from "../adapters/channels/channel-deps.ts";
import { dingTalkChannel } from "../adapters/channels/dingtalk.ts";
import { feishuChannel } from "../adapters/channels/feishu.ts";
import { pagerDutyChannel } from "../adapters/channels/pagerduty.ts";
import { slackChannel } from "../adapters/channels/slack.ts";
import { terminalChannel } from "../adapters/channels/terminal.ts";
import { webhookChannel } from "../adapters/channels/webhook.ts";
import { weComChannel } from "../adapters/channels/wecom.ts";
import { systemClock } from "../adapters/system/system.ts";
import type { Route } from "../app/notify/deliver.ts";
import {
  type AlertsConfig,
  type ChannelDefinition,
  secretsOf,
  topicsOf,
} from "../core/alerts/alert-channels.ts";
import type { TextContext } from "../core/alerts/alert-text.ts";
import type { AbsentChannel } from "../ports/bell.ts";
import type { Channel } from "../ports/channel.ts";
import type { StackConfig } from "./config.ts";

export interface Secrets {
  /** The value of a variable of `alerts.secrets`. @throws when it cannot be read */
  read(variable: string): Promise<string>;
  forget(variables: readonly string[]): void;
}

/** From SSM and Secrets Manager, when a channel first needs it. */
export const deployedSecrets = (
  { secrets }: AlertsConfig,
  { stage, region }: Pick<StackConfig, "stage" | "region">,
): Secrets => {
  const known = new Map<string, string>();
  return {
    read: async (variable) => {
      const before = known.get(variable);
      if (before !== undefined) return before;
      const { readSecrets } = await import("../adapters/secrets/aws-secrets.ts");
      const values = await readSecrets({ [variable]: secrets[variable] ?? "" }, { stage, region });
      const value = values[variable] ?? "";
      known.set(variable, value);
      return value;
    },
    forget: (variables) => {
      for (const variable of variables) known.delete(variable);
    },
  };
};

/** What a channel does not take it may not take because a secret has been changed: it is looked up again then. */
const renewing = (channel: Channel, forget: () => void): Channel => ({
  ...channel,
  send: async (alerts) => {
    const answer = await channel.send(alerts).catch((error: unknown) => {
      forget();
      throw error;
    });
    if (answer.kind !== "taken") forget();
    return answer;
  },
});

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

export interface Routes {
  readonly routes: readonly Route[];
  /** Configured channels that tell nothing here. */
  readonly absent: readonly AbsentChannel[];
}

/** Why it cannot tell anything in the embedded stack. */
const whyAbsent = (definition: ChannelDefinition, { secret }: LocalAlerts): string | undefined => {
  if (definition.kind === "email") return "only a deployed stage sends e-mail";
  const missing = secretsOf(definition).filter((variable) => !secret(variable));
  return missing.length === 0
    ? undefined
    : `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} neither in .env nor in the environment`;
};

/** Each configured channel with its topics. */
export const deployedRoutes = (
  config: StackConfig,
  alerts: AlertsConfig,
  secrets: Secrets = deployedSecrets(alerts, config),
): readonly Route[] => {
  const deps = { context: contextOf(config, alerts), clock: systemClock, secret: secrets.read };
  return alerts.channels.flatMap((definition): Route[] => {
    const channel = channelOf(deps, definition, config);
    if (channel === undefined) return [];
    const forget = (): void => secrets.forget(secretsOf(definition));
    return [{ channel: renewing(channel, forget), topics: topicsOf(alerts, definition.name) }];
  });
};

/** In the embedded stack: the channels whose secrets are on this machine, and the terminal, which hears everything. */
export const localRoutes = (config: StackConfig, alerts: AlertsConfig, local: LocalAlerts): Routes => {
  const context = contextOf(config, alerts);
  const deps: ChannelDeps = {
    context,
    clock: systemClock,
    secret: async (variable) => local.secret(variable) ?? "",
  };
  const terminal: Route = { channel: terminalChannel(context, local.say), topics: ["notify", "page"] };
  const routes = [terminal];
  const absent: AbsentChannel[] = [];
  for (const definition of alerts.channels) {
    const { name } = definition;
    const why = whyAbsent(definition, local);
    const channel = why === undefined ? channelOf(deps, definition, config) : undefined;
    if (channel === undefined) absent.push({ name, why: why ?? "it has no topic" });
    else routes.push({ channel, topics: topicsOf(alerts, name) });
  }
  return { routes, absent };
};

const contextOf = ({ stage }: StackConfig, { link }: AlertsConfig): TextContext => ({
  stage,
  ...(link !== undefined && { link }),
});
