import type { Occurrence } from "../identity.ts";
import { bucketKey, expiresAtS } from "../items.ts";
import {
  absent,
  addMembers,
  all,
  any,
  atMost,
  type Change,
  type Condition,
  contains,
  deleteMembers,
  equals,
  lessThan,
  not,
  remove,
  set,
  setOnce,
  type Value,
  type Write,
} from "../write.ts";
import { type Seat, seatAttribute } from "./seats.ts";
import type { ShardPlace } from "./shards.ts";

/** One shard of one list of a run's shards. */
export interface ShardAt {
  readonly occurrence: Occurrence;
  readonly plan: number;
  readonly place: ShardPlace;
}

const keyOfBucket = ({ occurrence, plan, place }: ShardAt) => bucketKey({ occurrence, plan, ...place });

const isOpen = (seat: number, epoch: number): readonly Condition[] => [
  not(contains("done", String(seat))),
  not(contains("failed", String(seat))),
  any(absent("least"), atMost("least", epoch)),
];

export interface ShardStart {
  readonly at: ShardAt;
  readonly epoch: number;
  readonly token: string;
  readonly nowMs: number;
  readonly clockBoundMs: number;
  /** From a clock read before the call, plus the lease. */
  readonly leaseUntilMs: number;
  /** The seat as a refused start showed it; undefined = nobody has had the shard so far. */
  readonly seen: Seat | undefined;
}

/** What a seat keeps from one start to the next. */
const tallies = ({
  attempts,
  crashes,
  snoozes,
  pieces,
}: Omit<Seat, "seat">): { readonly [name: string]: Value } => ({
  ...(attempts === 0 ? {} : { attempts }),
  ...(crashes === 0 ? {} : { crashes }),
  ...(snoozes === 0 ? {} : { snoozes }),
  ...(pieces === 0 ? {} : { pieces }),
});

/** Its worker has it no more, by the table's own time; or it waits, and is due. */
const isFree = (path: string, { seen, nowMs, clockBoundMs }: ShardStart): readonly Condition[] =>
  seen === undefined
    ? [absent(path)]
    : [
        equals([path, "starts"], seen.starts),
        any(absent([path, "leaseUntilMs"]), lessThan([path, "leaseUntilMs"], nowMs - clockBoundMs)),
        any(absent([path, "dueAtMs"]), atMost([path, "dueAtMs"], nowMs)),
      ];

/** The lease of the shard's next attempt. One whose worker was lost is counted as a crash. */
export const startShard = (wanted: ShardStart): Write => {
  const { at, epoch, token, leaseUntilMs, seen, nowMs } = wanted;
  const path = seatAttribute(at.place.seat);
  const lost = seen?.leaseUntilMs === undefined ? 0 : 1;
  const kept = seen === undefined ? {} : tallies({ ...seen, crashes: seen.crashes + lost });
  return {
    key: keyOfBucket(at),
    condition: all(...isOpen(at.place.seat, epoch), ...isFree(path, wanted)),
    changes: [
      set(path, { owner: token, leaseUntilMs, starts: (seen?.starts ?? 0) + 1, ...kept }),
      setOnce("expiresAtS", expiresAtS(nowMs)),
    ],
  };
};

/** What a worker holds while the attempt of a shard runs. */
export interface ShardHolding {
  readonly at: ShardAt;
  readonly token: string;
  readonly epoch: number;
}

const heldSeat = ({ at, token }: ShardHolding): Condition =>
  equals([seatAttribute(at.place.seat), "owner"], token);

/** Refused also when the run was stopped meanwhile. */
export const renewShard = (holding: ShardHolding, leaseUntilMs: number): Write => ({
  key: keyOfBucket(holding.at),
  condition: all(heldSeat(holding), any(absent("least"), atMost("least", holding.epoch))),
  changes: [set([seatAttribute(holding.at.place.seat), "leaseUntilMs"], leaseUntilMs)],
});

export const endShard = (holding: ShardHolding): Write => ({
  key: keyOfBucket(holding.at),
  condition: heldSeat(holding),
  changes: [addMembers("done", String(holding.at.place.seat)), remove(seatAttribute(holding.at.place.seat))],
});

/** Its starts are kept: the fence of what its attempts hand on must not go back when it is tried again. */
const failSeat = (seat: number, starts: number): readonly Change[] => [
  addMembers("failed", String(seat)),
  set(seatAttribute(seat), { starts }),
];

export const failShard = (holding: ShardHolding, starts: number): Write => ({
  key: keyOfBucket(holding.at),
  condition: heldSeat(holding),
  changes: failSeat(holding.at.place.seat, starts),
});

/** Lost once too often, or not to be tried again after a loss: judged by the table on the lease as it is. */
export const failLostShard = (wanted: Omit<ShardStart, "seen" | "leaseUntilMs">, seen: Seat): Write => {
  const path = seatAttribute(wanted.at.place.seat);
  const lost = { ...wanted, seen, leaseUntilMs: 0 };
  return {
    key: keyOfBucket(wanted.at),
    condition: all(...isOpen(wanted.at.place.seat, wanted.epoch), ...isFree(path, lost)),
    changes: failSeat(wanted.at.place.seat, seen.starts),
  };
};

/** Its message was refused by the queue: nobody will ever start it. */
export const failUnsent = (at: ShardAt, nowMs: number): Write => ({
  key: keyOfBucket(at),
  condition: all(
    not(contains("done", String(at.place.seat))),
    absent([seatAttribute(at.place.seat), "leaseUntilMs"]),
  ),
  changes: [addMembers("failed", String(at.place.seat)), setOnce("expiresAtS", expiresAtS(nowMs))],
});

/** Between two attempts. */
export const putOffShard = (
  holding: ShardHolding,
  seat: Omit<Seat, "seat" | "owner" | "leaseUntilMs">,
): Write => ({
  key: keyOfBucket(holding.at),
  condition: heldSeat(holding),
  changes: [
    set(seatAttribute(holding.at.place.seat), {
      starts: seat.starts,
      ...tallies({ ...seat, owner: undefined, leaseUntilMs: undefined }),
      ...(seat.dueAtMs === undefined ? {} : { dueAtMs: seat.dueAtMs }),
    }),
  ],
});

interface BucketAt {
  readonly occurrence: Occurrence;
  readonly plan: number;
  readonly stride: number;
  readonly bucket: number;
}

/**
 * Failed shards of a bucket may start again, once in an attempt set: to be written, also where none has failed, before
 * any shard of the bucket is sent. What fails from then on stays so, whichever attempt of the set comes later: its bucket
 * may be counted already, and a bucket counts once.
 */
export const forgiveShards = (
  at: BucketAt,
  seats: readonly number[],
  { epoch, nowMs }: { readonly epoch: number; readonly nowMs: number },
): Write => ({
  key: bucketKey(at),
  condition: any(absent("forgiven"), lessThan("forgiven", epoch)),
  changes: [
    set("forgiven", epoch),
    setOnce("expiresAtS", expiresAtS(nowMs)),
    ...(seats.length === 0 ? [] : [deleteMembers("failed", ...seats.map(String))]),
  ],
});
