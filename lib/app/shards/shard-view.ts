import type { Occurrence } from "../../core/identity.ts";
import type { DeadShardView, ShardsView } from "../../core/runs/run.ts";
import { countsOf, failedStrides, fanOutOf, isRunFull } from "../../core/shards/fan-out.ts";
import { failedSeatsIn } from "../../core/shards/seats.ts";
import { indexOfShard } from "../../core/shards/shards.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { type DeadShard, readDeadShard } from "./dead-shards.ts";
import type { SeenBucket } from "./join.ts";
import { openStrides, readBuckets, shardsIn } from "./shard-state.ts";

type ViewDeps = Pick<Deps, "table" | "clock">;

/** More of them nobody reads at once; the counts tell of all. */
const DEAD_SHOWN = 20;

/**
 * The shards of a run; undefined where it has none, or has not listed them. Of a run whose shards are all over its
 * record knows the counts; else its buckets are read.
 */
export const shardsViewOf = async (
  deps: ViewDeps,
  occurrence: Occurrence,
  run: Item,
): Promise<ShardsView | undefined> => {
  const fan = fanOutOf(occurrence, run);
  if (fan === undefined) return undefined;
  const counts = isRunFull(run)
    ? { ...countsOf(run), running: 0, waiting: 0 }
    : await countNow(deps, occurrence, run);
  return { ...counts, dead: counts.failed === 0 ? [] : await deadOf(deps, occurrence, run) };
};

const countNow = async (deps: ViewDeps, occurrence: Occurrence, run: Item) => {
  const fan = fanOutOf(occurrence, run) ?? { occurrence, plan: 0, total: 0, listed: false };
  const seen = await readBuckets(deps, fan, openStrides(fan, undefined));
  const shards = shardsIn(seen, fan.total, { nowMs: deps.clock.nowMs(), clockBoundMs: 0 });
  const count = (kind: string): number => shards.filter(({ state }) => state.kind === kind).length;
  const [done, failed, running, waiting] = ["done", "failed", "running", "waiting"].map(count);
  return {
    total: fan.total,
    done: done ?? 0,
    failed: failed ?? 0,
    running: running ?? 0,
    waiting: waiting ?? 0,
  };
};

const viewOf = ({ index, key, input, attempts, atMs, error }: DeadShard): DeadShardView => ({
  index,
  key: key ?? String(index),
  input: input ?? null,
  attempts,
  failedAt: shortIsoOf(atMs),
  error,
});

/** By their buckets, of the strides in which some failed: one that was tried again since may have left its error behind. */
const deadOf = async (
  deps: ViewDeps,
  occurrence: Occurrence,
  run: Item,
): Promise<readonly DeadShardView[]> => {
  const fan = fanOutOf(occurrence, run);
  if (fan === undefined) return [];
  const failed: number[] = [];
  for (const stride of failedStrides(run, fan)) {
    const buckets = await readBuckets(deps, fan, [stride]);
    failed.push(...failedIn(buckets, fan.total));
    if (failed.length >= DEAD_SHOWN) break;
  }
  const dead = await Promise.all(failed.slice(0, DEAD_SHOWN).map((index) => readDeadShard(deps, fan, index)));
  return dead.filter((shard) => shard !== undefined).map(viewOf);
};

/** In order of their index. */
const failedIn = (buckets: readonly SeenBucket[], total: number): readonly number[] =>
  buckets
    .flatMap((bucket) =>
      [...failedSeatsIn(bucket.item)].map((seat) => indexOfShard({ ...bucket, seat }, total)),
    )
    .sort((left, right) => left - right);
