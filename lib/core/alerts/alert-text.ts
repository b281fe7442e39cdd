import { trimmed } from "../json-safe.ts";
import { wallText } from "../schedule/calendar.ts";
import { parseZone } from "../schedule/zone.ts";
import { shortIsoOf } from "../time.ts";
import type { Alert, AlertKind } from "./alert.ts";

/** Where the deployment is that tells. */
export interface TextContext {
  readonly stage: string;
  /** A page about the run or job, with `{job}`, `{runId}` and `{stage}`. */
  readonly link?: string;
}

export interface AlertText {
  /** One line: the stage, what it is about, and what is the matter. */
  readonly title: string;
  /** `[label, value]`, each value one line. */
  readonly facts: readonly (readonly [label: string, value: string])[];
  readonly link?: string;
}

type What = string | ((alert: Alert) => string);

const WHAT: { readonly [kind in AlertKind]: What } = {
  failed: "failed",
  failing: ({ count }) => (count === undefined ? "keeps failing" : `failed ${count} times in a row`),
  late: "is late",
  missed: ({ count = 1 }) => (count === 1 ? "was missed" : `missed ${count} slots`),
  stuck: "is stuck: its worker gives no sign of life",
  overrun: "runs longer than it should",
  slow: "was slow",
  parked: "waits for a person to decide",
  paused: "is paused",
  flapping: "fails and recovers again and again",
  reminder: "is still not well",
  recovered: "is well again",
  removed: "is removed, and with it what was wrong",
  alarm: ({ alarm }) => (alarm === undefined ? "alarm" : `alarm ${alarm}`),
  "alarm-over": ({ alarm }) => (alarm === undefined ? "alarm is over" : `alarm is over: ${alarm}`),
  "watchdog-back": "the watchdog is back",
  test: "test alert",
};

/** A kind that a later version has stored is told by its name. */
const whatOf = (alert: Alert): string => {
  const what: What = WHAT[alert.kind] ?? alert.kind;
  return typeof what === "string" ? what : what(alert);
};

const ENDS: readonly AlertKind[] = ["recovered", "removed", "alarm-over"];

/** Does it end what was told before? */
export const endsTrouble = ({ kind }: Alert): boolean => ENDS.includes(kind);

/** An alert is told though its zone is not known here, as after a roll-back of Node's zones. */
const offsetMs = (timezone: string, atMs: number): number | undefined => {
  try {
    return parseZone(timezone).offsetAt(atMs);
  } catch {
    return undefined;
  }
};

/** `2026-10-08 10:00 Asia/Shanghai (2026-10-08T02:00:00Z)` */
export const bothClocks = (atMs: number, timezone = "UTC"): string => {
  const iso = shortIsoOf(atMs);
  const offset = timezone === "UTC" ? undefined : offsetMs(timezone, atMs);
  return offset === undefined ? iso : `${wallText(atMs + offset)} ${timezone} (${iso})`;
};

/** Undefined where the link wants something that the alert does not have. */
export const linkOf = (
  { job, runId }: Pick<Alert, "job" | "runId">,
  { stage, link }: TextContext,
): string | undefined => {
  const known: { readonly [name: string]: string | undefined } = { job, runId, stage };
  if (
    link === undefined ||
    (link.match(/\{\w+\}/g) ?? []).some((name) => known[name.slice(1, -1)] === undefined)
  )
    return undefined;
  return link.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(known[name] ?? ""));
};

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

/** What people read of an alert, whatever the channel. */
export const alertText = (alert: Alert, context: TextContext): AlertText => {
  const { job, automation, reason, error, slotMs, atMs, timezone, runId, owner, runbook, remedy } = alert;
  const link = linkOf(alert, context);
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Why", reason],
    // The reason mostly ends with it.
    ["Error", error && !reason.includes(error.message) ? `${error.name}: ${error.message}` : undefined],
    ["Slot", slotMs === undefined ? undefined : bothClocks(slotMs, timezone)],
    ["Automation", automation],
    ["Run", runId],
    ["At", bothClocks(atMs, timezone)],
    ["To do", remedy],
    ["Owner", owner],
    ["Runbook", runbook],
    ["More", link],
  ];
  return {
    title: oneLine(`[${context.stage}] ${job === undefined ? "" : `${job} `}${whatOf(alert)}`),
    facts: facts.flatMap(([label, value]) => (value === undefined ? [] : [[label, oneLine(value)] as const])),
    ...(link !== undefined && { link }),
  };
};

/** The title of a message that says all of these. */
export const messageTitle = (texts: readonly AlertText[], { stage }: TextContext): string => {
  const [only, ...others] = texts;
  return only !== undefined && others.length === 0 ? only.title : `[${stage}] ${texts.length} alerts`;
};

/** How a channel writes. */
export interface Style {
  title(text: string): string;
  fact(label: string, value: string): string;
  /** Makes a text harmless to the channel's markup. */
  escape(text: string): string;
  /** The longest message that it takes. */
  readonly maxBytes: number;
}

export const PLAIN: Style = {
  title: (text) => text,
  fact: (label, value) => `${label}: ${value}`,
  escape: (text) => text,
  maxBytes: 100_000,
};

/** One text of them all; what is too long is cut in each alike, so that none falls off the end. */
export const written = (texts: readonly AlertText[], style: Style): string => {
  const budget = Math.floor(style.maxBytes / Math.max(texts.length, 1)) - 2;
  const blocks = texts.map(({ title, facts }) =>
    [
      style.title(style.escape(title)),
      ...facts.map(([label, value]) => style.fact(label, style.escape(value))),
    ].join("\n"),
  );
  return blocks.map((block) => trimmed(block, budget)).join("\n\n");
};
