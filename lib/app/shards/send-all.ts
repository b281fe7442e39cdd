import { type FanOut, fanOutOf, phaseOf, sentUpTo } from "../../core/shards/fan-out.ts";
import { bucketCounts, failedSeatsIn } from "../../core/shards/seats.ts";
import { forgiveShards } from "../../core/shards/shard-writes.ts";
import { indexOfShard, PER_STRIDE } from "../../core/shards/shards.ts";
import type { Item } from "../../core/write.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Began } from "../path/attempt.ts";
import { repeated } from "../path/repeated.ts";
import type { WorkDeps } from "../path/visit.ts";
import { repeatSteps, type SeenBucket } from "./join.ts";
import { leaseLost } from "./lease-lost.ts";
import type { Remembered } from "./list-shards.ts";
import { type Sender, sendChosen, sendShards } from "./send-shards.ts";
import { readStride } from "./shard-pages.ts";
import { openStrides, readBuckets, type SeenShard, shardsIn, shardsToSend } from "./shard-state.ts";

interface Sending {
  readonly run: Item;
  readonly remembered?: Remembered;
  goOn(): void;
}

export const sendAll = async (
  deps: WorkDeps,
  began: Began,
  { run, remembered, goOn }: Sending,
): Promise<void> => {
  const { visit } = began;
  const fan = fanOutOf(visit.occurrence, run);
  if (fan === undefined) throw new Error("the run has a phase, and no list");
  const sender = { job: visit.job, occurrence: visit.occurrence, fan, run, checkpoint: goOn };
  return phaseOf(run) === "again" ? sendAgain(deps, sender) : sendFirst(deps, began, sender, remembered);
};

/**
 * Stride by stride, from where the attempt before came to. Of what that one may have sent, only what nobody has begun is
 * sent again; what was sent twice all the same is absorbed by the shard's start.
 */
const sendFirst = async (
  deps: WorkDeps,
  { holding, lease }: Began,
  sender: Sender,
  remembered: Remembered = new Map(),
): Promise<void> => {
  const { fan, run, job } = sender;
  const resumedAt = phaseOf(lease.item) === "send" ? Number(run["sent"] ?? 0) : undefined;
  const wanted = Math.min(fan.total, job.shards?.maxInFlight ?? fan.total);
  for (let sent = Number(run["sent"] ?? 0); sent < wanted; ) {
    const stride = Math.floor(sent / PER_STRIDE);
    const shards = remembered.get(stride) ?? (await readStride(deps, fan, stride));
    const isOpen = sent === resumedAt ? await openIn(deps, fan, stride) : () => true;
    await sendShards(
      deps,
      sender,
      shards.filter(({ index }) => index < wanted && isOpen(index)),
    );
    sent = Math.min(wanted, (stride + 1) * PER_STRIDE);
    // The last of them is noted by what opens the shards.
    if (sent === wanted) return;
    const { written } = await deps.table.write(sentUpTo(holding, sent));
    if (!written) throw leaseLost();
  }
};

/** Of a stride: whether nobody has begun the shard. */
const openIn = async (deps: WorkDeps, fan: FanOut, stride: number): Promise<(index: number) => boolean> => {
  const now = { nowMs: deps.clock.nowMs(), clockBoundMs: deps.timings.clockBoundMs };
  const seen = shardsIn(await readBuckets(deps, fan, [stride]), fan.total, now);
  const open = new Set(seen.filter(({ state }) => state.kind === "idle").map(({ index }) => index));
  return (index) => open.has(index);
};

/** After a retry: the failed shards may start again, and all that are not over are sent. */
const sendAgain = async (deps: WorkDeps, sender: Sender): Promise<void> => {
  const { fan, run, job, occurrence } = sender;
  const seen = await readBuckets(deps, fan, openStrides(fan, undefined));
  const epoch = Number(run["ep"]);
  const chosen = run["chosen"] instanceof Set ? run["chosen"] : undefined;
  const forgiven = await forgive(deps, seen, {
    fan,
    epoch,
    isChosen: (index) => chosen === undefined || chosen.has(String(index)),
  });
  await repeatSteps(deps, { job, occurrence, fan, epoch }, forgiven);
  const now = { nowMs: deps.clock.nowMs(), clockBoundMs: deps.timings.clockBoundMs };
  const open = shardsIn(forgiven, fan.total, now);
  const isFree = ({ state }: SeenShard): boolean => state.kind !== "running";
  await sendChosen(deps, sender, shardsToSend(open, job.shards?.maxInFlight, isFree));
};

/** Every bucket that has something left to do, as it is afterwards; the others as they are. */
const forgive = async (
  deps: WorkDeps,
  seen: readonly SeenBucket[],
  {
    fan,
    epoch,
    isChosen,
  }: { readonly fan: FanOut; readonly epoch: number; isChosen(index: number): boolean },
): Promise<readonly SeenBucket[]> => {
  const after = [...seen];
  await eachAtOnce(seen.entries(), 16, async ([place, bucket]) => {
    const { full, failed } = bucketCounts(bucket.item, { ...bucket, total: fan.total });
    if (full && failed === 0) return;
    const seats = [...failedSeatsIn(bucket.item)].filter((seat) =>
      isChosen(indexOfShard({ ...bucket, seat }, fan.total)),
    );
    const at = { occurrence: fan.occurrence, plan: fan.plan, ...bucket };
    const by = { epoch, nowMs: deps.clock.nowMs() };
    const { item } = await repeated(() => deps.table.write(forgiveShards(at, seats, by)));
    after[place] = { ...bucket, item };
  });
  return after;
};
