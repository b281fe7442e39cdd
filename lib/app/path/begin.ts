import { runIdOf } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { stopReason } from "../../core/runs/marks.ts";
import { isTerminal } from "../../core/runs/run.ts";
import {
  claim,
  start,
  type TakeOver,
  takeOverAndEnd,
  takeOverAndRun,
  triesWith,
} from "../../core/runs/transitions.ts";
import { isUnheld, mayHaveShards } from "../../core/shards/fan-out.ts";
import { putOffEnd } from "../../core/shards/stop.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import { joinIfFull } from "../shards/join.ts";
import { leaveStopping } from "../shards/leave-stopping.ts";
import { isLocked, listedInLock, release } from "./lock-keeper.ts";
import { fitsInline } from "./side.ts";
import { tellEnd } from "./tell-end.ts";
import { attemptPlace, DELETE, type Lease, leave, type Visit, type WorkDeps } from "./visit.ts";

export type Beginning =
  | { readonly kind: "lease"; readonly lease: Lease }
  | { readonly kind: "settled"; readonly settlement: Settlement };

const settled = (settlement: Settlement): Beginning => ({ kind: "settled", settlement });

/** A refused start and a refused take-over send each other back; each time the record has moved on. */
const MAX_LOOKS = 20;

/** T2, or T3 where the last attempt was lost. */
export const begin = async (deps: WorkDeps, visit: Visit): Promise<Beginning> => {
  for (let look = 0; look < MAX_LOOKS; look++) {
    const began = await tryToBegin(deps, visit);
    if (began !== "again") return began;
  }
  return settled({ kind: "return", afterMs: MINUTE_MS });
};

const tryToBegin = async (deps: WorkDeps, visit: Visit): Promise<Beginning | "again"> => {
  const { job, message, token } = visit;
  const { clock, timings } = deps;
  // Read before the call: the lease must not end later in the table than in our own eyes.
  const nowMs = clock.nowMs();
  const leaseUntilMs = nowMs + timings.leaseMs;
  const answer = await deps.table.write(
    start({
      ...visit,
      epoch: message.epoch,
      nowMs,
      leaseUntilMs,
      locked: isLocked(job),
      trigger: message.trigger,
      queuedAtMs: message.queuedAtMs,
      ...(job.input !== null && fitsInline(job.input) ? { input: job.input } : {}),
    }),
  );
  if (answer.written) return entered(deps, { item: answer.item, startedAtMs: nowMs, untilMs: leaseUntilMs });
  const item = answer.item;
  if (item?.["st"] === "running" && item["own"] === token) {
    const untilMs = Number(item["leaseUntilMs"]);
    return entered(deps, { item, startedAtMs: Number(item["attemptAtMs"]), untilMs });
  }
  return refused(deps, visit, item);
};

/** A process that slept since it asked for its lease may hold one that is over: it must not enter the handler. */
const entered = (deps: WorkDeps, lease: Lease): Beginning =>
  deps.clock.nowMs() >= lease.untilMs
    ? settled({ kind: "return", afterMs: deps.timings.clockBoundMs })
    : { kind: "lease", lease };

/** What a run that refused to start means: docs/protocol.md, T2, row by row. */
const refused = async (
  deps: WorkDeps,
  visit: Visit,
  item: Item | undefined,
): Promise<Beginning | "again"> => {
  const { job, message } = visit;
  const nowMs = deps.clock.nowMs();
  const state = item?.["st"];
  if (Number(item?.["ep"] ?? 0) > message.epoch || isTerminal(String(state))) {
    return settled(await leave(deps, visit));
  }
  if (state === "parked") return settled(DELETE);
  if (state === "waiting" && Number(item?.["nextAttemptAtMs"]) > nowMs) {
    return settled({ kind: "return", afterMs: Number(item?.["nextAttemptAtMs"]) - nowMs });
  }
  if (state === "running" && item !== undefined) return meetRunning(deps, visit, item);
  if (state === undefined && (await adoptFromLock(deps, visit))) return "again";
  if (state === undefined && (!isLocked(job) || message.epoch > 1)) {
    // The claim or the retry made the record, and only its retention removes it.
    deps.journal.notice("error", "record-gone", { runId: runIdOf(visit.occurrence) });
    return settled(DELETE);
  }
  return "again";
};

const meetRunning = async (deps: WorkDeps, visit: Visit, item: Item): Promise<Beginning | "again"> => {
  const { leaseMs, clockBoundMs } = deps.timings;
  if (isUnheld(item)) {
    // Its shards are on their way, or over.
    await joinIfFull(deps, visit, item);
    return settled(DELETE);
  }
  if (Number(item["leaseUntilMs"]) < deps.clock.nowMs() - clockBoundMs) return takeOver(deps, visit, item);
  // Live elsewhere. One return per attempt, not one per lease: the watchdog is the fast way back.
  return settled({ kind: "return", afterMs: visit.job.timeoutMs + leaseMs + clockBoundMs });
};

/**
 * A job that allows overlap now, but did not when this run was claimed: the claim is in the lock alone. It gets the
 * record that it would have, and leaves the lock to the next. Answers whether there was such a claim.
 */
const adoptFromLock = async (
  deps: WorkDeps,
  { job, occurrence, message, token }: Visit,
): Promise<boolean> => {
  if (isLocked(job) || message.epoch > 1) return false;
  if (!(await listedInLock(deps.table, job.subject)).has(occurrence.slotKey)) return false;
  const { trigger, queuedAtMs: nowMs } = message;
  await deps.table.write(claim({ occurrence, token, nowMs, trigger }));
  await release(deps, { job, occurrence, epoch: message.epoch });
  return true;
};

const LOST: { readonly name: string; readonly message: string } = {
  name: "WorkerLost",
  message: "the worker ended without a result: killed, out of memory, or cut off from the table",
};

/** T3: the lease of the last attempt ended without a result. */
const takeOver = async (deps: WorkDeps, visit: Visit, item: Item): Promise<Beginning | "again"> => {
  const { job, occurrence, token } = visit;
  const nowMs = deps.clock.nowMs();
  const crashes = Number(item["crashes"] ?? 0);
  const wanted: TakeOver = {
    occurrence,
    token,
    seenFence: Number(item["fence"]),
    nowMs,
    clockBoundMs: deps.timings.clockBoundMs,
    tries: triesWith(item["tries"], {
      ...attemptPlace(item),
      startedAtMs: Number(item["attemptAtMs"]),
      endedAtMs: Number(item["leaseUntilMs"]),
      outcome: "lost",
      error: LOST.message,
    }),
  };
  const end = endOfLostRun(job, item, crashes + 1);
  if (end !== undefined) {
    const isPutOff = end.state !== "parked" && mayHaveShards(job, item);
    const write = takeOverAndEnd(wanted, { ...end, error: LOST });
    const answer = await deps.table.write(isPutOff ? putOffEnd(write) : write);
    if (!answer.written && answer.item?.["own"] !== token) return "again";
    tellEnd(deps, visit, end);
    if (isPutOff) return settled(await leaveStopping(deps, visit, answer.item));
    return settled(end.state === "parked" ? DELETE : await leave(deps, visit));
  }
  const leaseUntilMs = nowMs + deps.timings.leaseMs;
  const answer = await deps.table.write(takeOverAndRun(wanted, leaseUntilMs));
  if (!answer.written && answer.item?.["own"] !== token) return "again";
  const lease = { item: answer.item ?? item, startedAtMs: nowMs, untilMs: leaseUntilMs };
  return entered(deps, lease);
};

const endOfLostRun = (job: JobDefinition, item: Item, crashes: number) => {
  const wish = stopReason(item);
  if (wish !== undefined) return { state: "cancelled", reason: wish } as const;
  if (job.onUnknown === "park") {
    return { state: "parked", reason: "the worker was lost: nobody knows how far the attempt came" } as const;
  }
  if (crashes > job.retry.crashes) {
    return { state: "dead", reason: `the worker was lost ${crashes} times` } as const;
  }
  return undefined;
};
