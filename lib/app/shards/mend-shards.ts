import { type Occurrence, runIdOf } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { type FanOut, fanOutOf, fullNumbers, noteSeen } from "../../core/shards/fan-out.ts";
import { bucketCounts } from "../../core/shards/seats.ts";
import { PER_STRIDE, strideSize } from "../../core/shards/shards.ts";
import { HOUR_MS, MINUTE_MS } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { joinIfFull, repeatSteps, type SeenBucket } from "./join.ts";
import { sendChosen } from "./send-shards.ts";
import { openStrides, readBuckets, type SeenShard, shardsIn, shardsToSend } from "./shard-state.ts";

type MendDeps = Pick<Deps, "table" | "queue" | "clock" | "timers" | "journal" | "timings">;

interface InShards {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
  readonly run: Item | undefined;
}

/** A pass has a minute; what is left is sent by the next look. */
const MOST_SENT = PER_STRIDE;

/**
 * The watchdog's look at a run in its shards: the steps that a crash may have left out are done again, and the shards
 * that nobody has any more are sent. Those that have not started are taken for lost only after none has ended for so
 * long as an attempt may take: before that they are a backlog, and sending them again would only lengthen it.
 */
export const mendShards = async (deps: MendDeps, { job, occurrence, run }: InShards): Promise<void> => {
  const fan = fanOutOf(occurrence, run);
  if (run === undefined || fan === undefined) return;
  await joinIfFull(deps, { job, occurrence }, run);
  const seen = await readBuckets(deps, fan, openStrides(fan, run));
  await repeatSteps(deps, { job, occurrence, fan, epoch: Number(run["ep"]) }, seen);
  const nowMs = deps.clock.nowMs();
  const stalled = await noteProgress(deps, { job, occurrence, run }, overIn(run, fan, seen));
  const isWanted = ({ state }: SeenShard): boolean => {
    if (state.kind === "lost") return true;
    if (state.kind === "waiting") return Number(state.seat?.dueAtMs) + MINUTE_MS <= nowMs;
    return state.kind === "idle" && stalled;
  };
  const shards = shardsIn(seen, fan.total, { nowMs, clockBoundMs: deps.timings.clockBoundMs });
  const wanted = shardsToSend(shards, job.shards?.maxInFlight, isWanted).slice(0, MOST_SENT);
  if (wanted.length === 0) return;
  await sendChosen(deps, { job, occurrence, fan, run }, wanted);
  deps.journal.notice("info", "sent-again", { runId: runIdOf(occurrence), shards: wanted.length });
};

const overIn = (run: Item, { total }: FanOut, seen: readonly SeenBucket[]): number => {
  const inFull = [...fullNumbers(run)].reduce((sum, stride) => sum + strideSize(stride, total), 0);
  return seen.reduce((sum, bucket) => {
    const { done, failed } = bucketCounts(bucket.item, { ...bucket, total });
    return sum + done + failed;
  }, inFull);
};

/** Has none ended since the last look that saw one end, for longer than an attempt may take? */
const noteProgress = async (
  { table, clock, timings }: MendDeps,
  { job, occurrence, run }: InShards,
  over: number,
): Promise<boolean> => {
  const nowMs = clock.nowMs();
  const lastAtMs = run?.["seenAtMs"] === undefined ? undefined : Number(run["seenAtMs"]);
  const grew = lastAtMs === undefined || over > Number(run?.["seen"]);
  const nudges = Number(run?.["nudges"] ?? 0);
  const attemptMs = job.timeoutMs + timings.leaseMs + timings.clockBoundMs;
  // Sent again and again, while no worker is there, they would be a backlog of their own.
  const stallMs = Math.min(Math.max(HOUR_MS, attemptMs), attemptMs * 2 ** Math.min(10, nudges));
  if (!grew && nowMs - lastAtMs < stallMs) return false;
  const look = { seen: over, nowMs, nudges: grew ? 0 : nudges + 1 };
  const { written } = await table.write(noteSeen(occurrence, lastAtMs, look));
  return written && !grew;
};
