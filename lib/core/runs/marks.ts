import type { Occurrence } from "../identity.ts";
import { expiresAtS, runKey } from "../items.ts";
import {
  absent,
  all,
  any,
  type Change,
  equals,
  exists,
  type Item,
  increment,
  lessThan,
  not,
  remove,
  set,
  setOnce,
  type Write,
} from "../write.ts";
import type { Trigger } from "./message.ts";
import { born, listedAsBad, optional } from "./run-attributes.ts";
import type { SeriesKind } from "./series.ts";
import type { ShortError } from "./transitions.ts";

/**
 * What whoever does not hold a run may write on its record: marks (T8), a wish to stop (T12), a person's acts, and the
 * watchdog's nudge. What its holder writes stands in transitions.ts.
 */

export interface Mark {
  readonly occurrence: Occurrence;
  readonly state: "skipped" | "missed" | "expired";
  readonly nowMs: number;
  readonly trigger: Trigger;
  readonly reason: string;
  readonly blockedBy?: string;
  /** This record stands for so many slots in a row, from that one on. */
  readonly range?: { readonly count: number; readonly fromMs: number };
}

const marked = (mark: Mark): readonly Change[] => [
  set("st", mark.state),
  setOnce("ep", 1),
  set("endedAtMs", mark.nowMs),
  set("reason", mark.reason),
  ...born(mark.nowMs, mark.trigger),
  ...optional("blockedBy", mark.blockedBy),
  ...optional("rangeCount", mark.range?.count),
  ...optional("rangeFromMs", mark.range?.fromMs),
  ...(mark.state === "skipped" ? [] : listedAsBad({ occurrence: mark.occurrence, atMs: mark.nowMs })),
];

/** T8 for an occurrence that nobody has asked for: never over a record, not even a queued one. */
export const markAbsent = (mark: Mark): Write => ({
  key: runKey(mark.occurrence),
  condition: absent("st"),
  changes: marked(mark),
});

/** T8 over a queued run too, as long as it was never started. */
export const markNeverStarted = (mark: Mark, epoch: number): Write => ({
  key: runKey(mark.occurrence),
  condition: any(absent("st"), all(equals("st", "queued"), equals("ep", epoch), absent("fence"))),
  changes: marked(mark),
});

export interface MarkDead {
  readonly occurrence: Occurrence;
  readonly epoch: number;
  readonly token: string;
  readonly nowMs: number;
  readonly clockBoundMs: number;
  readonly state: "dead" | "parked" | "cancelled";
  readonly reason: string;
  readonly error: ShortError;
}

/** T8 from outside: a run whose attempts are used up, or whose job is gone, and that no live lease holds. */
export const markDead = (mark: MarkDead): Write => {
  const open = all(equals("ep", mark.epoch), any(equals("st", "queued"), equals("st", "waiting")));
  const lost = all(
    equals("ep", mark.epoch),
    equals("st", "running"),
    lessThan("leaseUntilMs", mark.nowMs - mark.clockBoundMs),
  );
  return {
    key: runKey(mark.occurrence),
    condition: any(open, lost),
    changes: [
      set("st", mark.state),
      set("own", mark.token),
      increment("fence", 1),
      set("endedAtMs", mark.nowMs),
      set("reason", mark.reason),
      set("error", { ...mark.error }),
      remove("leaseUntilMs"),
      remove("nextAttemptAtMs"),
      ...listedAsBad({ occurrence: mark.occurrence, atMs: mark.nowMs }),
    ],
  };
};

export interface MarkCancelled {
  readonly occurrence: Occurrence;
  readonly epoch: number;
  /** As the record was read: no attempt has begun since. Undefined = none ever did. */
  readonly seenFence: number | undefined;
  readonly token: string;
  readonly nowMs: number;
  readonly trigger: Trigger;
  readonly reason: string;
  /** The job has a lock, so a claimed run has no record before it starts. */
  readonly locked: boolean;
  /** A person decided: then a parked run ends too. */
  readonly parkedToo: boolean;
}

/** T8, cancelled: a run that nobody carries out at this instant. A running one is asked to stop (T12). */
export const markCancelled = (mark: MarkCancelled): Write => {
  const { occurrence, epoch, seenFence, token, nowMs, locked, parkedToo } = mark;
  const states = ["queued", "waiting", ...(parkedToo ? ["parked"] : [])];
  const asSeen = seenFence === undefined ? absent("fence") : equals("fence", seenFence);
  const open = all(equals("ep", epoch), asSeen, any(...states.map((state) => equals("st", state))));
  return {
    key: runKey(occurrence),
    condition: locked && epoch === 1 ? any(open, absent("st")) : open,
    changes: [
      set("st", "cancelled"),
      setOnce("ep", epoch),
      set("own", token),
      increment("fence", 1),
      set("endedAtMs", nowMs),
      set("reason", mark.reason),
      remove("leaseUntilMs"),
      remove("nextAttemptAtMs"),
      ...born(nowMs, mark.trigger),
      ...listedAsBad({ occurrence, atMs: nowMs }),
    ],
  };
};

/** Everything that a person may try again. From `succeeded` there is no way out. */
const RETRIABLE_STATES = ["dead", "parked", "skipped", "missed", "expired", "cancelled"] as const;

/** Retry: the same run, as a new attempt set. The fence stays, so that nothing of an earlier set can write. */
export const reopen = (
  occurrence: Occurrence,
  seenEpoch: number,
  { token, nowMs, series }: { readonly token: string; readonly nowMs: number; readonly series?: SeriesKind },
): Write => ({
  key: runKey(occurrence),
  condition: all(equals("ep", seenEpoch), any(...RETRIABLE_STATES.map((state) => equals("st", state)))),
  changes: [
    set("st", "queued"),
    set("ep", seenEpoch + 1),
    set("attempts", 0),
    set("crashes", 0),
    set("own", token),
    set("reopenedAtMs", nowMs),
    // Kept from now, not from its first claim: a message of this set may travel as long as any other.
    set("expiresAtS", expiresAtS(nowMs)),
    series === undefined ? remove("series") : set("series", series),
    ...[
      "cancelAtMs",
      "cancelWhy",
      "leaseUntilMs",
      "nextAttemptAtMs",
      "endedAtMs",
      "reason",
      "blockedBy",
      "error",
      "sideError",
      "badMonth",
      "badKey",
      "nudges",
      "snoozes",
      "cont",
      "contAtMs",
      // Of a run with shards the list stays: the next attempt sends what of it is not done.
      ...["ph", "full", "chosen", "joinAtMs", "seen", "seenAtMs"],
    ].map((name) => remove(name)),
  ],
});

/** A bad ending that somebody has seen: off the list, and still in the history. */
export const dismiss = (occurrence: Occurrence, nowMs: number): Write => ({
  key: runKey(occurrence),
  condition: all(exists("badKey"), not(equals("st", "parked"))),
  changes: [set("dismissedAtMs", nowMs), remove("badMonth"), remove("badKey")],
});

/** T12: ask a running run to stop; its holder sees it at the next renewal. */
export const askToStop = (
  occurrence: Occurrence,
  epoch: number,
  { nowMs, reason }: { readonly nowMs: number; readonly reason: string },
): Write => ({
  key: runKey(occurrence),
  condition: all(equals("st", "running"), equals("ep", epoch), absent("cancelAtMs")),
  changes: [set("cancelAtMs", nowMs), set("cancelWhy", reason)],
});

/** Why somebody asked the run to stop; undefined = nobody did. */
export const stopReason = (run: Item | undefined): string | undefined =>
  run?.["cancelAtMs"] === undefined ? undefined : String(run["cancelWhy"] ?? "cancelled");

/** Before a message is sent once more: refused when somebody else has just sent it. */
export const nudge = (
  occurrence: Occurrence,
  seenAtMs: number | undefined,
  { nowMs, token }: { readonly nowMs: number; readonly token: string },
): Write => ({
  key: runKey(occurrence),
  condition: seenAtMs === undefined ? absent("nudgedAtMs") : equals("nudgedAtMs", seenAtMs),
  changes: [set("nudgedAtMs", nowMs), set("nudgedBy", token), increment("nudges", 1)],
});
