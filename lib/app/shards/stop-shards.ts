import type { Occurrence } from "../../core/identity.ts";
import { fanOutOf, isUnheld, phaseOf } from "../../core/shards/fan-out.ts";
import {
  cancelShards,
  endStopped,
  endsAs,
  isStopped,
  lastLeaseMs,
  stopBucket,
} from "../../core/shards/stop.ts";
import type { Item } from "../../core/write.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Deps } from "../deps.ts";
import { openStrides, readBuckets } from "./shard-state.ts";

type StopDeps = Pick<Deps, "table" | "clock" | "timings">;

interface Pointed {
  readonly occurrence: Occurrence;
  /** RUN as it was seen last. */
  readonly run: Item | undefined;
}

/** `ended`: the run is over, and its lock should be released. Else none of its shards is at work from then on. */
export type Stop = { readonly kind: "ended" } | { readonly kind: "stopping"; readonly quietAtMs: number };

const ENDED: Stop = { kind: "ended" };

/**
 * Stops a run that is in its shards. Undefined: it is in another phase by now.
 */
export const cancelOpenShards = async (
  deps: StopDeps & Pick<Deps, "random">,
  { occurrence, run }: Pointed,
  reason: string,
): Promise<Stop | undefined> => {
  if (!isUnheld(run)) return undefined;
  if (phaseOf(run) === "stop") return stopShards(deps, { occurrence, run });
  const token = deps.random.token();
  const { written, item } = await deps.table.write(
    cancelShards(occurrence, Number(run?.["ep"]), { token, reason }),
  );
  if (!written && item?.["own"] !== token) return undefined;
  return stopShards(deps, { occurrence, run: item });
};

/**
 * Of a run in phase `stop`: keeps its shards from starting, and ends it if none is at work. Anybody may do so, as often
 * as it is looked at: the watchdog goes on where whoever began this has ended.
 */
export const stopShards = async (deps: StopDeps, { occurrence, run }: Pointed): Promise<Stop> => {
  const state = endsAs(run);
  if (phaseOf(run) !== "stop" || state === undefined) return ENDED;
  const epoch = Number(run?.["ep"]);
  const lastMs = await stopBuckets(deps, { occurrence, run }, epoch);
  const quietAtMs = (lastMs ?? 0) + deps.timings.clockBoundMs;
  const nowMs = deps.clock.nowMs();
  if (lastMs !== undefined && quietAtMs >= nowMs) return { kind: "stopping", quietAtMs };
  await deps.table.write(endStopped(occurrence, epoch, { state, nowMs }));
  return ENDED;
};

const WRITES_AT_ONCE = 16;

/** Answers when the last lease ends that one of the shards has. */
const stopBuckets = async (
  deps: StopDeps,
  { occurrence, run }: Pointed,
  epoch: number,
): Promise<number | undefined> => {
  const fan = fanOutOf(occurrence, run);
  if (fan === undefined) return undefined;
  const leases: number[] = [];
  const seen = await readBuckets(deps, fan, openStrides(fan, run));
  await eachAtOnce(seen, WRITES_AT_ONCE, async ({ item, ...place }) => {
    const at = { occurrence, plan: fan.plan, ...place };
    const stopped = isStopped(item, epoch)
      ? item
      : (await deps.table.write(stopBucket(at, epoch, deps.clock.nowMs()))).item;
    const leaseMs = lastLeaseMs(stopped);
    if (leaseMs !== undefined) leases.push(leaseMs);
  });
  return leases.length === 0 ? undefined : Math.max(...leases);
};
