import type { Occurrence } from "../../core/identity.ts";
import { cancelShards, fanOutOf, phaseOf, stopBucket } from "../../core/shards/fan-out.ts";
import { bucketsOf, strideCount } from "../../core/shards/shards.ts";
import type { Item } from "../../core/write.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Deps } from "../deps.ts";

/**
 * Ends a run that is in its shards, and keeps the rest of them from starting. False: it is in another phase.
 * @param run RUN as it was seen last
 */
export const cancelOpenShards = async (
  deps: Pick<Deps, "table" | "clock" | "random">,
  { occurrence, run }: { readonly occurrence: Occurrence; readonly run: Item | undefined },
  reason: string,
): Promise<boolean> => {
  if (phaseOf(run) !== "shards") return false;
  const token = deps.random.token();
  const by = { token, nowMs: deps.clock.nowMs(), reason };
  const { written, item } = await deps.table.write(cancelShards(occurrence, Number(run?.["ep"]), by));
  if (!written && item?.["own"] !== token) return false;
  await stopShards(deps, occurrence, item);
  return true;
};

const WRITES_AT_ONCE = 16;

/**
 * Keeps the shards of a run that is stopped from starting; those that run lose their lease at the next renewal. A
 * crash in between leaves some of them to run to their end, which nobody joins.
 */
export const stopShards = async (
  { table, clock }: Pick<Deps, "table" | "clock">,
  occurrence: Occurrence,
  run: Item | undefined,
): Promise<void> => {
  const fan = fanOutOf(occurrence, run);
  if (fan === undefined) return;
  const epoch = Number(run?.["ep"]);
  const buckets = Array.from({ length: strideCount(fan.total) }, (_, stride) =>
    bucketsOf(stride, fan.total).map((bucket) => ({ stride, bucket })),
  );
  await eachAtOnce(buckets.flat(), WRITES_AT_ONCE, async (place) => {
    await table.write(stopBucket({ occurrence, plan: fan.plan, ...place }, epoch, clock.nowMs()));
  });
};
