import type { Alert } from "../../core/alerts/alert.ts";
import { alertText, endsTrouble, type TextContext } from "../../core/alerts/alert-text.ts";
import { trimmed } from "../../core/json-safe.ts";
import { isoOf } from "../../core/time.ts";
import type { Channel } from "../../ports/channel.ts";
import type { ChannelDeps } from "./channel-deps.ts";
import { byStatus, postJson } from "./http.ts";

const ADDRESSES = {
  us: "https://events.pagerduty.com/v2/enqueue",
  eu: "https://events.eu.pagerduty.com/v2/enqueue",
} as const;

/** PagerDuty's own bounds. */
const SUMMARY_BYTES = 1_024;
const DEDUP_CHARACTERS = 255;

/**
 * What is told of one job, run-time schedule or alarm is one incident, which good news resolves. What nothing resolves
 * is an incident of its own: under the key of an earlier one it would be taken for the same, and told to nobody.
 */
const incidentOf = ({ id, job, subject = job, automation, alarm, passing }: Alert): string => {
  if (passing === true) return id;
  if (automation !== undefined) return `automation/${automation}`;
  return alarm ?? (subject === undefined ? id : `job/${subject}`);
};

const dedupKey = (alert: Alert, { stage }: TextContext): string =>
  `belfry/${stage}/${incidentOf(alert)}`.slice(0, DEDUP_CHARACTERS);

/** Neither a job's recovery nor an alarm's end will come for it. */
const isLeftOpen = ({ job, alarm, passing }: Alert): boolean =>
  passing === true || (job === undefined && alarm === undefined);

const INFORMS = ["slow", "paused", "watchdog-back", "test"];

const severityOf = ({ topic, kind }: Alert): string => {
  if (INFORMS.includes(kind)) return "info";
  return topic === "page" ? "critical" : "warning";
};

const eventOf = (alert: Alert, context: TextContext, routingKey: string) => {
  const { title, facts, link } = alertText(alert, context);
  const common = { routing_key: routingKey, dedup_key: dedupKey(alert, context) };
  if (endsTrouble(alert)) return { ...common, event_action: "resolve" };
  const { job, kind, atMs, reason, runbook } = alert;
  const links = [
    ...(link === undefined ? [] : [{ href: link, text: "Run" }]),
    ...(runbook !== undefined && URL.canParse(runbook) ? [{ href: runbook, text: "Runbook" }] : []),
  ];
  return {
    ...common,
    event_action: "trigger",
    client: "Belfry",
    payload: {
      summary: trimmed(`${title}: ${reason}`, SUMMARY_BYTES),
      source: `belfry/${context.stage}`,
      severity: severityOf(alert),
      timestamp: isoOf(atMs),
      ...(job === undefined ? {} : { component: job }),
      class: kind,
      custom_details: {
        ...Object.fromEntries(facts),
        ...(isLeftOpen(alert) ? { Incident: "nothing will end it: resolve it once it is read" } : {}),
      },
    },
    ...(links.length === 0 ? {} : { links }),
  };
};

/** Events API v2. See https://developer.pagerduty.com/docs/send-alert-event */
export const pagerDutyChannel = (
  { context, clock, secret }: ChannelDeps,
  {
    name,
    routingKey,
    region = "us",
  }: { readonly name: string; readonly routingKey: string; readonly region?: "eu" | "us" },
  address: string = ADDRESSES[region],
): Channel => ({
  name,
  alertsPerMessage: 1,
  send: async ([alert]) => {
    if (alert === undefined) return { kind: "taken" };
    const event = eventOf(alert, context, (await secret(routingKey)).trim());
    return byStatus(await postJson({ url: address, body: JSON.stringify(event) }, clock));
  },
});
