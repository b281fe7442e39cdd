import { bucketKey } from "../../core/items.ts";
import type { ShardMessage } from "../../core/runs/message.ts";
import type { FanOut } from "../../core/shards/fan-out.ts";
import { doneIn, failedSeatsIn, type Seat, seatIn } from "../../core/shards/seats.ts";
import type { ShardAt } from "../../core/shards/shard-writes.ts";
import { placeOfShard } from "../../core/shards/shards.ts";
import type { Item } from "../../core/write.ts";
import type { ErrorFacts } from "../../ports/attempts.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import type { Deps } from "../deps.ts";
import { repeated } from "../path/repeated.ts";
import { DELETE, type Visit } from "../path/visit.ts";
import { storeDeadShard } from "./dead-shards.ts";
import { afterBucket } from "./join.ts";
import { readShard } from "./shard-pages.ts";

type ShardDeps = Pick<Deps, "table" | "queue" | "clock">;

/** A shard's message on its way through a worker. */
export interface ShardVisit extends Visit {
  readonly shard: ShardMessage;
  readonly fan: FanOut;
  readonly at: ShardAt;
}

export const shardVisitOf = (visit: Visit, shard: ShardMessage): ShardVisit => {
  const { occurrence } = visit;
  const { plan, total, index } = shard;
  return {
    ...visit,
    shard,
    fan: { occurrence, plan, total, listed: shard.key !== undefined },
    at: { occurrence, plan, place: placeOfShard(index, total) },
  };
};

/** The shard as its bucket has it. */
export const isShardOver = (bucket: Item | undefined, seat: number): boolean =>
  doneIn(bucket).has(seat) || failedSeatsIn(bucket).has(seat);

/**
 * The shard is over: what follows from that is done, as often as somebody finds it so. Only then is its message
 * deleted, which therefore repairs what a crash left undone.
 */
export const leaveShard = async (
  deps: ShardDeps,
  { job, occurrence, message, fan, at, shard }: Omit<ShardVisit, "token">,
  bucket: Item | undefined,
): Promise<Settlement> => {
  const counted = { job, occurrence, fan, epoch: message.epoch };
  await afterBucket(deps, counted, { ...at.place, item: bucket });
  const maxInFlight = job.shards?.maxInFlight;
  if (maxInFlight !== undefined) await sendNext(deps, { job, fan, message, shard }, maxInFlight);
  return DELETE;
};

/** Where only so many may be in flight, each that is over sends the next of its lane that nobody has had. */
const sendNext = async (
  deps: ShardDeps,
  { job, fan, message, shard }: Pick<ShardVisit, "job" | "fan" | "message" | "shard">,
  maxInFlight: number,
): Promise<void> => {
  for (let index = shard.index + maxInFlight; index < fan.total; index += maxInFlight) {
    const place = placeOfShard(index, fan.total);
    const bucket = await deps.table.get(bucketKey({ ...fan, ...place }), { consistent: false });
    if (isShardOver(bucket, place.seat)) continue;
    // Somebody has a message of it.
    if (isTaken(seatIn(bucket, place.seat))) return;
    const next = fan.listed ? await readShard(deps, fan, index) : { index };
    const { key: _key, input: _input, ...rest } = shard;
    await deps.queue.send(job.pool, {
      ...message,
      queuedAtMs: deps.clock.nowMs(),
      shard: { ...rest, ...next },
    });
    return;
  }
};

const isTaken = (seat: Seat | undefined): boolean =>
  seat?.leaseUntilMs !== undefined || seat?.dueAtMs !== undefined;

/** Why it failed is stored first; then its bucket says so. */
export const storeFailure = (
  { table, clock }: Pick<Deps, "table" | "clock">,
  { at, fan, shard }: Pick<ShardVisit, "at" | "fan" | "shard">,
  failure: { readonly error: ErrorFacts; readonly attempts: number },
): Promise<void> => {
  const { index, key, input } = shard;
  return repeated(() =>
    storeDeadShard(
      { table },
      { occurrence: at.occurrence, plan: fan.plan },
      {
        index,
        ...(key === undefined ? {} : { key }),
        ...(input === undefined ? {} : { input }),
        ...failure,
        atMs: clock.nowMs(),
      },
    ),
  );
};
