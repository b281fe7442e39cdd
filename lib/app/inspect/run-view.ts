import type { Occurrence } from "../../core/identity.ts";
import { automationIdIn, runIdOf, slotMsOf } from "../../core/identity.ts";
import { slotKeyInSortKey, subjectInPartitionKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { Json } from "../../core/json.ts";
import { TRIGGERS, type Trigger } from "../../core/runs/message.ts";
import {
  type AttemptView,
  isTerminal,
  RUN_STATES,
  type RunState,
  type RunView,
  type ShardsView,
} from "../../core/runs/run.ts";
import { isUnheld, phaseOf } from "../../core/shards/fan-out.ts";
import { shortIsoOf } from "../../core/time.ts";
import { type Item, isMap, type Value } from "../../core/write.ts";
import { attemptPlace, pieceNumber } from "../path/visit.ts";

/** What of the job a view needs; undefined for the runs of a job that no longer exists. */
type KnownJob = Pick<JobDefinition, "name" | "input"> | undefined;

/** Values that lie beside RUN because they are too big for it; only what was read. */
export interface SideValues {
  readonly shards?: ShardsView;
  readonly input?: Json;
  readonly result?: Json;
  readonly error?: Json;
}

const isList = (value: Value | undefined): value is readonly Value[] => Array.isArray(value);

const numberIn = (item: Item, name: string): number | undefined => {
  const value = item[name];
  return typeof value === "number" ? value : undefined;
};

const textIn = (item: Item, name: string): string | undefined => {
  const value = item[name];
  return typeof value === "string" ? value : undefined;
};

const jsonOf = (value: Value | undefined): Json => {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") return value;
  if (value instanceof Set) return [...value].sort();
  if (isList(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, jsonOf(inner)]));
};

const isoOrNull = (atMs: number | undefined): string | null => (atMs === undefined ? null : shortIsoOf(atMs));

const between = (fromMs: number | undefined, untilMs: number | undefined): number | null =>
  fromMs === undefined || untilMs === undefined ? null : untilMs - fromMs;

/** The state of a RUN item; undefined = the item only counts deliveries, and is no record yet. */
export const stateOf = (item: Item | undefined): RunState | undefined =>
  RUN_STATES.find((state) => state === item?.["st"]);

export const occurrenceOfItem = (item: Item): Occurrence => ({
  subject: subjectInPartitionKey(String(item["pk"])),
  slotKey: slotKeyInSortKey(String(item["sk"])),
});

export const duplicatesOf = (item: Item | undefined): number => {
  const tokens = item?.["dup"];
  return tokens instanceof Set ? tokens.size : 0;
};

const triggerOf = (item: Item): Trigger =>
  TRIGGERS.find((trigger) => trigger === item["trigger"]) ?? "schedule";

/** Of a run that is split each attempt has a part; its record names the join. */
const partOf = (item: Item, named: string | undefined): Pick<AttemptView, "part"> => {
  if (named === "join") return { part: "join" };
  return phaseOf(item) === "list" ? {} : { part: "shards" };
};

const pastAttempts = (item: Item): readonly AttemptView[] => {
  const tries = item["tries"];
  if (!isList(tries)) return [];
  return tries.filter(isMap).map((attempt) => {
    const startMs = numberIn(attempt, "startMs") ?? 0;
    const error = textIn(attempt, "error");
    const set = numberIn(attempt, "set");
    const piece = numberIn(attempt, "piece");
    return {
      n: numberIn(attempt, "n") ?? 0,
      ...(set === undefined ? {} : { set }),
      ...(piece === undefined ? {} : { piece }),
      ...partOf(item, textIn(attempt, "part")),
      startedAt: shortIsoOf(startMs),
      endedAt: shortIsoOf(startMs + (numberIn(attempt, "tookMs") ?? 0)),
      outcome: textIn(attempt, "outcome") ?? "unknown",
      ...(error === undefined ? {} : { error }),
    };
  });
};

/** The attempt that holds the lease is not among the tries yet. */
const attemptsOf = (item: Item): readonly AttemptView[] => {
  const past = pastAttempts(item);
  const startedAtMs = numberIn(item, "attemptAtMs");
  // Between its parts nobody holds a run that is split.
  if (stateOf(item) !== "running" || startedAtMs === undefined || isUnheld(item)) return past;
  const { part, ...place } = attemptPlace(item);
  const now = { ...place, ...partOf(item, part), startedAt: shortIsoOf(startedAtMs), outcome: "running" };
  return [...past, now];
};

const errorOf = (item: Item, side: Json | undefined): RunView["error"] => {
  const stored = item["error"];
  if (!isMap(stored)) return undefined;
  const full = isMap(side) ? side : {};
  const stack = typeof side === "string" ? side : textIn(full, "stack");
  return {
    name: textIn(stored, "name") ?? "Error",
    // The record holds a short form; the whole text lies beside it.
    message: textIn(full, "message") ?? textIn(stored, "message") ?? "",
    ...(stack === undefined ? {} : { stack }),
  };
};

const progressIn = (item: Item): RunView["progress"] => {
  const stored = item["progress"];
  const done = isMap(stored) ? numberIn(stored, "done") : undefined;
  const total = isMap(stored) ? numberIn(stored, "total") : undefined;
  return done === undefined ? undefined : { done, ...(total === undefined ? {} : { total }) };
};

const rangeOf = (item: Item): RunView["range"] => {
  const count = numberIn(item, "rangeCount");
  const fromMs = numberIn(item, "rangeFromMs");
  return count === undefined || fromMs === undefined ? undefined : { count, from: shortIsoOf(fromMs) };
};

const shardsIn = ({ shards }: SideValues): Pick<RunView, "shards"> =>
  shards === undefined ? {} : { shards };

const ownerOf = ({ subject }: Occurrence, job: KnownJob): Pick<RunView, "job" | "automation"> => {
  const automation = automationIdIn(subject);
  return { job: job?.name ?? subject, ...(automation === undefined ? {} : { automation }) };
};

/**
 * A RUN item with a state, as people see it. Values that lie beside it and were not read are null; a run without
 * an input of its own shows its job's.
 */
export const runViewOf = (item: Item, job: KnownJob, side: SideValues = {}): RunView => {
  const occurrence = occurrenceOfItem(item);
  const slotMs = slotMsOf(occurrence.slotKey);
  const state = stateOf(item) ?? "queued";
  const startedAtMs = numberIn(item, "startedAtMs");
  const endedAtMs = isTerminal(state) ? numberIn(item, "endedAtMs") : undefined;
  const reason = textIn(item, "reason");
  const blockedBy = textIn(item, "blockedBy");
  const error = errorOf(item, side.error);
  const range = rangeOf(item);
  const progress = progressIn(item);
  const { piece: pieces } = pieceNumber(item);
  const nextAttemptAtMs = state === "waiting" ? numberIn(item, "nextAttemptAtMs") : undefined;
  const ownInput = item["input"] === undefined ? undefined : jsonOf(item["input"]);
  return {
    runId: runIdOf(occurrence),
    ...ownerOf(occurrence, job),
    slot: shortIsoOf(slotMs),
    trigger: triggerOf(item),
    state,
    ...(reason === undefined ? {} : { reason }),
    ...(blockedBy === undefined ? {} : { blockedBy }),
    attempts: attemptsOf(item),
    queuedAt: isoOrNull(numberIn(item, "claimedAtMs")),
    startedAt: isoOrNull(startedAtMs),
    ...(nextAttemptAtMs === undefined ? {} : { nextAttemptAt: shortIsoOf(nextAttemptAtMs) }),
    finishedAt: isoOrNull(endedAtMs),
    durationMs: between(startedAtMs, endedAtMs),
    latenessMs: between(slotMs, startedAtMs),
    duplicates: duplicatesOf(item),
    input: item["sideInput"] === true ? (side.input ?? null) : (ownInput ?? job?.input ?? null),
    result: side.result ?? jsonOf(item["result"]),
    ...(progress === undefined ? {} : { progress }),
    ...shardsIn(side),
    ...(pieces === undefined ? {} : { pieces }),
    ...(error === undefined ? {} : { error }),
    ...(range === undefined ? {} : { range }),
  };
};

export interface Unstarted {
  readonly occurrence: Occurrence;
  readonly job: KnownJob;
  readonly trigger: Trigger;
  readonly queuedAtMs: number | undefined;
  readonly duplicates: number;
  readonly reason?: string;
}

/** A run that its job's lock lists, and that has no record of its own before it starts. */
export const queuedViewOf = ({
  occurrence,
  job,
  trigger,
  queuedAtMs,
  duplicates,
  reason,
}: Unstarted): RunView => ({
  runId: runIdOf(occurrence),
  ...ownerOf(occurrence, job),
  slot: shortIsoOf(slotMsOf(occurrence.slotKey)),
  trigger,
  state: "queued",
  ...(reason === undefined ? {} : { reason }),
  attempts: [],
  queuedAt: isoOrNull(queuedAtMs),
  startedAt: null,
  finishedAt: null,
  durationMs: null,
  latenessMs: null,
  duplicates,
  input: job?.input ?? null,
  result: null,
});
