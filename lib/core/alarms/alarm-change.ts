import type { Alert, AlertTopic } from "../alerts/alert.ts";
import { bothClocks } from "../alerts/alert-text.ts";
import { alarmKey, expiresAtS } from "../items.ts";
import { isRecord } from "../json.ts";
import { isoOf, readInstant } from "../time.ts";
import { absent, any, type Item, lessThan, set, setOnce, type Write } from "../write.ts";
import type { AlarmDefinition } from "./alarm.ts";

/** An alarm has begun to ring, or has stopped. */
export interface AlarmChange {
  readonly name: string;
  /** `unknown`: there are no data; nobody needs to hear that. */
  readonly state: "ringing" | "over" | "unknown";
  readonly atMs: number;
  /** What CloudWatch says of it. */
  readonly reason: string;
  readonly description?: string;
}

const STATES = { ALARM: "ringing", OK: "over", INSUFFICIENT_DATA: "unknown" } as const;
const isState = (value: unknown): value is keyof typeof STATES =>
  typeof value === "string" && Object.hasOwn(STATES, value);

/** `2026-10-08T02:06:00.250+0000`: CloudWatch leaves the colon out. */
const readTime = (value: unknown): number | undefined =>
  typeof value === "string" ? readInstant(value.replace(/([+-]\d\d)(\d\d)$/, "$1:$2")) : undefined;

const textIn = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** The message that CloudWatch publishes to a topic; undefined for any other text. */
export const readAlarmChange = (text: string): AlarmChange | undefined => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const name = textIn(value["AlarmName"]);
  const state = value["NewStateValue"];
  const atMs = readTime(value["StateChangeTime"]);
  if (name === undefined || !isState(state) || atMs === undefined) return undefined;
  const description = textIn(value["AlarmDescription"]);
  return {
    name,
    state: STATES[state],
    atMs,
    reason: textIn(value["NewStateReason"]) ?? "no reason given",
    ...(description !== undefined && { description }),
  };
};

/** The same change has the same id, however often it is delivered. */
export const alertOfAlarm = (change: AlarmChange, definition: AlarmDefinition | undefined): Alert => {
  const { name, atMs, reason, description } = change;
  const meaning = definition?.meaning ?? description;
  return {
    id: `${name}~${isoOf(atMs)}`,
    topic: definition?.topic ?? "notify",
    kind: "alarm",
    atMs,
    alarm: name,
    reason: meaning === undefined ? reason : `${meaning} (${reason})`,
    ...(definition && { remedy: definition.remedy }),
  };
};

/** Named by the alert that it ends, so that it is told once for each. */
export const alertOfEnd = (
  name: string,
  { toldAtMs, overAtMs }: { readonly toldAtMs: number; readonly overAtMs: number },
  topic: AlertTopic,
): Alert => ({
  id: `${name}~${isoOf(toldAtMs)}~over`,
  topic,
  kind: "alarm-over",
  atMs: overAtMs,
  alarm: name,
  reason: `It is over; it began at ${bothClocks(toldAtMs)}.`,
});

/** The alarm's alert is stored. The answer's item says whether its end is known already: messages may overtake. */
export const noteTold = ({ name, atMs }: AlarmChange): Write => ({
  key: alarmKey(name),
  condition: any(absent("toldAtMs"), lessThan("toldAtMs", atMs)),
  changes: [set("toldAtMs", atMs), set("expiresAtS", expiresAtS(atMs))],
});

export const noteOver = ({ name, atMs }: AlarmChange): Write => ({
  key: alarmKey(name),
  condition: any(absent("overAtMs"), lessThan("overAtMs", atMs)),
  changes: [set("overAtMs", atMs), setOnce("expiresAtS", expiresAtS(atMs))],
});

/** Of an alarm that was told and has ended since. */
export const endIn = (
  item: Item | undefined,
): { readonly toldAtMs: number; readonly overAtMs: number } | undefined => {
  const [toldAtMs, overAtMs] = [item?.["toldAtMs"], item?.["overAtMs"]];
  if (typeof toldAtMs !== "number" || typeof overAtMs !== "number" || overAtMs <= toldAtMs) return undefined;
  return { toldAtMs, overAtMs };
};

const TEST_REASON = /^belfry alert test (notify|page) ([\w-]+)$/;

/** What an alarm that is rung for a test gives as its reason. */
export const testReason = (topic: AlertTopic, id: string): string => `belfry alert test ${topic} ${id}`;

/** The test alert that the alarm stands for; undefined = the alarm rings by itself. */
export const testAlert = (topic: AlertTopic, id: string, atMs: number): Alert => ({
  id,
  topic,
  kind: "test",
  atMs,
  reason: "somebody tests whether alerts arrive; nothing is wrong",
});

export const testIn = ({ reason, atMs }: AlarmChange): Alert | undefined => {
  const [, topic, id] = TEST_REASON.exec(reason) ?? [];
  if (id === undefined || (topic !== "notify" && topic !== "page")) return undefined;
  return testAlert(topic, id, atMs);
};
