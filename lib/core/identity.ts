import { InvalidInput } from "./errors.ts";
import { isoOf, readInstant, readIso } from "./time.ts";

/**
 * An occurrence is a subject at a slot. Its slot key is the slot in UTC with milliseconds; a run by hand has the
 * instant of the request and a random suffix instead (`2026-10-08T02:00:03.123Z-k3x9f2`), so it never meets a slot.
 */
export interface Occurrence {
  readonly subject: string;
  readonly slotKey: string;
}

/** Names of jobs, pools and stages. */
export const NAME_PATTERN = /^[a-z][a-z0-9-]{0,47}$/;

const AUTOMATION = "automation:";
/** Ids of run-time schedules. */
export const AUTOMATION_ID = /^[a-z0-9][a-z0-9-]{0,47}$/;
/** What the history of a run-time schedule is kept under. */
export const automationSubject = (id: string): string => `${AUTOMATION}${id}`;
/** Undefined for the subject of a job. */
export const automationIdIn = (subject: string): string | undefined =>
  subject.startsWith(AUTOMATION) ? subject.slice(AUTOMATION.length) : undefined;

const SLOT_KEY = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?:-([a-z0-9]{4,16}))?$/;
const RUN_ID =
  /^((?:automation:)?[a-z0-9][a-z0-9-]*)~(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})?Z(?:-([a-z0-9]{4,16}))?$/;

export const slotKeyOf = (slotMs: number): string => isoOf(slotMs);
export const manualSlotKey = (atMs: number, suffix: string): string => `${isoOf(atMs)}-${suffix}`;

interface SlotKeyParts {
  readonly iso: string;
  readonly atMs: number;
  readonly suffix: string | undefined;
}

const readSlotKey = (text: string): SlotKeyParts | undefined => {
  const [, iso, suffix] = SLOT_KEY.exec(text) ?? [];
  const atMs = iso === undefined ? undefined : readIso(iso);
  return iso === undefined || atMs === undefined ? undefined : { iso, atMs, suffix };
};

export const isSlotKey = (text: string): boolean => readSlotKey(text) !== undefined;

const partsOf = (slotKey: string): SlotKeyParts => {
  const parts = readSlotKey(slotKey);
  if (parts === undefined) throw new InvalidInput("invalid_slot_key", `"${slotKey}" is no slot key`);
  return parts;
};

/** The instant in a slot key: the slot, or when the run by hand was asked for. */
export const slotMsOf = (slotKey: string): number => partsOf(slotKey).atMs;

/** Is it a run by hand with a key of its own, not an occurrence of the schedule? */
export const isManualKey = (slotKey: string): boolean => partsOf(slotKey).suffix !== undefined;

/** One URL-safe segment from which the key can be read again: `clean-sessions~20261008T020000Z`. */
export const runIdOf = ({ subject, slotKey }: Occurrence): string => {
  const { iso, suffix } = partsOf(slotKey);
  const compact = iso.replaceAll(/[-:.]/g, "").replace("000Z", "Z");
  return `${subject}~${compact}${suffix === undefined ? "" : `-${suffix}`}`;
};

/** Undefined when the text is no run id. */
export const readRunId = (runId: string): Occurrence | undefined => {
  const match = RUN_ID.exec(runId);
  if (!match) return undefined;
  const [, subject = "", year, month, day, hour, minute, second, millisecond = "000", suffix] = match;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.${millisecond}Z`;
  if (readInstant(iso) === undefined) return undefined;
  return { subject, slotKey: suffix === undefined ? iso : `${iso}-${suffix}` };
};
