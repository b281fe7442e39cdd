import { isManualKey, type Occurrence, runIdOf } from "../../core/identity.ts";
import { lockKey } from "../../core/items.ts";
import { holdersOf, releaseHolder, removeWaiter, waitersOf } from "../../core/runs/lock.ts";
import { markCancelled, markDead } from "../../core/runs/marks.ts";
import { isTerminal } from "../../core/runs/run.ts";
import { fenceOf } from "../../core/runs/run-attributes.ts";
import { isUnheld, mayHaveShards } from "../../core/shards/fan-out.ts";
import { putOffEnd } from "../../core/shards/stop.ts";
import type { Item, Write } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { type RemovedJob, removedJob } from "../removed-job.ts";
import { cancelOpenShards, stopShards } from "../shards/stop-shards.ts";
import { lookAt } from "./looks.ts";

type RemovedDeps = Pick<Deps, "table" | "clock" | "random" | "journal" | "timings">;

/** A run whose job no deployment has any more. */
interface Orphan {
  readonly occurrence: Occurrence;
  readonly run: Item | undefined;
  readonly removed: RemovedJob | undefined;
}

/** Ends such a run, since no worker will, and takes it out of the lock; a parked one is left to a person. */
export const endOrphan = async (
  deps: RemovedDeps,
  { occurrence, run }: Pick<Orphan, "occurrence" | "run">,
): Promise<void> => {
  const { table, clock, timings } = deps;
  const state = run?.["st"];
  if (state === "parked") return;
  const entries = lockEntries(occurrence, await table.get(lockKey(occurrence.subject), { consistent: true }));
  // A note without record and entry: whoever made it ended before asking for the run.
  if (state === undefined && entries.length === 0) return;
  if (!isTerminal(String(state))) {
    const orphan = { occurrence, run, removed: await removedJob(deps, occurrence.subject) };
    const waitMs = waitBeforeEndMs(deps, orphan);
    if (waitMs > 0) return lookAt(deps, occurrence, { atMs: clock.nowMs() + waitMs });
    const became = await end(deps, orphan);
    if (became === "refused") return lookAt(deps, occurrence, { atMs: clock.nowMs() + timings.firstLookMs });
    if (became === "parked") return;
  }
  for (const entry of entries) await table.write(entry);
};

/** T9 of all that the lock has of the run; there is nobody to hand over to, since those who wait end too. */
const lockEntries = (occurrence: Occurrence, lock: Item | undefined): readonly Write[] => {
  const mine = (entry: { readonly slotKey: string }) => entry.slotKey === occurrence.slotKey;
  return [
    ...holdersOf(lock)
      .filter(mine)
      .map(({ epoch }) => releaseHolder(occurrence, epoch)),
    ...waitersOf(lock)
      .filter(mine)
      .map(({ text }) => removeWaiter(occurrence.subject, text)),
  ];
};

/** 0 = now. Older code may still run beside newer for a moment after a deploy, and a lease may still be held. */
const waitBeforeEndMs = ({ clock, timings }: RemovedDeps, { run, removed }: Orphan): number => {
  const nowMs = clock.nowMs();
  const removedAtMs = removed?.removedAtMs ?? nowMs;
  if (nowMs < removedAtMs + timings.firstLookMs) return timings.firstLookMs;
  if (run?.["st"] !== "running" || isUnheld(run)) return 0;
  const leaseOverMs = Number(run["leaseUntilMs"]) + timings.clockBoundMs;
  return leaseOverMs < nowMs ? 0 : leaseOverMs - nowMs + timings.leaseMs / 2;
};

const REASON = "job removed";
const REMOVED = { name: "JobRemoved", message: "its job was removed before it was over" };

/** T8; of a lost attempt under the same condition as the dead letters', never over a live lease. */
const end = async (
  deps: RemovedDeps,
  { occurrence, run, removed }: Orphan,
): Promise<"cancelled" | "parked" | "refused"> => {
  const lost = run?.["st"] === "running";
  if (lost && isUnheld(run)) {
    const stop = await cancelOpenShards(deps, { occurrence, run }, REASON);
    return stop?.kind === "ended" ? "cancelled" : "refused";
  }
  const state = lost && removed?.job.onUnknown === "park" ? "parked" : "cancelled";
  const trigger = isManualKey(occurrence.slotKey) ? "manual" : "schedule";
  const mark = {
    occurrence,
    epoch: Number(run?.["ep"] ?? 1),
    token: deps.random.token(),
    nowMs: deps.clock.nowMs(),
    reason: REASON,
  };
  const write = lost
    ? markDead({ ...mark, state, clockBoundMs: deps.timings.clockBoundMs, error: REMOVED })
    : markCancelled({
        ...mark,
        seenFence: fenceOf(run),
        trigger,
        locked: run?.["st"] === undefined,
        parkedToo: false,
      });
  const isPutOff = state === "cancelled" && mayHaveShards({}, run);
  const answer = await deps.table.write(isPutOff ? putOffEnd(write) : write);
  if (!answer.written) return "refused";
  deps.journal.notice("warn", "unknown-job", { runId: runIdOf(occurrence), state, reason: REASON });
  const stop = isPutOff ? await stopShards(deps, { occurrence, run: answer.item }) : undefined;
  return stop?.kind === "stopping" ? "refused" : state;
};
