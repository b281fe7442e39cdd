import { bucketKey } from "../../core/items.ts";
import type { ShardMessage } from "../../core/runs/message.ts";
import { type Seat, seatIn } from "../../core/shards/seats.ts";
import { failLostShard, type ShardStart, startShard } from "../../core/shards/shard-writes.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import type { Deps } from "../deps.ts";
import { DELETE, type Visit, type WorkDeps } from "../path/visit.ts";
import { runShard, type ShardLease } from "./shard-attempt.ts";
import { isShardOver, leaveShard, type ShardVisit, shardVisitOf, storeFailure } from "./shard-visit.ts";

interface Settled {
  readonly kind: "settled";
  readonly settlement: Settlement;
}
type Beginning = { readonly kind: "lease"; readonly lease: ShardLease } | Settled;

const settled = (settlement: Settlement): Settled => ({ kind: "settled", settlement });

type MeetDeps = Pick<Deps, "table" | "queue" | "clock" | "timings">;

/** Each refusal has moved the shard on; more of them in a row mean a broken invariant. */
const MAX_LOOKS = 20;

/** One attempt of a shard, if it may start. Everything is decided by its bucket; nothing else is read. */
export const workOnShard = async (deps: WorkDeps, of: Visit, shard: ShardMessage): Promise<Settlement> => {
  const visit = shardVisitOf(of, shard);
  let seen: Seat | undefined;
  for (let look = 0; look < MAX_LOOKS; look++) {
    const began = await tryToStart(deps, visit, seen);
    if ("again" in began) seen = began.again;
    else return began.kind === "lease" ? runShard(deps, visit, began.lease) : began.settlement;
  }
  return { kind: "return", afterMs: MINUTE_MS };
};

/**
 * What becomes of a shard's message that nobody works on; undefined = the shard may start, and its message should be
 * sent to its pool again.
 */
export const meetShard = async (
  deps: MeetDeps,
  of: Visit,
  shard: ShardMessage,
): Promise<Settlement | undefined> => {
  const visit = shardVisitOf(of, shard);
  const key = bucketKey({ ...visit.fan, ...visit.at.place });
  const met = await refused(deps, visit, await deps.table.get(key, { consistent: true }));
  return "again" in met ? undefined : met.settlement;
};

/** Look again, with the seat as it was seen. */
interface Again {
  readonly again: Seat | undefined;
}

const startOf = (deps: MeetDeps, { at, message, token }: ShardVisit): Omit<ShardStart, "seen"> => {
  // Read before the call: the lease must not end later in the table than in our own eyes.
  const nowMs = deps.clock.nowMs();
  const { leaseMs, clockBoundMs } = deps.timings;
  return { at, epoch: message.epoch, token, nowMs, clockBoundMs, leaseUntilMs: nowMs + leaseMs };
};

const tryToStart = async (
  deps: WorkDeps,
  visit: ShardVisit,
  seen: Seat | undefined,
): Promise<Beginning | Again> => {
  const wanted = startOf(deps, visit);
  const { item, written } = await deps.table.write(startShard({ ...wanted, seen }));
  const seat = seatIn(item, visit.at.place.seat);
  if (seat !== undefined && (written || seat.owner === visit.token)) {
    const untilMs = written ? wanted.leaseUntilMs : Number(seat.leaseUntilMs);
    // A process that slept since it asked for its lease may hold one that is over.
    return deps.clock.nowMs() >= untilMs
      ? settled({ kind: "return", afterMs: deps.timings.clockBoundMs })
      : { kind: "lease", lease: { seat, startedAtMs: wanted.nowMs, untilMs } };
  }
  return refused(deps, visit, item);
};

/** What a shard that refused to start means: docs/protocol.md, "Shards", row by row. */
const refused = async (
  deps: MeetDeps,
  visit: ShardVisit,
  item: Item | undefined,
): Promise<Settled | Again> => {
  const { at, job, message } = visit;
  const nowMs = deps.clock.nowMs();
  const { leaseMs, clockBoundMs } = deps.timings;
  if (isShardOver(item, at.place.seat)) return settled(await leaveShard(deps, visit, item));
  // The run was stopped.
  if (Number(item?.["least"] ?? 0) > message.epoch) return settled(DELETE);
  const seat = seatIn(item, at.place.seat);
  if (seat?.leaseUntilMs !== undefined) {
    if (seat.leaseUntilMs < nowMs - clockBoundMs) return meetLost(deps, visit, seat);
    return settled({ kind: "return", afterMs: job.timeoutMs + leaseMs + clockBoundMs });
  }
  if (seat?.dueAtMs !== undefined && seat.dueAtMs > nowMs) {
    return settled({ kind: "return", afterMs: seat.dueAtMs - nowMs });
  }
  return { again: seat };
};

const LOST = {
  name: "WorkerLost",
  message: "the worker ended without a result: killed, out of memory, or cut off from the table",
};

/** Its worker was lost: another attempt, unless that was once too often, or must not be. */
const meetLost = async (deps: MeetDeps, visit: ShardVisit, seat: Seat): Promise<Settled | Again> => {
  const { retry, onUnknown } = visit.job;
  const crashes = seat.crashes + 1;
  if (onUnknown !== "park" && crashes <= retry.crashes) return { again: seat };
  await storeFailure(deps, visit, { error: LOST, attempts: seat.attempts + crashes });
  const { item } = await deps.table.write(failLostShard(startOf(deps, visit), seat));
  if (!isShardOver(item, visit.at.place.seat)) return { again: undefined };
  return settled(await leaveShard(deps, visit, item));
};
