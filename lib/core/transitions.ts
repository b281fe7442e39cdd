import type { Occurrence } from "./identity.ts";
import { badKeyOf, badMonthOf, expiresAtS, ITEM_VERSION, runKey } from "./items.ts";
import type { Json } from "./json.ts";
import type { Progress } from "./kept.ts";
import type { Trigger } from "./message.ts";
import {
  absent,
  addMembers,
  all,
  any,
  atMost,
  type Change,
  type Condition,
  equals,
  exists,
  increment,
  lessThan,
  not,
  remove,
  set,
  setOnce,
  type Value,
  type Write,
} from "./write.ts";

/**
 * Every change of a run's state, each one conditional write on its RUN item. The letters T1 to T8 are those of
 * docs/protocol.md. `token` is the owner token: made once per try, so that a write which the SDK repeated after a
 * lost answer recognises its own success.
 */

/** A run's state and what belongs to it, as attributes of RUN. */
interface Ending {
  readonly occurrence: Occurrence;
  readonly atMs: number;
}

/** Listed in the sparse index: everything that a person may have to look at. */
const listedAsBad = ({ occurrence, atMs }: Ending): readonly Change[] => [
  set("badMonth", badMonthOf(atMs)),
  set("badKey", badKeyOf(atMs, occurrence)),
];

/** What every record carries from its first write on; a later writer leaves it as it is. */
const born = (nowMs: number, trigger: Trigger): readonly Change[] => [
  setOnce("v", ITEM_VERSION),
  setOnce("trigger", trigger),
  setOnce("claimedAtMs", nowMs),
  setOnce("expiresAtS", expiresAtS(nowMs)),
];

const optional = (name: string, value: Value | undefined): readonly Change[] =>
  value === undefined ? [] : [set(name, value)];

export interface Claim {
  readonly occurrence: Occurrence;
  readonly token: string;
  readonly nowMs: number;
  readonly trigger: Trigger;
  readonly input?: Json;
  /** The input lies in SIDE, being too big for RUN. */
  readonly sideInput?: boolean;
  readonly reason?: string;
}

/** T1: the one caller that makes the record wins. */
export const claim = ({ occurrence, token, nowMs, trigger, input, sideInput, reason }: Claim): Write => ({
  key: runKey(occurrence),
  condition: absent("st"),
  changes: [
    set("st", "queued"),
    set("ep", 1),
    set("own", token),
    ...born(nowMs, trigger),
    ...optional("input", input),
    ...optional("sideInput", sideInput),
    ...optional("reason", reason),
  ],
});

/** At most so many tokens are kept: the count says "again and again", and RUN stays small. */
const MAX_DUPLICATES = 16;

/** A delivery that lost against an earlier one, counted once however often the write is repeated. */
export const countDuplicate = (occurrence: Occurrence, token: string, nowMs: number): Write => ({
  key: runKey(occurrence),
  changes: [addMembers("dup", token), setOnce("expiresAtS", expiresAtS(nowMs))],
});

export const hasRoomForDuplicate = (duplicates: Value | undefined): boolean =>
  !(duplicates instanceof Set) || duplicates.size < MAX_DUPLICATES;

export interface Start {
  readonly occurrence: Occurrence;
  readonly epoch: number;
  readonly token: string;
  readonly nowMs: number;
  /** From a clock read before the call, plus the lease. */
  readonly leaseUntilMs: number;
  /** The job has a lock, so its claim made no record: the start makes it. */
  readonly locked: boolean;
  readonly trigger: Trigger;
  readonly queuedAtMs: number;
  readonly input?: Json;
  /** The input that came with the message lies in SIDE. */
  readonly sideInput?: boolean;
  readonly reason?: string;
}

/** T2: the lease of the next attempt, with a higher fence. */
export const start = (wanted: Start): Write => {
  const { occurrence, epoch, token, nowMs, leaseUntilMs, locked } = wanted;
  const due = all(
    equals("ep", epoch),
    any(equals("st", "queued"), all(equals("st", "waiting"), atMost("nextAttemptAtMs", nowMs))),
  );
  return {
    key: runKey(occurrence),
    condition: locked && epoch === 1 ? any(due, absent("st")) : due,
    changes: [
      set("st", "running"),
      setOnce("ep", epoch),
      increment("fence", 1),
      set("own", token),
      set("leaseUntilMs", leaseUntilMs),
      setOnce("startedAtMs", nowMs),
      set("attemptAtMs", nowMs),
      remove("nextAttemptAtMs"),
      ...born(wanted.queuedAtMs, wanted.trigger),
      ...(wanted.input === undefined ? [] : [setOnce("input", wanted.input)]),
      ...(wanted.sideInput === undefined ? [] : [setOnce("sideInput", wanted.sideInput)]),
      ...(wanted.reason === undefined ? [] : [setOnce("reason", wanted.reason)]),
    ],
  };
};

/** The last few attempts, kept in the record for people. */
export interface Try {
  readonly n: number;
  /** Of the run's work, where it has more than one; from 1. */
  readonly piece?: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly outcome: string;
  readonly error?: string;
}

const KEPT_TRIES = 5;

/** The list to store after one more attempt: `tries` of RUN, oldest first. */
export const triesWith = (
  tries: Value | undefined,
  { n, piece, startedAtMs, endedAtMs, outcome, error }: Try,
): Value => {
  const entry = {
    n,
    ...(piece === undefined ? {} : { p: piece }),
    s: startedAtMs,
    e: endedAtMs,
    o: outcome,
    ...(error === undefined ? {} : { m: error }),
  };
  return [...(Array.isArray(tries) ? tries : []), entry].slice(-KEPT_TRIES);
};

export interface ShortError {
  readonly name: string;
  readonly message: string;
}

export interface TakeOver {
  readonly occurrence: Occurrence;
  readonly token: string;
  /** Of the attempt whose lease ended. */
  readonly seenFence: number;
  readonly nowMs: number;
  readonly clockBoundMs: number;
  readonly tries: Value;
}

/** Judged by the table on the stored lease, never on what was read before. */
const leaseEnded = ({ seenFence, nowMs, clockBoundMs }: TakeOver): Condition =>
  all(equals("st", "running"), equals("fence", seenFence), lessThan("leaseUntilMs", nowMs - clockBoundMs));

/** T3, going on: the lost attempt is counted as a crash, and the next one begins. */
export const takeOverAndRun = (wanted: TakeOver, leaseUntilMs: number): Write => ({
  key: runKey(wanted.occurrence),
  condition: leaseEnded(wanted),
  changes: [
    increment("fence", 1),
    increment("crashes", 1),
    set("own", wanted.token),
    set("leaseUntilMs", leaseUntilMs),
    set("attemptAtMs", wanted.nowMs),
    set("tries", wanted.tries),
  ],
});

/** T3, ending: asked to stop, left for a person, or lost once too often. */
export const takeOverAndEnd = (
  wanted: TakeOver,
  end: {
    readonly state: "cancelled" | "parked" | "dead";
    readonly reason: string;
    readonly error: ShortError;
  },
): Write => ({
  key: runKey(wanted.occurrence),
  condition: leaseEnded(wanted),
  changes: [
    set("st", end.state),
    increment("fence", 1),
    increment("crashes", 1),
    set("own", wanted.token),
    set("endedAtMs", wanted.nowMs),
    set("reason", end.reason),
    set("error", { ...end.error }),
    set("tries", wanted.tries),
    remove("leaseUntilMs"),
    ...listedAsBad({ occurrence: wanted.occurrence, atMs: wanted.nowMs }),
  ],
});

/** What a worker holds while its attempt runs. */
export interface Holding {
  readonly occurrence: Occurrence;
  readonly fence: number;
}

const held = (fence: number): Condition => all(equals("st", "running"), equals("fence", fence));

/** T4: refused = the lease is lost. What the handler says of its progress goes with it. */
export const renew = ({ occurrence, fence }: Holding, leaseUntilMs: number, progress?: Progress): Write => ({
  key: runKey(occurrence),
  condition: held(fence),
  changes: [set("leaseUntilMs", leaseUntilMs), ...progressed(progress)],
});

const progressed = (progress: Progress | undefined): readonly Change[] =>
  progress === undefined ? [] : [set("progress", { ...progress })];

export interface Finish {
  readonly state: "succeeded" | "skipped" | "cancelled" | "dead";
  readonly nowMs: number;
  readonly tries: Value;
  readonly result?: Json;
  /** The result lies in SIDE. */
  readonly sideResult?: boolean;
  readonly reason?: string;
  readonly error?: ShortError;
  readonly progress?: Progress;
  /** The attempt failed, and is counted. */
  readonly failed: boolean;
}

/** T5: the end of the run, by the only attempt that may say so. */
export const finish = ({ occurrence, fence }: Holding, end: Finish): Write => ({
  key: runKey(occurrence),
  condition: held(fence),
  changes: [
    set("st", end.state),
    set("endedAtMs", end.nowMs),
    set("tries", end.tries),
    remove("leaseUntilMs"),
    ...optional("result", end.result),
    ...optional("sideResult", end.sideResult === true ? fence : undefined),
    ...optional("reason", end.reason),
    ...progressed(end.progress),
    ...(end.error === undefined
      ? [remove("error"), remove("sideError")]
      : [set("error", { ...end.error }), set("sideError", fence)]),
    ...(end.failed ? [increment("attempts", 1)] : []),
    ...(end.state === "dead" || end.state === "cancelled"
      ? listedAsBad({ occurrence, atMs: end.nowMs })
      : []),
  ],
});

export interface FailedAttempt {
  readonly nextAttemptAtMs: number;
  readonly tries: Value;
  readonly error: ShortError;
  readonly progress?: Progress;
}

/** T6: the attempt failed, and another may follow; refused also when somebody asked the run to stop. */
export const failAttempt = ({ occurrence, fence }: Holding, failure: FailedAttempt): Write => ({
  key: runKey(occurrence),
  condition: all(held(fence), absent("cancelAtMs")),
  changes: [
    set("st", "waiting"),
    increment("attempts", 1),
    set("nextAttemptAtMs", failure.nextAttemptAtMs),
    set("tries", failure.tries),
    set("error", { ...failure.error }),
    set("sideError", fence),
    ...progressed(failure.progress),
    remove("leaseUntilMs"),
  ],
});

/** T7: put off by the handler, without counting an attempt; refused also when somebody asked the run to stop. */
export const snooze = (
  { occurrence, fence }: Holding,
  until: { readonly nextAttemptAtMs: number; readonly tries: Value; readonly progress?: Progress },
): Write => ({
  key: runKey(occurrence),
  condition: all(held(fence), absent("cancelAtMs")),
  changes: [
    set("st", "waiting"),
    increment("snoozes", 1),
    set("nextAttemptAtMs", until.nextAttemptAtMs),
    set("tries", until.tries),
    ...progressed(until.progress),
    remove("leaseUntilMs"),
  ],
});

/**
 * T7: this piece of the work is done, and the next one may start. It has the attempts and crashes that a run has:
 * what got on is not charged for what went wrong before. Refused also when somebody asked the run to stop.
 */
export const goOn = (
  { occurrence, fence }: Holding,
  piece: { readonly nowMs: number; readonly tries: Value; readonly progress?: Progress },
): Write => ({
  key: runKey(occurrence),
  condition: all(held(fence), absent("cancelAtMs")),
  changes: [
    set("st", "queued"),
    increment("cont", 1),
    set("contAtMs", piece.nowMs),
    set("attempts", 0),
    set("crashes", 0),
    set("tries", piece.tries),
    ...progressed(piece.progress),
    ...["leaseUntilMs", "error", "sideError", "nudges"].map((name) => remove(name)),
  ],
});

/** After T5 was refused: the late result is counted, and touches nothing else. */
export const countStaleResult = (occurrence: Occurrence): Write => ({
  key: runKey(occurrence),
  changes: [increment("staleResults", 1)],
});

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
  const { occurrence, epoch, token, nowMs, locked, parkedToo } = mark;
  const states = ["queued", "waiting", ...(parkedToo ? ["parked"] : [])];
  const open = all(equals("ep", epoch), any(...states.map((state) => equals("st", state))));
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
export const reopen = (occurrence: Occurrence, seenEpoch: number, token: string, nowMs: number): Write => ({
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
    ...[
      "cancelAtMs",
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
export const askToStop = (occurrence: Occurrence, epoch: number, nowMs: number): Write => ({
  key: runKey(occurrence),
  condition: all(equals("st", "running"), equals("ep", epoch), absent("cancelAtMs")),
  changes: [set("cancelAtMs", nowMs)],
});

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
