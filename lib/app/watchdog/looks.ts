import { factOf, judgedAtMs } from "../../core/health/health-facts.ts";
import { isManualKey, type Occurrence, runIdOf } from "../../core/identity.ts";
import { lockKey, OLDEST_DELIVERY_MS, openKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { type Holder, holdersOf, nudgeHolder, waitersOf } from "../../core/runs/lock.ts";
import { nudge } from "../../core/runs/marks.ts";
import { isTrigger, type Trigger } from "../../core/runs/message.ts";
import { isTerminal } from "../../core/runs/run.ts";
import { phaseOf } from "../../core/shards/fan-out.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../core/time.ts";
import { type Item, set, type Value } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { claimAndSend } from "../path/claims.ts";
import { isLocked, release } from "../path/lock-keeper.ts";
import { mendShards } from "../shards/mend-shards.ts";
import { stopShards } from "../shards/stop-shards.ts";

type LookDeps = Pick<Deps, "table" | "queue" | "clock" | "timers" | "random" | "journal" | "timings">;

/** A note that is written while a pass reads must lie ahead of what the pass has read. */
const SOONEST_LOOK_MS = 5 * SECOND_MS;

/** An attempt set that somebody is about to ask for: its note is written before its record. */
export interface Promised {
  readonly epoch: number;
  readonly askedAtMs: number;
}

/**
 * Whoever asked for a run may sleep between the note and the record, but no longer than an invocation can last (15
 * minutes). Until then a note without its record is kept.
 */
export const LONGEST_ASK_MS = 20 * MINUTE_MS;

/**
 * Notes "look at this run then" for the watchdog. Looking once too often does no harm; a note that lands behind what
 * the watchdog has read is never seen, so whoever slept over its instant writes it again.
 */
export const lookAt = async (
  { table, clock }: Pick<Deps, "table" | "clock">,
  occurrence: Occurrence,
  { atMs, promised }: { readonly atMs: number; readonly promised?: Promised },
): Promise<void> => {
  const of = promised === undefined ? [] : [set("ep", promised.epoch), set("askedAtMs", promised.askedAtMs)];
  let lookAtMs: number;
  do {
    lookAtMs = Math.max(atMs, clock.nowMs() + SOONEST_LOOK_MS);
    const expiresAtS = Math.floor((lookAtMs + OLDEST_DELIVERY_MS) / SECOND_MS);
    await table.write({
      key: openKey(occurrence, lookAtMs),
      changes: [set("expiresAtS", expiresAtS), ...of],
    });
  } while (clock.nowMs() >= lookAtMs);
};

/** To be awaited before the record of a run that no slot leads to, or of a new attempt set, is written. */
export const noteAsk = (
  deps: Pick<Deps, "table" | "clock" | "timings">,
  occurrence: Occurrence,
  epoch: number,
): Promise<void> => {
  const askedAtMs = deps.clock.nowMs();
  return lookAt(deps, occurrence, {
    atMs: askedAtMs + deps.timings.firstLookMs,
    promised: { epoch, askedAtMs },
  });
};

/** What an OPEN item promises, if anything. */
export const promisedIn = (note: Item): Promised | undefined =>
  note["ep"] === undefined ? undefined : { epoch: Number(note["ep"]), askedAtMs: Number(note["askedAtMs"]) };

/** Keeps a note whose record has not come yet; in the end whoever wrote it has ended without asking. */
export const keepPromise = async (
  deps: Pick<Deps, "table" | "clock" | "timings">,
  { occurrence, run }: Pick<OpenRun, "occurrence" | "run">,
  promised: Promised | undefined,
): Promise<void> => {
  if (promised === undefined || Number(run?.["ep"] ?? 0) >= promised.epoch) return;
  const nowMs = deps.clock.nowMs();
  if (nowMs > promised.askedAtMs + LONGEST_ASK_MS) return;
  await lookAt(deps, occurrence, { atMs: nowMs + 2 * deps.timings.firstLookMs, promised });
};

/** A run that was not over when the watchdog looked. */
export interface OpenRun {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
  /** RUN; without `st` when the claim of a locked job is all there is. */
  readonly run: Item | undefined;
}

/**
 * Mends what can be mended of a run that is not over, and notes the next look. False: there is no such run; whoever
 * noted it ended before asking for it.
 */
export const look = async (deps: LookDeps, open: OpenRun): Promise<boolean> => {
  const state = open.run?.["st"];
  if (state === "parked" || isTerminal(String(state))) return true;
  // Also of a job that allows overlap: what was claimed before a deploy changed that is in its lock, and nowhere else.
  if (state === undefined) return lookAtLocked(deps, open);
  if (state === "running" && phaseOf(open.run) === "shards") await lookAtShards(deps, open);
  else if (state === "running" && phaseOf(open.run) === "stop") await lookAtStopping(deps, open);
  else if (state === "running") await lookAtRunning(deps, open);
  else if (state === "waiting") await lookAtWaiting(deps, open);
  else if (isLocked(open.job)) await lookAtLocked(deps, open);
  else await lookAtQueued(deps, open);
  return true;
};

const lookAtShards = async (deps: LookDeps, open: OpenRun): Promise<void> => {
  const { leaseMs, clockBoundMs } = deps.timings;
  await mendShards(deps, open);
  await lookAgain(deps, open, deps.clock.nowMs() + leaseMs + clockBoundMs);
};

/** The last look finds it over, and judges its end. */
const lookAtStopping = async (deps: LookDeps, open: OpenRun): Promise<void> => {
  const { job, occurrence, run } = open;
  const stop = await stopShards(deps, { occurrence, run });
  if (stop.kind === "ended" && isLocked(job)) {
    await release(deps, { job, occurrence, epoch: Number(run?.["ep"]) });
  }
  await lookAgain(deps, open, stop.kind === "ended" ? deps.clock.nowMs() : stop.quietAtMs);
};

const lookAtQueued = async (deps: LookDeps, open: OpenRun): Promise<void> => {
  await sendAgain(deps, open, open.run?.["nudgedAtMs"]);
  await lookAgain(deps, open, deps.clock.nowMs() + distanceMs(deps, open.run));
};

/** At the latest when the run would be late, or overrun: then it is told. */
export const lookAgain = (
  deps: Pick<LookDeps, "table" | "clock" | "timings">,
  { job, occurrence, run }: OpenRun,
  atMs: number,
): Promise<void> => {
  const fact = factOf(occurrence, run, { fires: true, clockBoundMs: deps.timings.clockBoundMs });
  const dueMs = judgedAtMs(job, fact);
  const isAhead = dueMs !== undefined && dueMs > deps.clock.nowMs();
  return lookAt(deps, occurrence, { atMs: isAhead ? Math.min(atMs, dueMs) : atMs });
};

/** The distance between sends of the same queued run doubles, from the first look's to an hour. */
const distanceMs = ({ timings }: LookDeps, run: Item | undefined): number =>
  Math.min(HOUR_MS, timings.firstLookMs * 2 ** Math.min(10, Number(run?.["nudges"] ?? 0) + 1));

/** Its lease ended: the message that its worker held comes back only with the queue's visibility. */
const lookAtRunning = async (deps: LookDeps, open: OpenRun): Promise<void> => {
  const { clock, timings } = deps;
  const leaseOverMs = Number(open.run?.["leaseUntilMs"]) + timings.clockBoundMs;
  if (leaseOverMs < clock.nowMs()) await sendAgain(deps, open, open.run?.["nudgedAtMs"]);
  await lookAgain(deps, open, Math.max(leaseOverMs, clock.nowMs()) + timings.leaseMs / 2);
};

/** The message is a convenience: one that was lost costs a minute. */
const lookAtWaiting = async (deps: LookDeps, open: OpenRun): Promise<void> => {
  const dueMs = Number(open.run?.["nextAttemptAtMs"]) + MINUTE_MS;
  const nowMs = deps.clock.nowMs();
  if (dueMs <= nowMs) await sendAgain(deps, open, open.run?.["nudgedAtMs"]);
  await lookAgain(deps, open, dueMs <= nowMs ? nowMs + distanceMs(deps, open.run) : dueMs);
};

/** Queued by its lock: as a holder it is sent again; as neither holder nor waiter it is claimed. */
const lookAtLocked = async (deps: LookDeps, open: OpenRun): Promise<boolean> => {
  const { job, occurrence, run } = open;
  const lock = await deps.table.get(lockKey(job.subject), { consistent: true });
  const epoch = Number(run?.["ep"] ?? 1);
  const mine = (entry: { readonly slotKey: string; readonly epoch: number }) =>
    entry.slotKey === occurrence.slotKey && entry.epoch === epoch;
  const holder = holdersOf(lock).find(mine);
  const known = run?.["st"] !== undefined || waitersOf(lock).some(mine);
  const nowMs = deps.clock.nowMs();
  if (holder !== undefined) {
    await sendHolderAgain(deps, open, holder);
    const newestMs = Math.max(
      holder.sentAtMs,
      Number(run?.["contAtMs"] ?? 0),
      Number(run?.["joinAtMs"] ?? 0),
    );
    const sinceMs = nowMs - newestMs;
    await lookAgain(deps, open, nowMs + holderDistanceMs(deps, sinceMs));
  } else if (known) {
    if (isLocked(job)) await claimAndSend(deps, askOf(deps, open), deps.random.token());
    else await send(deps, open);
    await lookAgain(deps, open, nowMs + distanceMs(deps, run));
  }
  return holder !== undefined || known;
};

/** Nothing counts the sends of a holder: the time since the last one, or the last piece, is the distance that doubles. */
const holderDistanceMs = ({ timings }: LookDeps, sinceLastMs: number): number =>
  Math.min(HOUR_MS, 2 * Math.max(timings.firstLookMs, sinceLastMs));

const triggerOf = (run: Item | undefined, slotKey: string): Trigger => {
  const trigger: Value | undefined = run?.["trigger"];
  return isTrigger(trigger) ? trigger : isManualKey(slotKey) ? "manual" : "schedule";
};

const askOf = ({ clock }: LookDeps, { job, occurrence, run }: OpenRun) => ({
  job,
  occurrence,
  epoch: Number(run?.["ep"] ?? 1),
  trigger: triggerOf(run, occurrence.slotKey),
  queuedAtMs: Number(run?.["reopenedAtMs"] ?? run?.["claimedAtMs"] ?? clock.nowMs()),
  recorded: run?.["st"] !== undefined,
});

const send = async (deps: LookDeps, open: OpenRun): Promise<void> => {
  const { job, occurrence, epoch, trigger, queuedAtMs } = askOf(deps, open);
  await deps.queue.send(job.pool, { ...occurrence, epoch, trigger, queuedAtMs });
  deps.journal.notice("info", "sent-again", {
    runId: runIdOf(occurrence),
    state: String(open.run?.["st"] ?? "claimed"),
  });
};

const sendAgain = async (deps: LookDeps, open: OpenRun, seen: Value | undefined): Promise<void> => {
  const seenAtMs = typeof seen === "number" ? seen : undefined;
  const token = deps.random.token();
  const answer = await deps.table.write(
    nudge(open.occurrence, seenAtMs, { nowMs: deps.clock.nowMs(), token }),
  );
  // Refused by our own write, whose answer was lost, is written.
  if (answer.written || answer.item?.["nudgedBy"] === token) await send(deps, open);
};

const sendHolderAgain = async (deps: LookDeps, open: OpenRun, holder: Holder): Promise<void> => {
  const token = deps.random.token();
  const nowMs = deps.clock.nowMs();
  const answer = await deps.table.write(nudgeHolder(open.job.subject, holder, { nowMs, token }));
  const entry = holdersOf(answer.item).find(({ slotKey }) => slotKey === holder.slotKey);
  if (answer.written || entry?.nudgedBy === token) await send(deps, open);
};
