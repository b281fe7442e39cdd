import { NAME_PATTERN } from "../identity.ts";
import { secrets } from "../jobs/job-needs.ts";
import { isRecord } from "../json.ts";
import {
  didYouMean,
  listOf,
  matching,
  noted,
  type Place,
  type Reader,
  record,
  text,
} from "../read-options.ts";
import { parseZone } from "../schedule/zone.ts";
import type { AlertTopic } from "./alert.ts";
import type { QuietHours } from "./quiet-hours.ts";

/** A way to people, as data; its secrets by the names of their variables. */
export type ChannelDefinition = { readonly name: string } & (
  | { readonly kind: "slack" | "wecom"; readonly webhook: string }
  /** `sign`: the key of the robot's signature, where it wants one. */
  | { readonly kind: "dingtalk" | "feishu"; readonly webhook: string; readonly sign?: string }
  | { readonly kind: "pagerduty"; readonly routingKey: string; readonly region?: "eu" }
  | { readonly kind: "webhook"; readonly url: string; readonly secret: string }
  | { readonly kind: "email"; readonly to: readonly string[] }
);

/** `alerts` of `belfry.config.ts`, checked. */
export interface AlertsConfig {
  /** Variable -> where the secret lies. */
  readonly secrets: { readonly [variable: string]: string };
  /** Each has a name of its own, whatever topics it is in. */
  readonly channels: readonly ChannelDefinition[];
  /** Names of channels. Those of `notify` hear what is told to `page` too. */
  readonly topics: { readonly [topic in AlertTopic]: readonly string[] };
  readonly quietHours?: QuietHours;
  /** A page about the job or run, with `{job}`, `{runId}` and `{stage}`. */
  readonly link?: string;
}

export const NO_ALERTS: AlertsConfig = { secrets: {}, channels: [], topics: { notify: [], page: [] } };

/** The topics that a channel hears of: none = it is in no list. */
export const topicsOf = ({ topics }: AlertsConfig, channel: string): readonly AlertTopic[] => {
  if (topics.notify.includes(channel)) return ["notify", "page"];
  return topics.page.includes(channel) ? ["page"] : [];
};

/** Names of the channels that hear of a topic. */
export const channelsOf = (alerts: AlertsConfig, topic: AlertTopic): readonly string[] =>
  alerts.channels.map(({ name: each }) => each).filter((each) => topicsOf(alerts, each).includes(topic));

/** The variables that hold a channel's secrets. */
export const secretsOf = (channel: ChannelDefinition): readonly string[] => {
  switch (channel.kind) {
    case "slack":
    case "wecom":
      return [channel.webhook];
    case "dingtalk":
    case "feishu":
      return [channel.webhook, ...(channel.sign === undefined ? [] : [channel.sign])];
    case "pagerduty":
      return [channel.routingKey];
    case "webhook":
      return [channel.url, channel.secret];
    case "email":
      return [];
  }
};

const CHANNEL_MAKERS = "slack, dingTalk, weCom, feishu, pagerDuty, webhook or email";
const name = matching(NAME_PATTERN, "lower-case letters, digits and -, beginning with a letter, at most 48");
const address: Reader<string> = (value, place) =>
  typeof value === "string" && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value)
    ? value
    : place.fault("this is no e-mail address", "ops@example.com");

const region: Reader<"eu"> = (value, place) =>
  value === "eu" ? value : place.fault("there is no such region", 'write "eu", or leave it out');

const SHAPES = {
  slack: { webhook: text },
  wecom: { webhook: text },
  dingtalk: { webhook: text, sign: text },
  feishu: { webhook: text, sign: text },
  pagerduty: { routingKey: text, region },
  webhook: { url: text, secret: text },
  email: { to: listOf(address) },
} as const;
const NEEDED: { readonly [kind in ChannelDefinition["kind"]]: readonly string[] } = {
  slack: ["webhook"],
  wecom: ["webhook"],
  dingtalk: ["webhook"],
  feishu: ["webhook"],
  pagerduty: ["routingKey"],
  webhook: ["url", "secret"],
  email: ["to"],
};

const isKind = (kind: unknown): kind is ChannelDefinition["kind"] =>
  typeof kind === "string" && Object.hasOwn(SHAPES, kind);

const channel: Reader<ChannelDefinition> = (value, place) => {
  if (!isRecord(value) || !isKind(value["kind"]))
    return place.fault("this is no channel", `make it with ${CHANNEL_MAKERS}`);
  const { kind, ...options } = value;
  const read = record({ name, ...SHAPES[kind] })(options, place);
  const missing = NEEDED[kind].filter((option) => options[option] === undefined);
  for (const option of missing) place.inner(option).fault("this is needed");
  // Its shape is the one of its kind, and nothing is missing.
  return missing.length > 0 || read === undefined
    ? undefined
    : ({ kind, name: kind, ...read } as ChannelDefinition);
};

const CLOCK = /^([01]\d|2[0-3]):([0-5]\d)$/;

const clock: Reader<number> = (value, place) => {
  const match = typeof value === "string" ? CLOCK.exec(value) : null;
  return match === null
    ? place.fault("this is no time of day", 'write hours and minutes: "22:00"')
    : Number(match[1]) * 60 + Number(match[2]);
};

const timezone: Reader<string> = (value, place) => {
  const given = text(value, place);
  return given === undefined ? undefined : noted(place, () => parseZone(given).name);
};

const quietHours: Reader<QuietHours> = (value, place) => {
  const { from, to, timezone: zone } = record({ from: clock, to: clock, timezone })(value, place) ?? {};
  if (isRecord(value))
    for (const option of ["from", "to", "timezone"])
      if (value[option] === undefined) place.inner(option).fault("this is needed");
  if (from === undefined || to === undefined || zone === undefined) return undefined;
  if (from === to) return place.fault("the quiet hours would be the whole day, and nothing would be told");
  return { fromMinute: from, untilMinute: to, timezone: zone };
};

const PLACEHOLDERS = ["{job}", "{runId}", "{stage}"];

const link: Reader<string> = (value, place) => {
  const given = text(value, place);
  if (given === undefined) return undefined;
  const unknown = given.match(/\{[^}]*\}/g)?.find((placeholder) => !PLACEHOLDERS.includes(placeholder));
  if (unknown !== undefined)
    return place.fault(`${unknown} stands for nothing`, `write ${PLACEHOLDERS.join(", ")}`);
  return URL.canParse(given) && /^https?:/.test(given)
    ? given
    : place.fault("this is no address", 'write "https://jobs.example.com/runs/{runId}"');
};

const shape = record({ secrets, notify: listOf(channel), page: listOf(channel), quietHours, link });

/** Channels of both lists, each once; two that differ must not share a name. */
const distinct = (lists: { readonly [topic in AlertTopic]: readonly ChannelDefinition[] }, place: Place) => {
  const byName = new Map<string, ChannelDefinition>();
  for (const topic of ["notify", "page"] as const)
    lists[topic].forEach((one, i) => {
      const other = byName.get(one.name);
      if (other !== undefined && JSON.stringify(other) !== JSON.stringify(one))
        place
          .inner(`${topic}[${i}]`)
          .inner("name")
          .fault(`another channel is named "${one.name}"`, 'give one of the two a name: name: "ops"');
      else if (other === undefined) byName.set(one.name, one);
    });
  return [...byName.values()];
};

const checkSecrets = (
  channels: readonly ChannelDefinition[],
  known: AlertsConfig["secrets"],
  place: Place,
): void => {
  const names = Object.keys(known);
  for (const one of channels)
    for (const variable of secretsOf(one)) {
      if (Object.hasOwn(known, variable)) continue;
      // What was written may be the secret itself: it is not shown.
      const what = /^[A-Za-z][A-Za-z0-9_]*$/.test(variable) ? variable : "what it names";
      place
        .inner("secrets")
        .fault(
          `the channel "${one.name}" needs a secret, and ${what} is not one of these`,
          didYouMean(variable, names) ??
            'secrets: { SLACK_WEBHOOK: "ssm:/notes/{stage}/slack" }, and the channel names the variable',
        );
    }
};

export const alerts: Reader<AlertsConfig> = (value, place) => {
  const read = shape(value, place);
  if (read === undefined) return undefined;
  const { secrets: known = {}, notify = [], page = [], ...rest } = read;
  const channels = distinct({ notify, page }, place);
  checkSecrets(channels, known, place);
  const names = (list: readonly ChannelDefinition[]) => [...new Set(list.map((one) => one.name))];
  return { secrets: known, channels, topics: { notify: names(notify), page: names(page) }, ...rest };
};
