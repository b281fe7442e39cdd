import type { Alert } from "./alert.ts";
import { trimmed } from "./json-safe.ts";
import { wallText } from "./schedule/calendar.ts";
import { parseZone } from "./schedule/zone.ts";
import { shortIsoOf } from "./time.ts";

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

const times = (count: number): string => (count === 1 ? "once" : `${count} times`);

const whatOf = ({ kind, count, alarm }: Alert): string => {
  switch (kind) {
    case "failed":
      return "failed";
    case "failing":
      return count === undefined ? "keeps failing" : `failed ${times(count)} in a row`;
    case "late":
      return "has not started in time";
    case "missed":
      return count === undefined || count === 1 ? "was missed" : `missed ${count} slots`;
    case "stuck":
      return "is stuck: its worker gives no sign of life";
    case "overrun":
      return "runs longer than it should";
    case "slow":
      return "was slow";
    case "parked":
      return "waits for a person to decide";
    case "paused":
      return "is paused";
    case "flapping":
      return "fails and recovers again and again";
    case "reminder":
      return "is still not well";
    case "recovered":
      return "is well again";
    case "alarm":
      return `alarm ${alarm ?? ""}`.trimEnd();
    case "alarm-over":
      return `alarm is over ${alarm ?? ""}`.trimEnd();
    case "watchdog-back":
      return "the watchdog is back";
    case "test":
      return "test alert";
  }
};

/** Is it good news, which ends what was told before? */
export const endsTrouble = ({ kind }: Alert): boolean => kind === "recovered" || kind === "alarm-over";

/** `2026-10-08 10:00 Asia/Shanghai (2026-10-08T02:00:00Z)` */
export const bothClocks = (atMs: number, timezone = "UTC"): string => {
  const iso = shortIsoOf(atMs);
  return timezone === "UTC"
    ? iso
    : `${wallText(atMs + parseZone(timezone).offsetAt(atMs))} ${timezone} (${iso})`;
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
  const { job, reason, error, slotMs, atMs, timezone, runId, owner, runbook, remedy } = alert;
  const link = linkOf(alert, context);
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Why", reason],
    ["Error", error && `${error.name}: ${error.message}`],
    ["Slot", slotMs === undefined ? undefined : bothClocks(slotMs, timezone)],
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
