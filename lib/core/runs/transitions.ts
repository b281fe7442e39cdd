import type { Occurrence } from "../identity.ts";
import { expiresAtS, runKey } from "../items.ts";
import type { Json } from "../json.ts";
import {
  absent,
  addMembers,
  all,
  any,
  atMost,
  type Change,
  type Condition,
  equals,
  increment,
  lessThan,
  remove,
  set,
  setOnce,
  type Value,
  type Write,
} from "../write.ts";
import type { Progress } from "./kept.ts";
import type { Trigger } from "./message.ts";
import { born, listedAsBad, optional } from "./run-attributes.ts";
import type { SeriesKind } from "./series.ts";

/**
 * From the claim of a run to its end: what its claimant and its holders write, each change one conditional write on
 * its RUN item. What others may write on it stands in marks.ts. The letters T1 to T7 are those of docs/protocol.md.
 * `token` is the owner token: made once per try, so that a write which the SDK repeated after a lost answer
 * recognises its own success.
 */

export interface Claim {
  readonly occurrence: Occurrence;
  readonly token: string;
  readonly nowMs: number;
  readonly trigger: Trigger;
  readonly input?: Json;
  /** The input lies in SIDE, being too big for RUN. */
  readonly sideInput?: boolean;
  readonly reason?: string;
  /** The series that asked for it. */
  readonly series?: SeriesKind;
}

/** T1: the one caller that makes the record wins. */
export const claim = ({ occurrence, token, nowMs, trigger, ...wanted }: Claim): Write => ({
  key: runKey(occurrence),
  condition: absent("st"),
  changes: [
    set("st", "queued"),
    set("ep", 1),
    set("own", token),
    ...born(nowMs, trigger),
    ...optional("input", wanted.input),
    ...optional("sideInput", wanted.sideInput),
    ...optional("reason", wanted.reason),
    ...optional("series", wanted.series),
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
  /** The job's, for a run that has no record yet. */
  readonly input?: Json;
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
    ],
  };
};

/** The last few attempts, kept in the record for people. */
export interface Try {
  readonly n: number;
  /** Of attempts, where somebody retried the run; from 1. */
  readonly set?: number;
  /** Of the run's work, where it has more than one; from 1. */
  readonly piece?: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly outcome: string;
  readonly error?: string;
}

const KEPT_TRIES = 5;

/** The list to store after one more attempt: `tries` of RUN, oldest first. */
export const triesWith = (tries: Value | undefined, { startedAtMs, endedAtMs, ...last }: Try): Value => {
  const entry = { ...last, startMs: startedAtMs, tookMs: endedAtMs - startedAtMs };
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

/** The holder may go on: nobody asked the run to stop. */
const heldAndWanted = (fence: number): Condition => all(held(fence), absent("cancelAtMs"));

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

interface Failure {
  readonly tries: Value;
  readonly error: ShortError;
  readonly progress?: Progress;
}

/** What an attempt that failed leaves on the record, whatever follows it. */
const counted = (fence: number, { tries, error, progress }: Failure): readonly Change[] => [
  increment("attempts", 1),
  set("tries", tries),
  set("error", { ...error }),
  set("sideError", fence),
  ...progressed(progress),
  remove("leaseUntilMs"),
];

export interface FailedAttempt extends Failure {
  readonly nextAttemptAtMs: number;
}

/** T6: the attempt failed, and another may follow; refused also when somebody asked the run to stop. */
export const failAttempt = ({ occurrence, fence }: Holding, failure: FailedAttempt): Write => ({
  key: runKey(occurrence),
  condition: heldAndWanted(fence),
  changes: [
    set("st", "waiting"),
    set("nextAttemptAtMs", failure.nextAttemptAtMs),
    ...counted(fence, failure),
  ],
});

export interface CutOffAttempt extends Failure {
  readonly nowMs: number;
  readonly reason: string;
}

/** T6, where no attempt may follow before a person has decided; refused also when somebody asked the run to stop. */
export const parkAttempt = ({ occurrence, fence }: Holding, cutOff: CutOffAttempt): Write => ({
  key: runKey(occurrence),
  condition: heldAndWanted(fence),
  changes: [
    set("st", "parked"),
    set("endedAtMs", cutOff.nowMs),
    set("reason", cutOff.reason),
    ...counted(fence, cutOff),
    ...listedAsBad({ occurrence, atMs: cutOff.nowMs }),
  ],
});

/** T7: put off by the handler, without counting an attempt; refused also when somebody asked the run to stop. */
export const snooze = (
  { occurrence, fence }: Holding,
  until: { readonly nextAttemptAtMs: number; readonly tries: Value; readonly progress?: Progress },
): Write => ({
  key: runKey(occurrence),
  condition: heldAndWanted(fence),
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
  condition: heldAndWanted(fence),
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
