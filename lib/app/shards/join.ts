import type { Occurrence } from "../../core/identity.ts";
import { strideKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { isTrigger } from "../../core/runs/message.ts";
import {
  countBuckets,
  countStride,
  type FanOut,
  fullNumbers,
  isRunFull,
  isStrideFull,
  phaseOf,
  queueJoin,
} from "../../core/shards/fan-out.ts";
import { bucketCounts } from "../../core/shards/seats.ts";
import { bucketCount } from "../../core/shards/shards.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";

export type JoinDeps = Pick<Deps, "table" | "queue" | "clock">;

interface Joined {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
}

/**
 * Queues the run for its end, if its shards are all over. Whoever sees that does it, as often as it is seen: only one
 * write is accepted, and the message that follows it only asks.
 */
export const joinIfFull = async (
  { table, queue, clock }: JoinDeps,
  { job, occurrence }: Joined,
  run: Item | undefined,
): Promise<void> => {
  if (run === undefined || !isRunFull(run)) return;
  const epoch = Number(run["ep"]);
  const answer = await table.write(queueJoin(occurrence, epoch, clock.nowMs()));
  const now = answer.item;
  const waits = now?.["ep"] === epoch && now["st"] === "queued" && phaseOf(now) === "join";
  if (!waits) return;
  const trigger = now["trigger"];
  await queue.send(job.pool, {
    ...occurrence,
    epoch,
    trigger: isTrigger(trigger) ? trigger : "schedule",
    queuedAtMs: clock.nowMs(),
  });
};

interface Counted extends Joined {
  readonly fan: FanOut;
  readonly epoch: number;
}

/** A bucket as somebody saw it. */
export interface SeenBucket {
  readonly stride: number;
  readonly bucket: number;
  readonly item: Item | undefined;
}

/**
 * Counts the bucket in its stride, if its shards are all over; the stride in the run, if its buckets are; then joins.
 * Each step may be done any number of times: sets forget nothing and count nothing twice.
 */
export const afterBucket = async (deps: JoinDeps, counted: Counted, seen: SeenBucket): Promise<void> => {
  const { failed, full } = bucketCounts(seen.item, { ...seen, total: counted.fan.total });
  if (full) await countInStride(deps, counted, { ...seen, buckets: [{ bucket: seen.bucket, failed }] });
};

const countInStride = async (
  { table, queue, clock }: JoinDeps,
  { job, occurrence, fan, epoch }: Counted,
  full: {
    readonly stride: number;
    readonly buckets: readonly { readonly bucket: number; readonly failed: number }[];
  },
): Promise<void> => {
  const { stride, buckets } = full;
  const counted = await table.write(countBuckets(fan, { epoch, stride, nowMs: clock.nowMs() }, buckets));
  const strideItem = counted.item;
  if (strideItem === undefined || !isStrideFull(strideItem, stride, fan)) return;
  const answer = await table.write(countStride(fan, { epoch, stride, strideItem }));
  if (answer.written) await joinIfFull({ table, queue, clock }, { job, occurrence }, answer.item);
};

/** The same for every bucket that was read: what a crash left out is made up for. */
export const repeatSteps = async (
  deps: JoinDeps,
  counted: Counted,
  seen: readonly SeenBucket[],
): Promise<void> => {
  for (const [stride, buckets] of Map.groupBy(seen, (one) => one.stride)) {
    const full = buckets.flatMap((one) => {
      const counts = bucketCounts(one.item, { ...one, total: counted.fan.total });
      return counts.full ? [{ bucket: one.bucket, failed: counts.failed }] : [];
    });
    const known = fullNumbers(
      await deps.table.get(strideKey({ ...counted.fan, stride }, counted.epoch), { consistent: true }),
    );
    const missing = full.filter(({ bucket }) => !known.has(bucket));
    const complete = known.size + missing.length === bucketCount(stride, counted.fan.total);
    if (missing.length > 0 || complete) {
      await countInStride(deps, counted, { stride, buckets: full });
    }
  }
};
