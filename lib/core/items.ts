import { automationIdIn, type Occurrence } from "./identity.ts";
import { DAY_MS, HOUR_MS, isoOf } from "./time.ts";
import type { Key } from "./write.ts";

/**
 * Where everything lies in the one table. Keys are `pk`, `sk`; nothing is ever scanned.
 *
 * | item | pk / sk | for |
 * |---|---|---|
 * | RUN | `J#<subject>` / `R#<slotKey>` | one occurrence: its state, fence and lease; a subject's runs by slot; a run by its id |
 * | LOCK | `J#<subject>` / `L` | who occupies a job that does not allow overlap, and who waits |
 * | SIDE | `J#<subject>` / `I#<slotKey>#<name>` | input, result or error too big for RUN (`input`, `result-<fence>`, `error-<fence>`); what attempts hand on (`checkpoint`, `once#<key>`: `{fence, n, value}`). Of a shard: the same after `shard#<plan>#<index>#`; and `dead#<plan>#<index>`, why it failed |
 * | BUCKET | `F#<subject>#<slotKey>#<plan>#<stride>.<bucket>` / `B` | up to 64 shards of a run: which are done, which failed, who has the others |
 * | PAGE | the same / `P` | their keys and inputs, as the job listed them: `v`, JSON |
 * | STRIDE | `F#<subject>#<slotKey>#<plan>#<stride>` / `S#<epoch>` | which of up to 64 buckets are complete: `full` |
 * | OPEN | `O#<hour>#<0..7>` / `<instant>#<subject>~<slotKey>` | "look at this run at that instant"; with `health` for a slot key, at the job's health |
 * | SERIES | `J#<subject>` / `B#<kind>` | many runs that were asked for at once, as they are handed out: `backfill`, `retry` |
 * | REGISTRY | `W` / `series` | the series that are not over, and the places that they may take in each pool |
 * | CURSOR | `W` / `cursor` | up to where the watchdog has looked at slots |
 * | CONTROL | `W` / `control` | paused jobs `p#<subject>` = `{sinceMs, untilMs?, reason}`, slots to skip `n#<subject>` = `{slot}`, planned silences `m#<subject>` = `{sinceMs, untilMs, reason?}` |
 * | DEFINITION | `D` / `<subject>` | a job as data, its hash, since when it holds |
 * | MANIFEST | `W` / `manifest` | the hash of the manifest whose definitions are in the table |
 * | POISON | `P#<day>` / `<instant>~<id>` | a message that nobody can read |
 * | HEALTH | `H` / `<subject>` | a job's health, and what of it is still to be told; of a run-time schedule `J#<subject>` / `H` |
 * | FLIP | `J#<subject>` / `F#<number>` | a change of a job's health, and what was told of it |
 * | ALERT | `A#<id>` / `alert` | what somebody should hear of, and which channels have it |
 * | ALARM | `A#<alarm>` / `alarm` | `toldAtMs` of its last alert, `overAtMs` of its last return |
 * | AUTOMATION | `U#<0..63>` / `<id>` | a run-time schedule; its pause, as CONTROL has a job's |
 * | OWNER | `V#<owner>` / `owner` | the run-time schedules of an owner: `a#<id>` = when it was entered, `n` of them |
 * | DUE | `G#<minute>` / `P#<piece>#<n>`, `E#<id>` | which run-time schedules to look at for a minute: `ids` |
 * | AGENDA | `W` / `agenda` | up to where those minutes are looked at, and planned |
 *
 * Index `bad` (sparse): `badMonth` / `badKey`, only on runs that ended otherwise than `succeeded` or `skipped`, or
 * are parked; and on alerts: month `A#waiting` while a channel does not have it, then `A#<month>`.
 *
 * RUN: `v st ep fence own leaseUntilMs attempts crashes nextAttemptAtMs cancelAtMs cancelWhy claimedAtMs reopenedAtMs
 * nudgedAtMs nudgedBy nudges startedAtMs attemptAtMs endedAtMs dismissedAtMs trigger reason blockedBy input sideInput
 * result sideResult error sideError tries dup staleResults snoozes cont contAtMs progress series rangeCount rangeFromMs
 * badMonth badKey expiresAtS`. `tries`: the last attempts, each `{n, set?, piece?, startMs, tookMs, outcome, error?}`.
 * With shards also `ph` (phase), `plan` (fence of the list), `total`, `listed`, `sent`, `chosen`, `full` (strides),
 * `seen`, `seenAtMs`, `joinAtMs`.
 * BUCKET: `done`, `failed` (sets of seats), `least` (the attempt set from which on its shards may start), `forgiven`
 * (the attempt set in which failed ones could start again), per seat in use `l#<seat>` = `{owner?, leaseUntilMs?, starts,
 * attempts?, crashes?, snoozes?, pieces?, dueAtMs?}`.
 * ALERT: `v alert atMs badMonth badKey expiresAtS`, and per channel `to#<channel>` = `{attempts, owner, nextAtMs,
 * toldAtMs, gaveUpAtMs, error, refused}`, the owner being the last attempt's.
 * HEALTH: `v rev health untold`, the last two as JSON. FLIP: `v flip atMs expiresAtS`.
 * AUTOMATION: `v rev job owner input periods createdAtMs deletedAtMs expiresAtS`, `input` and `periods` (each a cron, its
 * zone, and from when it held) as JSON. AGENDA: `lookedUntilMs lookedPage plannedUntilMs`, and of a walk through all of
 * them `walkToMs walkPart walkAfter piece`.
 * LOCK: per holder `h#<slotKey>` = `{epoch, owner, sentAtMs: claimed or sent again, class, nudgedBy?}`;
 * `held`; `w`, a set of `<class>~<slotKey>~<epoch>`; `top`.
 */
export const ITEM_VERSION = 1;

export const INDEX_NAME = "bad";

const subjectKey = (subject: string): string => `J#${subject}`;

export const runKey = ({ subject, slotKey }: Occurrence): Key => ({
  pk: subjectKey(subject),
  sk: `R#${slotKey}`,
});
export const lockKey = (subject: string): Key => ({ pk: subjectKey(subject), sk: "L" });
export const sideKey = ({ subject, slotKey }: Occurrence, name: string): Key => ({
  pk: subjectKey(subject),
  sk: `I#${slotKey}#${name}`,
});

/** Name in SIDE of the state that a run's handler saved last. */
export const CHECKPOINT = "checkpoint";
/** Name in SIDE of a remembered side effect. */
export const effectName = (key: string): string => `once#${key}`;

/** Bounds of a sort key. */
interface KeyRange {
  readonly pk: string;
  readonly first: string;
  readonly last: string;
}

/** Everything in SIDE whose name begins with this and "#", both bounds included; "$" follows "#". */
const sideRange = (occurrence: Occurrence, name: string): KeyRange => {
  const { pk, sk } = sideKey(occurrence, name);
  return { pk, first: `${sk}#`, last: `${sk}$` };
};

/** Every side effect that a run, or with its scope a shard, remembers. */
export const effectRange = (occurrence: Occurrence, scope = ""): KeyRange =>
  sideRange(occurrence, `${scope}once`);

/** Sorts as the numbers do: a run has fewer shards than a million. */
const shardText = (plan: number, index: number): string => `${plan}#${String(index).padStart(6, "0")}`;

/** What the names in SIDE of a shard's own things begin with. */
export const shardScope = (plan: number, index: number): string => `shard#${shardText(plan, index)}#`;
/** Name in SIDE of why a shard failed. */
export const deadShardName = (plan: number, index: number): string => `dead#${shardText(plan, index)}`;
/** The failed shards of a list, in order of their index. */
export const deadShardRange = (occurrence: Occurrence, plan: number): KeyRange =>
  sideRange(occurrence, `dead#${plan}`);

interface StrideAt {
  readonly occurrence: Occurrence;
  readonly plan: number;
  readonly stride: number;
}

const stridePage = ({ occurrence, plan, stride }: StrideAt): string =>
  `F#${occurrence.subject}#${occurrence.slotKey}#${plan}#${stride}`;

/** One item a partition: the workers of neighbouring shards write to different ones. */
export const bucketKey = (at: StrideAt & { readonly bucket: number }): Key => ({
  pk: `${stridePage(at)}.${at.bucket}`,
  sk: "B",
});
export const pageKey = (at: StrideAt & { readonly bucket: number }): Key => ({ ...bucketKey(at), sk: "P" });
export const strideKey = (at: StrideAt, epoch: number): Key => ({ pk: stridePage(at), sk: `S#${epoch}` });

/** Of LOCK: the attribute that lists the run as a holder. */
export const holderAttribute = (slotKey: string): string => `h#${slotKey}`;

/** Bounds of the sort key for a subject's runs whose slot key lies in the text range, both included. */
export const runRange = (
  subject: string,
  first = "",
  last = "~",
): { readonly pk: string; readonly first: string; readonly last: string } => ({
  pk: subjectKey(subject),
  first: `R#${first}`,
  last: `R#${last}`,
});

export const seriesKey = ({ subject, kind }: { readonly subject: string; readonly kind: string }): Key => ({
  pk: subjectKey(subject),
  sk: `B#${kind}`,
});

/** The slot key in the sort key of a RUN. */
export const slotKeyInSortKey = (sk: string): string => sk.slice(2);
/** The subject in the partition key of anything under a job. */
export const subjectInPartitionKey = (pk: string): string => pk.slice(2);

export const CURSOR_KEY: Key = { pk: "W", sk: "cursor" };
export const CONTROL_KEY: Key = { pk: "W", sk: "control" };
export const SERIES_KEY: Key = { pk: "W", sk: "series" };
export const MANIFEST_KEY: Key = { pk: "W", sk: "manifest" };

export const definitionKey = (subject: string): Key => ({ pk: "D", sk: subject });
export const DEFINITION_RANGE = { pk: "D", first: "a", last: "~" };

/** All jobs are few, and read together; run-time schedules are many. */
export const healthKey = (subject: string): Key =>
  automationIdIn(subject) === undefined ? { pk: "H", sk: subject } : { pk: subjectKey(subject), sk: "H" };
export const subjectInHealthKey = ({ pk, sk }: Key): string => (pk === "H" ? sk : subjectInPartitionKey(pk));
/** Of all jobs. */
export const HEALTH_RANGE = { pk: "H", first: "a", last: "~" };
export const flipKey = (subject: string, n: number): Key => ({
  pk: subjectKey(subject),
  sk: `F#${String(n).padStart(8, "0")}`,
});
/** All flips of a subject, in order of their number. */
export const flipRange = (subject: string) => ({ pk: subjectKey(subject), first: "F#", last: "F#~" });
/** In an OPEN item, in the place of a slot key: look at the job's health. */
export const HEALTH_NOTE = "health";

/** Spreads the looks of one hour over so many partitions, far above what a minute of any user needs. */
const OPEN_PARTS = 8;

const partOf = (text: string, parts: number): number => {
  let sum = 0;
  for (const char of text) sum = (sum * 31 + char.charCodeAt(0)) % 65_521;
  return sum % parts;
};

const openPage = (hour: string, part: number): string => `O#${hour}#${part}`;
const hourOf = (atMs: number): string => isoOf(atMs).slice(0, 13);

export const openKey = ({ subject, slotKey }: Occurrence, lookAtMs: number): Key => ({
  pk: openPage(hourOf(lookAtMs), partOf(`${subject}~${slotKey}`, OPEN_PARTS)),
  sk: `${isoOf(lookAtMs)}#${subject}~${slotKey}`,
});

/** Ranges of keys that hold every look due in [fromMs, untilMs): one per hour and part. */
export const openRanges = (
  fromMs: number,
  untilMs: number,
): readonly { readonly pk: string; readonly first: string; readonly last: string }[] => {
  const bounds = { first: isoOf(fromMs), last: `${isoOf(untilMs - 1)}~` };
  const hours: string[] = [];
  for (let hourMs = Math.floor(fromMs / HOUR_MS) * HOUR_MS; hourMs < untilMs; hourMs += HOUR_MS) {
    hours.push(hourOf(hourMs));
  }
  return hours.flatMap((hour) =>
    Array.from({ length: OPEN_PARTS }, (_, part) => ({ pk: openPage(hour, part), ...bounds })),
  );
};

/** The occurrence in the sort key of an OPEN item. */
export const occurrenceInOpenKey = (sk: string): Occurrence => {
  const [subject = "", slotKey = ""] = sk.slice(sk.indexOf("#") + 1).split("~");
  return { subject, slotKey };
};

/** Keys of the sparse index: newest first within the month of the end. */
export const badMonthOf = (atMs: number): string => isoOf(atMs).slice(0, 7);
export const badKeyOf = (atMs: number, { subject, slotKey }: Occurrence): string =>
  `${isoOf(atMs)}~${subject}~${slotKey}`;

export const poisonKey = (atMs: number, id: string): Key => ({
  pk: `P#${isoOf(atMs).slice(0, 10)}`,
  sk: `${isoOf(atMs)}~${id}`,
});

export const alertKey = (id: string): Key => ({ pk: `A#${id}`, sk: "alert" });
export const alarmKey = (name: string): Key => ({ pk: `A#${name}`, sk: "alarm" });
/** Of ALERT: the attribute that says how far a channel is with it. */
export const deliveryAttribute = (channel: string): string => `to#${channel}`;
/** Alerts in the sparse index: all that wait, and a month's others. */
export const WAITING_ALERTS = "A#waiting";
/** Bounds of the index's sort key for every alert of a partition; DynamoDB takes no empty text for one. */
export const ANY_ALERT = { index: "bad", first: "0", last: "~" } as const;
export const alertMonthOf = (atMs: number): string => `A#${badMonthOf(atMs)}`;
export const alertIndexKey = (atMs: number, id: string): string => `${isoOf(atMs)}~${id}`;

/** A partition of its own gives 3,000 reads a second; at nine in the morning all of them are read at once. */
export const AUTOMATION_PARTS = 64;

const automationPage = (part: number): string => `U#${part}`;
export const automationKey = (id: string): Key => ({
  pk: automationPage(partOf(id, AUTOMATION_PARTS)),
  sk: id,
});
/** A part of all run-time schedules, in order of their ids, after one of them. */
export const automationRange = (part: number, after = ""): KeyRange => ({
  pk: automationPage(part),
  first: rightAfter(after),
  last: "~",
});
export const ownerKey = (owner: string): Key => ({ pk: `V#${owner}`, sk: "owner" });
const OWNED = "a#";
export const ownedAttribute = (id: string): string => `${OWNED}${id}`;
/** Undefined for another attribute of OWNER. */
export const idInOwnedAttribute = (name: string): string | undefined =>
  name.startsWith(OWNED) ? name.slice(OWNED.length) : undefined;

export const AGENDA_KEY: Key = { pk: "W", sk: "agenda" };

/** A text that sorts after the given one and before every other that any key here has. */
const rightAfter = (text: string): string => `${text} `;

const duePage = (minuteMs: number): string => `G#${isoOf(minuteMs).slice(0, 16)}`;
/** Packed by a walk. */
export const packedDueKey = (minuteMs: number, piece: number, n: number): Key => ({
  pk: duePage(minuteMs),
  sk: `P#${String(piece).padStart(6, "0")}#${String(n).padStart(6, "0")}`,
});
/** Entered by whoever created or edited it. */
export const enteredDueKey = (minuteMs: number, id: string): Key => ({
  pk: duePage(minuteMs),
  sk: `E#${id}`,
});
/** What is due in a minute, after a page of it. */
export const dueRange = (minuteMs: number, afterPage = ""): KeyRange => ({
  pk: duePage(minuteMs),
  first: rightAfter(afterPage),
  last: "~",
});

/**
 * How long records are kept, from their claim. Longer than any message can travel (14 days in a queue, 1 in an
 * event's retries), or an old message could run a forgotten occurrence again.
 */
export const RETENTION_MS = 90 * DAY_MS;
/** Deliveries, slots and retries older than that are refused as expired: their record may be gone. */
export const OLDEST_DELIVERY_MS = 30 * DAY_MS;

/** DynamoDB's time to live is in seconds. */
export const expiresAtS = (nowMs: number): number => Math.floor((nowMs + RETENTION_MS) / 1_000);
