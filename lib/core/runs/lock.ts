import type { Occurrence } from "../identity.ts";
import { holderAttribute, lockKey } from "../items.ts";
import {
  absent,
  addMembers,
  all,
  any,
  contains,
  deleteMembers,
  equals,
  type Item,
  increment,
  isMap,
  lessThan,
  not,
  remove,
  set,
  type Value,
  type Write,
} from "../write.ts";

/**
 * The overlap lock of a job: who occupies it (holders), and who waits. A holder's entry has no clock; it ends when
 * its run is over, and whoever meets an entry whose run is over removes it.
 */

/** 0: a live slot; 1: a run by hand, or any retried run; 2: a backfill, or a
 * slot that is caught up with others and must not skip for them. Smaller goes first. */
export type Class = 0 | 1 | 2;

export interface Contender {
  readonly occurrence: Occurrence;
  readonly epoch: number;
  readonly class: Class;
}

export interface Holder {
  readonly slotKey: string;
  readonly epoch: number;
  readonly owner: string;
  /** When it was claimed, or sent again. */
  readonly sentAtMs: number;
  readonly class: Class;
  /** Who sent its message once more, if anybody did. */
  readonly nudgedBy: string | undefined;
}

export interface Waiter {
  readonly slotKey: string;
  readonly epoch: number;
  readonly class: Class;
  /** Its spelling in the set. */
  readonly text: string;
}

const HOLDER_PREFIX = "h#";

const classOf = (value: unknown): Class => (value === 0 || value === 2 ? value : 1);

/** In order of the slot key. */
export const holdersOf = (lock: Item | undefined): readonly Holder[] =>
  Object.entries(lock ?? {})
    .flatMap(([name, value]): Holder[] =>
      name.startsWith(HOLDER_PREFIX) && isMap(value)
        ? [
            {
              slotKey: name.slice(HOLDER_PREFIX.length),
              epoch: Number(value["epoch"]),
              owner: String(value["owner"]),
              sentAtMs: Number(value["sentAtMs"]),
              class: classOf(value["class"]),
              nudgedBy: value["nudgedBy"] === undefined ? undefined : String(value["nudgedBy"]),
            },
          ]
        : [],
    )
    .sort((left, right) => (left.slotKey < right.slotKey ? -1 : 1));

export const waiterText = (slotKey: string, epoch: number, itsClass: Class): string =>
  `${itsClass}~${slotKey}~${epoch}`;

/** In the order in which they get the lock: live before by hand before backfill, then by slot. */
export const waitersOf = (lock: Item | undefined): readonly Waiter[] => {
  const texts = lock?.["w"];
  if (!(texts instanceof Set)) return [];
  return [...texts].sort().map((text: string): Waiter => {
    const [itsClass, slotKey = "", epoch] = text.split("~");
    return { slotKey, epoch: Number(epoch), class: classOf(Number(itsClass)), text };
  });
};

export const hasRoom = (lock: Item | undefined, max: number): boolean => Number(lock?.["held"] ?? 0) < max;

const roomFor = (max: number) => any(absent("held"), lessThan("held", max));

const holderValue = (contender: Contender, token: string, nowMs: number): Value => ({
  epoch: contender.epoch,
  owner: token,
  sentAtMs: nowMs,
  class: contender.class,
});

export interface LockClaim {
  readonly contender: Contender;
  readonly token: string;
  readonly nowMs: number;
  /** How many runs may hold the lock at once. */
  readonly max: number;
  /** Refuse a slot that is not newer than the last claimed one: its record may be there already. */
  readonly newestOnly: boolean;
}

/** T1L: the claim that is the lock. */
export const claimLock = ({ contender, token, nowMs, max, newestOnly }: LockClaim): Write => {
  const { subject, slotKey } = contender.occurrence;
  const mine = holderAttribute(slotKey);
  const free = [absent(mine), roomFor(max), absent("w")];
  return {
    key: lockKey(subject),
    condition: newestOnly ? all(...free, any(absent("top"), lessThan("top", slotKey))) : all(...free),
    changes: [
      set(mine, holderValue(contender, token, nowMs)),
      increment("held", 1),
      ...(newestOnly ? [set("top", slotKey)] : []),
    ],
  };
};

/** T9 for a holder. */
export const releaseHolder = ({ subject, slotKey }: Occurrence, epoch: number): Write => ({
  key: lockKey(subject),
  condition: equals([holderAttribute(slotKey), "epoch"], epoch),
  changes: [remove(holderAttribute(slotKey)), increment("held", -1)],
});

/** T9 for a waiter, by its spelling as it was seen. */
export const removeWaiter = (subject: string, text: string): Write => ({
  key: lockKey(subject),
  condition: contains("w", text),
  changes: [deleteMembers("w", text)],
});

/** T10: a waiter becomes a holder. */
export const handOver = (
  subject: string,
  waiter: Waiter,
  hand: { readonly token: string; readonly nowMs: number; readonly max: number },
): Write => {
  const its = holderAttribute(waiter.slotKey);
  const contender = { occurrence: { subject, slotKey: waiter.slotKey }, ...waiter };
  return {
    key: lockKey(subject),
    condition: all(contains("w", waiter.text), roomFor(hand.max), absent(its)),
    changes: [
      set(its, holderValue(contender, hand.token, hand.nowMs)),
      increment("held", 1),
      deleteMembers("w", waiter.text),
    ],
  };
};

const CLASSES: readonly Class[] = [0, 1, 2];

/** T11: wait for the lock, unless the run holds it or waits already, under whichever class. */
export const joinWaiters = ({ occurrence, epoch, class: itsClass }: Contender): Write => {
  const { subject, slotKey } = occurrence;
  const spellings = CLASSES.map((any) => not(contains("w", waiterText(slotKey, epoch, any))));
  return {
    key: lockKey(subject),
    condition: all(absent(holderAttribute(slotKey)), ...spellings),
    changes: [addMembers("w", waiterText(slotKey, epoch, itsClass))],
  };
};

/** Before a holder's message is sent once more: refused when somebody else has just sent it. */
export const nudgeHolder = (
  subject: string,
  holder: Holder,
  { nowMs, token }: { readonly nowMs: number; readonly token: string },
): Write => {
  const its = holderAttribute(holder.slotKey);
  return {
    key: lockKey(subject),
    condition: all(equals([its, "epoch"], holder.epoch), equals([its, "sentAtMs"], holder.sentAtMs)),
    changes: [set([its, "sentAtMs"], nowMs), set([its, "nudgedBy"], token)],
  };
};
