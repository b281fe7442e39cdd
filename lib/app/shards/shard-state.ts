import { bucketKey } from "../../core/items.ts";
import { type FanOut, fullNumbers } from "../../core/shards/fan-out.ts";
import { doneIn, failedSeatsIn, type Seat, seatIn } from "../../core/shards/seats.ts";
import { bucketSize, bucketsOf, indexOfShard, strideCount } from "../../core/shards/shards.ts";
import type { Item } from "../../core/write.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Deps } from "../deps.ts";
import type { SeenBucket } from "./join.ts";

const READS_AT_ONCE = 16;

/** The numbers of all strides, without those that RUN counts as complete. */
export const openStrides = ({ total }: FanOut, run: Item | undefined): readonly number[] => {
  const full = fullNumbers(run);
  return Array.from({ length: strideCount(total) }, (_, stride) => stride).filter(
    (stride) => !full.has(stride),
  );
};

/** The buckets of the strides, in order. Consistent: what is counted from them must be of this attempt set. */
export const readBuckets = async (
  { table }: Pick<Deps, "table">,
  fan: FanOut,
  open: readonly number[],
): Promise<readonly SeenBucket[]> => {
  const wanted = open.flatMap((stride) => bucketsOf(stride, fan.total).map((bucket) => ({ stride, bucket })));
  const seen: SeenBucket[] = [];
  await eachAtOnce(wanted.entries(), READS_AT_ONCE, async ([place, at]) => {
    const key = bucketKey({ occurrence: fan.occurrence, plan: fan.plan, ...at });
    seen[place] = { ...at, item: await table.get(key, { consistent: true }) };
  });
  return seen;
};

export type ShardState =
  | { readonly kind: "done" | "failed" }
  /** Nobody has it: it has not started, it waits, or its worker was lost. */
  | { readonly kind: "idle" | "waiting" | "running" | "lost"; readonly seat: Seat | undefined };

export interface SeenShard {
  readonly index: number;
  readonly state: ShardState;
}

const stateOf = (
  { item }: SeenBucket,
  seat: number,
  { nowMs, clockBoundMs }: { readonly nowMs: number; readonly clockBoundMs: number },
): ShardState => {
  if (doneIn(item).has(seat)) return { kind: "done" };
  if (failedSeatsIn(item).has(seat)) return { kind: "failed" };
  const its = seatIn(item, seat);
  if (its?.leaseUntilMs !== undefined) {
    return { kind: its.leaseUntilMs < nowMs - clockBoundMs ? "lost" : "running", seat: its };
  }
  return { kind: its?.dueAtMs === undefined ? "idle" : "waiting", seat: its };
};

/** Every shard of the buckets, in order of its index. */
export const shardsIn = (
  seen: readonly SeenBucket[],
  total: number,
  now: { readonly nowMs: number; readonly clockBoundMs: number },
): readonly SeenShard[] =>
  seen
    .flatMap((bucket) =>
      Array.from({ length: bucketSize(bucket.stride, bucket.bucket, total) }, (_, seat) => ({
        index: indexOfShard({ ...bucket, seat }, total),
        state: stateOf(bucket, seat, now),
      })),
    )
    .sort((left, right) => left.index - right.index);

const isOver = ({ state }: SeenShard): boolean => state.kind === "done" || state.kind === "failed";

/**
 * Of the shards that are not over, those that nobody has and that may go now: all of them or, where only so many may
 * be in flight, the first of each lane in which nobody is busy. Shard i is in lane i mod `maxInFlight`.
 */
export const shardsToSend = (
  shards: readonly SeenShard[],
  maxInFlight: number | undefined,
  isWanted: (shard: SeenShard) => boolean,
): readonly number[] => {
  const open = shards.filter((shard) => !isOver(shard));
  if (maxInFlight === undefined) return open.filter(isWanted).map(({ index }) => index);
  const heads = new Map<number, SeenShard>();
  for (const shard of open) {
    const lane = shard.index % maxInFlight;
    const head = heads.get(lane);
    // Whoever has begun is ahead of those that have not.
    if (head === undefined || (head.state.kind === "idle" && shard.state.kind !== "idle"))
      heads.set(lane, shard);
  }
  return [...heads.values()]
    .filter(isWanted)
    .map(({ index }) => index)
    .sort((left, right) => left - right);
};
