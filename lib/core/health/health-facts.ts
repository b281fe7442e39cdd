import { isManualKey, type Occurrence, slotMsOf } from "../identity.ts";
import type { JobDefinition } from "../jobs/job.ts";
import { isMonitor } from "../monitors/monitor.ts";
import { isTerminal, RUN_STATES, type RunState } from "../runs/run.ts";
import { type Item, isMap } from "../write.ts";

/** What one look at a run's record says of its job's health. */
export interface Fact {
  readonly slotKey: string;
  readonly epoch: number;
  /** A claimed run of a locked job has no record before it starts: `queued`. */
  readonly state: RunState;
  /** Its end counts: a failure in a row, a success that heals. */
  readonly counts: boolean;
  /** Somebody fills in old slots: neither late nor news. */
  readonly isBackfill: boolean;
  /** The slot; of a run that somebody asked for, when he did. */
  readonly dueMs: number;
  /** Of this attempt set; absent = not started. */
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
  /** The end of its lease, on any clock. */
  readonly leaseOverMs?: number;
  /** More than one where a record stands for slots in a row. */
  readonly slots: number;
  readonly reason?: string;
  readonly error?: { readonly name: string; readonly message: string };
}

interface Looking {
  /** The job's schedule fires in this stage. */
  readonly fires: boolean;
  readonly clockBoundMs: number;
}

const numberIn = (item: Item | undefined, name: string): number | undefined => {
  const value = item?.[name];
  return typeof value === "number" ? value : undefined;
};

const textIn = (item: Item | undefined, name: string): string | undefined => {
  const value = item?.[name];
  return typeof value === "string" ? value : undefined;
};

const errorIn = (item: Item | undefined): Fact["error"] => {
  const stored = item?.["error"];
  if (!isMap(stored)) return undefined;
  return { name: String(stored["name"] ?? "Error"), message: String(stored["message"] ?? "") };
};

/** Of the newest attempt set: one that was asked for again has not started because an earlier one had. */
const startOf = (item: Item | undefined): number | undefined => {
  const reopenedAtMs = numberIn(item, "reopenedAtMs");
  if (reopenedAtMs === undefined) return numberIn(item, "startedAtMs");
  const attemptAtMs = numberIn(item, "attemptAtMs");
  return attemptAtMs !== undefined && attemptAtMs >= reopenedAtMs ? attemptAtMs : undefined;
};

/** The schedule's own events may come late; who asks for a run is not late before he asks. */
const dueOf = ({ slotKey }: Occurrence, item: Item | undefined): number => {
  const slotMs = slotMsOf(slotKey);
  const reopenedAtMs = numberIn(item, "reopenedAtMs");
  if (reopenedAtMs !== undefined) return Math.max(slotMs, reopenedAtMs);
  const trigger = textIn(item, "trigger");
  const isOwn = trigger === undefined || trigger === "schedule" || trigger === "watchdog";
  return isOwn ? slotMs : Math.max(slotMs, numberIn(item, "claimedAtMs") ?? slotMs);
};

/**
 * A run by hand with a key of its own may have any input, so it says nothing of the schedule; of a job that runs in
 * no other way it says everything.
 */
const countsOf = (slotKey: string, fires: boolean): boolean => !fires || !isManualKey(slotKey);

/** @param run RUN; undefined, or without a state, for what is claimed and not started, or could not be claimed */
export const factOf = (
  occurrence: Occurrence,
  run: Item | undefined,
  { fires, clockBoundMs }: Looking,
): Fact => {
  const state = RUN_STATES.find((known) => known === run?.["st"]) ?? "queued";
  const startedAtMs = startOf(run);
  const endedAtMs = isTerminal(state) ? numberIn(run, "endedAtMs") : undefined;
  const leaseUntilMs = state === "running" ? numberIn(run, "leaseUntilMs") : undefined;
  const [reason, error] = [textIn(run, "reason"), errorIn(run)];
  return {
    slotKey: occurrence.slotKey,
    epoch: numberIn(run, "ep") ?? 1,
    state,
    counts: countsOf(occurrence.slotKey, fires),
    isBackfill: run?.["trigger"] === "backfill",
    dueMs: dueOf(occurrence, run),
    slots: numberIn(run, "rangeCount") ?? 1,
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(endedAtMs === undefined ? {} : { endedAtMs }),
    ...(leaseUntilMs === undefined ? {} : { leaseOverMs: leaseUntilMs + clockBoundMs }),
    ...(reason === undefined ? {} : { reason }),
    ...(error === undefined ? {} : { error }),
  };
};

const FAILED: ReadonlySet<RunState> = new Set(["dead", "missed", "expired"]);

/** It did not take effect, and nobody decided so. */
export const isFailed = ({ state }: Pick<Fact, "state">): boolean => FAILED.has(state);
export const isOver = ({ state }: Pick<Fact, "state">): boolean => isTerminal(state);

/** When a run that is not over becomes late, or overruns, if nothing happens before; undefined = never. */
export const judgedAtMs = (job: JobDefinition, fact: Fact): number | undefined => {
  if (isOver(fact) || fact.state === "parked") return undefined;
  if (fact.startedAtMs !== undefined) {
    const { finishWithinMs } = job.alerts;
    return finishWithinMs === undefined ? undefined : fact.startedAtMs + finishWithinMs;
  }
  return fact.isBackfill ? undefined : fact.dueMs + job.graceMs;
};

/** It ended later than the job's author likes. */
export const isSlow = ({ alerts }: JobDefinition, { startedAtMs, endedAtMs, state }: Fact): boolean =>
  alerts.slowAfterMs !== undefined &&
  state === "succeeded" &&
  startedAtMs !== undefined &&
  endedAtMs !== undefined &&
  endedAtMs - startedAtMs > alerts.slowAfterMs;

/** It did start, and too late; a run that was asked for again has its reasons. */
export const startedLate = ({ graceMs }: JobDefinition, fact: Fact): boolean =>
  !fact.isBackfill &&
  fact.epoch === 1 &&
  fact.startedAtMs !== undefined &&
  fact.startedAtMs > fact.dueMs + graceMs;

export type TroubleKind = "late" | "stuck" | "overrun" | "parked";

/** Its worker gives no sign of life; what runs elsewhere has none. */
export const isStuck = (job: JobDefinition, fact: Fact, nowMs: number): boolean =>
  !isMonitor(job) && fact.leaseOverMs !== undefined && fact.leaseOverMs < nowMs;

/** What is the matter with a run that is not over. */
export const troublesOf = (job: JobDefinition, fact: Fact, nowMs: number): readonly TroubleKind[] => {
  if (isOver(fact)) return [];
  if (fact.state === "parked") return ["parked"];
  const atMs = judgedAtMs(job, fact);
  const isTooLong = atMs !== undefined && atMs <= nowMs;
  const tooLong: TroubleKind = fact.startedAtMs === undefined ? "late" : "overrun";
  return [...(isStuck(job, fact, nowMs) ? (["stuck"] as const) : []), ...(isTooLong ? [tooLong] : [])];
};

/** Is there anything in it that a healthy job's watchdog would have to think about? */
export const isNotable = (job: JobDefinition, fact: Fact, nowMs: number): boolean =>
  isFailed(fact) || isSlow(job, fact) || startedLate(job, fact) || troublesOf(job, fact, nowMs).length > 0;

/** Of two looks at the same run, the later one: a newer attempt set, or the end of it. */
const laterOf = (one: Fact, other: Fact): Fact => {
  if (one.epoch !== other.epoch) return one.epoch > other.epoch ? one : other;
  return isOver(one) && !isOver(other) ? one : other;
};

/** One fact a run, newest slot first. */
export const merged = (...looks: readonly (readonly Fact[])[]): readonly Fact[] => {
  const bySlot = new Map<string, Fact>();
  for (const fact of looks.flat()) {
    const known = bySlot.get(fact.slotKey);
    bySlot.set(fact.slotKey, known === undefined ? fact : laterOf(known, fact));
  }
  return [...bySlot.values()].sort((left, right) => (left.slotKey < right.slotKey ? 1 : -1));
};
