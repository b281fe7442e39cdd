import type { Occurrence } from "../identity.ts";
import { bucketKey, expiresAtS, runKey, strideKey } from "../items.ts";
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
  type Item,
  isMap,
  lessThan,
  not,
  remove,
  set,
  setOnce,
  type Value,
  type Write,
} from "../write.ts";
import { bucketCount, bucketSize, type ShardCounts, type ShardPlace, strideCount } from "./shards.ts";

/**
 * A run that has many shards. RUN goes through phases (`ph`): its shards are listed, sent, carried out (`shards`, in
 * which nobody holds a lease on RUN), and joined. A retry begins anew, with the list that is there (`again`); a run that
 * is to end while shards are on their way stops them first (`stop`). Each shard is counted in its BUCKET; a bucket whose shards are all over in its STRIDE; a full stride in RUN.
 */
export type Phase = "list" | "send" | "again" | "shards" | "join" | "stop";

export const phaseOf = (run: Item | undefined): Phase => {
  const phase = run?.["ph"];
  if (phase === "send" || phase === "shards" || phase === "join" || phase === "stop") return phase;
  return run?.["plan"] === undefined ? "list" : "again";
};

/** Running, and nobody holds it: its shards are on their way, or being stopped. */
export const isUnheld = (run: Item | undefined): boolean =>
  run?.["st"] === "running" && ["shards", "stop"].includes(phaseOf(run));

/** May shards of the run be at work, or on their way? Of a run that has been started. */
export const mayHaveShards = ({ shards }: { readonly shards?: unknown }, run: Item | undefined): boolean =>
  run?.["fence"] !== undefined &&
  (shards !== undefined || run["plan"] !== undefined) &&
  phaseOf(run) !== "join";

/** The shards of one run, as one list of them. `plan` is the fence of the attempt that made the list. */
export interface FanOut {
  readonly occurrence: Occurrence;
  readonly plan: number;
  readonly total: number;
  /** The job's code named them, so their keys and inputs are stored; else they go by number. */
  readonly listed: boolean;
}

/** Undefined: the run's shards are not listed yet. */
export const fanOutOf = (occurrence: Occurrence, run: Item | undefined): FanOut | undefined =>
  run?.["plan"] === undefined
    ? undefined
    : {
        occurrence,
        plan: Number(run["plan"]),
        total: Number(run["total"]),
        listed: run["listed"] === true,
      };

interface Held {
  readonly occurrence: Occurrence;
  readonly fence: number;
}

const heldBy = (fence: number): Condition => all(equals("st", "running"), equals("fence", fence));

/** The list is complete, and from now on this one: nothing was sent before. */
export const keepList = (
  { occurrence, fence }: Held,
  { total, listed }: Pick<FanOut, "total" | "listed">,
): Write => ({
  key: runKey(occurrence),
  condition: all(heldBy(fence), absent("plan")),
  changes: [
    set("ph", "send"),
    set("plan", fence),
    set("total", total),
    set("sent", 0),
    ...(listed ? [set("listed", true)] : []),
  ],
});

/** All shards before that one are sent. */
export const sentUpTo = ({ occurrence, fence }: Held, count: number): Write => ({
  key: runKey(occurrence),
  condition: heldBy(fence),
  changes: [set("sent", count)],
});

/** Everything is sent: the lease ends, and the shards are left to themselves. Refused when asked to stop. */
export const openShards = ({ occurrence, fence }: Held, { tries }: { readonly tries: Value }): Write => ({
  key: runKey(occurrence),
  condition: all(heldBy(fence), any(absent("ph"), equals("ph", "send")), absent("cancelAtMs")),
  changes: [
    set("ph", "shards"),
    set("attempts", 0),
    set("crashes", 0),
    set("tries", tries),
    ...["leaseUntilMs", "error", "sideError", "nudges", "sent", "chosen", "seen", "seenAtMs"].map((name) =>
      remove(name),
    ),
  ],
});

/** A bucket or stride that is complete: its number, and how many shards of it failed. */
const fullText = (number: number, failed: number): string =>
  failed === 0 ? String(number) : `${number}!${failed}`;

const fullIn = (item: Item | undefined): readonly { readonly number: number; readonly failed: number }[] => {
  const texts = item?.["full"];
  if (!(texts instanceof Set)) return [];
  return [...texts].map((text: string) => {
    const [number, failed = "0"] = text.split("!");
    return { number: Number(number), failed: Number(failed) };
  });
};

const failedIn = (item: Item | undefined): number =>
  fullIn(item).reduce((sum, { failed }) => sum + failed, 0);

/** Numbers of the strides that are complete, in RUN; of the buckets, in STRIDE. */
export const fullNumbers = (item: Item | undefined): ReadonlySet<number> =>
  new Set(fullIn(item).map(({ number }) => number));

/** Strides that may have failed shards: those that are complete say so, the others are not counted yet. */
export const failedStrides = (run: Item | undefined, { total }: FanOut): readonly number[] => {
  const failed = new Map(fullIn(run).map((stride) => [stride.number, stride.failed]));
  return Array.from({ length: strideCount(total) }, (_, stride) => stride).filter(
    (stride) => failed.get(stride) !== 0,
  );
};

/** Buckets of the stride that are complete. The same every time, within one attempt set. */
export const countBuckets = (
  { occurrence, plan }: FanOut,
  { epoch, stride, nowMs }: { readonly epoch: number; readonly stride: number; readonly nowMs: number },
  buckets: readonly { readonly bucket: number; readonly failed: number }[],
): Write => ({
  key: strideKey({ occurrence, plan, stride }, epoch),
  changes: [
    addMembers("full", ...buckets.map(({ bucket, failed }) => fullText(bucket, failed))),
    setOnce("expiresAtS", expiresAtS(nowMs)),
  ],
});

export const isStrideFull = (item: Item | undefined, stride: number, { total }: FanOut): boolean =>
  fullIn(item).length === bucketCount(stride, total);

/** A stride is complete: told to RUN, unless that is in another attempt set by now. */
export const countStride = (
  { occurrence, plan }: FanOut,
  {
    epoch,
    stride,
    strideItem,
  }: { readonly epoch: number; readonly stride: number; readonly strideItem: Item },
): Write => ({
  key: runKey(occurrence),
  condition: all(equals("ep", epoch), equals("plan", plan)),
  changes: [addMembers("full", fullText(stride, failedIn(strideItem)))],
});

export const isRunFull = (run: Item | undefined): boolean =>
  run?.["total"] !== undefined && fullIn(run).length === strideCount(Number(run["total"]));

/** Of a run whose shards are all over. */
export const countsOf = (run: Item): ShardCounts => {
  const [total, failed] = [Number(run["total"]), failedIn(run)];
  return { total, done: total - failed, failed };
};

/** Every shard is over: the run is queued once more, for its end. */
export const queueJoin = (occurrence: Occurrence, epoch: number, nowMs: number): Write => ({
  key: runKey(occurrence),
  condition: all(equals("ep", epoch), equals("st", "running"), equals("ph", "shards")),
  changes: [set("ph", "join"), set("st", "queued"), set("joinAtMs", nowMs)],
});

/** The retry of a run that is for some of its failed shards only, by number. */
export const forSomeShards = (retry: Write, chosen: readonly number[]): Write => ({
  ...retry,
  changes: [
    ...retry.changes.filter(({ path }) => path !== "chosen"),
    set("chosen", new Set(chosen.map(String))),
  ],
});

/** The watchdog's look at a run in its shards: so many were over then. Refused when somebody else has just looked. */
export const noteSeen = (
  occurrence: Occurrence,
  lastAtMs: number | undefined,
  { seen, nowMs, nudges }: { readonly seen: number; readonly nowMs: number; readonly nudges: number },
): Write => ({
  key: runKey(occurrence),
  condition: all(
    equals("ph", "shards"),
    lastAtMs === undefined ? absent("seenAtMs") : equals("seenAtMs", lastAtMs),
  ),
  changes: [set("seen", seen), set("seenAtMs", nowMs), set("nudges", nudges)],
});

/** A shard that somebody has, has had, or that waits. */
export interface Seat {
  readonly seat: number;
  readonly owner: string | undefined;
  /** Undefined: nobody has it. */
  readonly leaseUntilMs: number | undefined;
  /** Starts so far; the number of the last one is its fence. */
  readonly starts: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly snoozes: number;
  /** Ends of invocations with `continueLater`. */
  readonly pieces: number;
  /** When its next attempt is due; undefined = it does not wait. */
  readonly dueAtMs: number | undefined;
}

const seatAttribute = (seat: number): string => `l#${seat}`;

export const seatIn = (bucket: Item | undefined, seat: number): Seat | undefined => {
  const value = bucket?.[seatAttribute(seat)];
  if (!isMap(value)) return undefined;
  const number = (name: string): number | undefined =>
    value[name] === undefined ? undefined : Number(value[name]);
  return {
    seat,
    owner: value["owner"] === undefined ? undefined : String(value["owner"]),
    leaseUntilMs: number("leaseUntilMs"),
    starts: number("starts") ?? 0,
    attempts: number("attempts") ?? 0,
    crashes: number("crashes") ?? 0,
    snoozes: number("snoozes") ?? 0,
    pieces: number("pieces") ?? 0,
    dueAtMs: number("dueAtMs"),
  };
};

const seatNumbers = (value: Value | undefined): ReadonlySet<number> =>
  new Set(value instanceof Set ? [...value].map(Number) : []);

export const doneIn = (bucket: Item | undefined): ReadonlySet<number> => seatNumbers(bucket?.["done"]);
export const failedSeatsIn = (bucket: Item | undefined): ReadonlySet<number> =>
  seatNumbers(bucket?.["failed"]);

/** How many of the bucket's shards are over, and whether that is all of them. */
export const bucketCounts = (
  bucket: Item | undefined,
  {
    stride,
    bucket: number,
    total,
  }: { readonly stride: number; readonly bucket: number; readonly total: number },
): { readonly done: number; readonly failed: number; readonly full: boolean } => {
  const [done, failed] = [doneIn(bucket).size, failedSeatsIn(bucket).size];
  return { done, failed, full: done + failed === bucketSize(stride, number, total) };
};

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
 * Failed shards of a bucket may start again, once in an attempt set. What has failed since stays so, whichever attempt
 * of the set comes later: its bucket may be counted already, and a bucket counts once.
 */
export const forgiveShards = (at: BucketAt, seats: readonly number[], epoch: number): Write => ({
  key: bucketKey(at),
  condition: any(absent("forgiven"), lessThan("forgiven", epoch)),
  changes: [deleteMembers("failed", ...seats.map(String)), set("forgiven", epoch)],
});
