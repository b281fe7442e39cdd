import { type Occurrence, runIdOf } from "../../core/identity.ts";
import { runKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { catchesUpSeveral } from "../../core/jobs/misfire.ts";
import {
  type Class,
  type Contender,
  claimLock,
  type Holder,
  hasRoom,
  holdersOf,
  joinWaiters,
  type Waiter,
  waitersOf,
} from "../../core/runs/lock.ts";
import { askToStop, markAbsent, markCancelled } from "../../core/runs/marks.ts";
import type { Trigger } from "../../core/runs/message.ts";
import { fenceOf } from "../../core/runs/run-attributes.ts";
import { claim, countDuplicate, hasRoomForDuplicate } from "../../core/runs/transitions.ts";
import { isUnheld, mayHaveShards } from "../../core/shards/fan-out.ts";
import { putOffEnd } from "../../core/shards/stop.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { cancelOpenShards, stopShards } from "../shards/stop-shards.ts";
import {
  catchesUpInLine,
  isLocked,
  type LockDeps,
  lockBusy,
  MAX_LOOKS,
  maxHolders,
  policyOf,
  release,
  releaseEnded,
  wakeWaiters,
} from "./lock-keeper.ts";

/** An occurrence that should run. */
export interface Ask {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
  readonly epoch: number;
  readonly trigger: Trigger;
  readonly queuedAtMs: number;
  /**
   * Its RUN is there already, made by T1: a run by hand, a backfill, a caught-up slot that must wait, or any run with
   * an input of its own.
   */
  readonly recorded: boolean;
}

export type ClaimOutcome = "claimed" | "waiting" | "duplicate" | "skipped";

/** A live slot waits behind a run by hand, but one at most, so that live slots do not pile up. */
const MAX_LIVE_WAITERS = 1;

/**
 * With `queue`, of slots that come in time; a job that falls further behind than that has a problem that waiting does
 * not solve.
 */
const MAX_QUEUED = 16;

export const classOf = ({ job, trigger, epoch }: Pick<Ask, "job" | "trigger" | "epoch">): Class => {
  if (epoch > 1 || trigger === "manual") return 1;
  return trigger === "backfill" || (trigger === "watchdog" && catchesUpInLine(job)) ? 2 : 0;
};

export type ClaimDeps = LockDeps & Pick<Deps, "journal" | "timings">;

/** One claim that the lock refused. */
interface Refusal {
  readonly ask: Ask;
  readonly token: string;
  readonly contender: Contender;
  /** Whether the run has a record is not known yet. */
  readonly runUnread: boolean;
  /** The lock as it refused. */
  readonly lock: Item | undefined;
}

/** What a refusal means: done, or claim again - with the class that the run's own record says, once it is read. */
type Look =
  | { readonly kind: "done"; readonly outcome: ClaimOutcome }
  | { readonly kind: "again"; readonly contender?: Contender };

const AGAIN: Look = { kind: "again" };
const done = (outcome: ClaimOutcome): Look => ({ kind: "done", outcome });

const send = ({ queue }: ClaimDeps, ask: Ask): Promise<void> =>
  queue.send(ask.job.pool, {
    ...ask.occurrence,
    epoch: ask.epoch,
    trigger: ask.trigger,
    queuedAtMs: ask.queuedAtMs,
  });

const duplicate = async (
  { table, clock, journal }: ClaimDeps,
  { ask, token }: Pick<Refusal, "ask" | "token">,
  run: Item | undefined,
): Promise<ClaimOutcome> => {
  journal.notice("info", "duplicate-delivery", { runId: runIdOf(ask.occurrence), trigger: ask.trigger });
  if (hasRoomForDuplicate(run?.["dup"])) {
    await table.write(countDuplicate(ask.occurrence, token, clock.nowMs()));
  }
  return "duplicate";
};

/** T1: for a job that allows overlap the claim makes the record. */
const claimRun = async (deps: ClaimDeps, ask: Ask, token: string): Promise<ClaimOutcome> => {
  const answer = await deps.table.write(claim({ ...ask, token, nowMs: ask.queuedAtMs }));
  const mine = answer.written || (answer.item?.["own"] === token && answer.item["ep"] === 1);
  if (!mine) return duplicate(deps, { ask, token }, answer.item);
  await send(deps, ask);
  return "claimed";
};

/** T1L: for any other job the claim is the lock. */
const claimLocked = async (deps: ClaimDeps, ask: Ask, token: string): Promise<ClaimOutcome> => {
  let contender: Contender = { occurrence: ask.occurrence, epoch: ask.epoch, class: classOf(ask) };
  let newestOnly = !ask.recorded && ask.epoch === 1;
  for (let look = 0; look < MAX_LOOKS; look++) {
    const max = maxHolders(ask.job);
    const answer = await deps.table.write(
      claimLock({ contender, token, nowMs: ask.queuedAtMs, max, newestOnly }),
    );
    if (answer.written) {
      await send(deps, ask);
      return "claimed";
    }
    const seen = await decide(deps, { ask, token, contender, runUnread: newestOnly, lock: answer.item });
    if (seen.kind === "done") return seen.outcome;
    if (seen.contender === undefined) continue;
    contender = seen.contender;
    newestOnly = false;
  }
  throw lockBusy(ask.job);
};

/** What a lock that refused the claim means: docs/protocol.md, T1L, row by row. */
const decide = async (deps: ClaimDeps, refusal: Refusal): Promise<Look> => {
  const { ask, contender, runUnread, lock } = refusal;
  const { slotKey } = ask.occurrence;
  const holding = holdersOf(lock).find((holder) => holder.slotKey === slotKey);
  if (holding !== undefined) return meetOwnHolder(deps, refusal, holding);
  const waiting = waitersOf(lock).find((waiter) => waiter.slotKey === slotKey);
  if (waiting !== undefined) return meetOwnWaiter(deps, refusal, waiting);
  const policy = policyOf(ask.job);
  if (policy === "replace" && isSuperseded(refusal)) {
    return skip(deps, refusal, { reason: "a newer occurrence is there already", blockedBy: undefined });
  }
  const room = hasRoom(lock, maxHolders(ask.job));
  if (runUnread && (room || policy !== "skip")) return readOwnRun(deps, refusal);
  if (room) return joinWhereThereIsRoom(deps, refusal);
  if (await releaseEnded(deps, ask.job, lock)) return AGAIN;
  if (contender.class !== 0) return join(deps, refusal);
  if (policy === "replace") return replaceHolder(deps, refusal);
  return policy === "skip" ? skipOrJoin(deps, refusal) : queueUp(deps, refusal);
};

/** There is room, and somebody waits for it: in line, unless the line is full and must move first. */
const joinWhereThereIsRoom = async (deps: ClaimDeps, refusal: Refusal): Promise<Look> => {
  if (!isQueueFull(refusal)) return join(deps, refusal);
  await wakeWaiters(deps, refusal.ask.job, refusal.lock);
  return AGAIN;
};

/** With `replace`, a live slot that comes late finds a newer one holding or waiting: it has been replaced already. */
const isSuperseded = ({ ask, contender, lock }: Refusal): boolean =>
  contender.class === 0 &&
  [...holdersOf(lock), ...waitersOf(lock)].some(
    (entry) => entry.class === 0 && entry.slotKey > ask.occurrence.slotKey,
  );

const meetOwnHolder = async (deps: ClaimDeps, refusal: Refusal, holding: Holder): Promise<Look> => {
  const { ask, token } = refusal;
  if (holding.owner === token && holding.epoch === ask.epoch) {
    await send(deps, ask);
    return done("claimed");
  }
  if (holding.epoch >= ask.epoch) {
    const run = await deps.table.get(runKey(ask.occurrence), { consistent: false });
    return done(await duplicate(deps, refusal, run));
  }
  await release(deps, { ...ask, epoch: holding.epoch });
  return AGAIN;
};

const meetOwnWaiter = async (deps: ClaimDeps, { ask, lock }: Refusal, waiting: Waiter): Promise<Look> => {
  if (waiting.epoch < ask.epoch) {
    await release(deps, { ...ask, epoch: waiting.epoch });
    return AGAIN;
  }
  await wakeWaiters(deps, ask.job, lock);
  await releaseEnded(deps, ask.job, lock);
  return done("waiting");
};

/** The lock does not say whether this occurrence ran before; its record does. */
const readOwnRun = async (deps: ClaimDeps, refusal: Refusal): Promise<Look> => {
  const { ask, contender } = refusal;
  const run = await deps.table.get(runKey(ask.occurrence), { consistent: true });
  const asked = run?.["st"] === "queued" && run["ep"] === ask.epoch;
  if (run?.["st"] !== undefined && !asked) return done(await duplicate(deps, refusal, run));
  const trigger = run?.["trigger"];
  const itsClass: Class = trigger === "manual" ? 1 : trigger === "backfill" ? 2 : contender.class;
  return { kind: "again", contender: { ...contender, class: itsClass } };
};

/** What is caught up after an outage waits in slot order too, and takes no live slot's place in the line. */
const caughtUpTogether = ({ misfire }: JobDefinition): number =>
  catchesUpSeveral(misfire) ? misfire.max : 0;

/** Only live slots are counted, and only a live slot is refused; one that replaces waits in any case. */
const isQueueFull = ({ ask, contender, lock }: Refusal): boolean => {
  const policy = policyOf(ask.job);
  if (contender.class !== 0 || policy === "replace") return false;
  const live = waitersOf(lock).filter((waiter) => waiter.class === 0).length;
  return live >= (policy === "queue" ? MAX_QUEUED + caughtUpTogether(ask.job) : MAX_LIVE_WAITERS);
};

const blockerOf = ({ ask, lock }: Refusal): string | undefined => {
  const [blocker] = holdersOf(lock);
  return blocker && runIdOf({ ...ask.occurrence, slotKey: blocker.slotKey });
};

/** Every place is taken by a run that is not over. A live slot skips only for live ones. */
const skipOrJoin = async (deps: ClaimDeps, refusal: Refusal): Promise<Look> => {
  if (holdersOf(refusal.lock).every((holder) => holder.class === 0)) {
    const blockedBy = blockerOf(refusal);
    return skip(deps, refusal, { reason: "the run before it is not over", blockedBy });
  }
  return refusal.runUnread ? readOwnRun(deps, refusal) : queueUp(deps, refusal);
};

const queueUp = async (deps: ClaimDeps, refusal: Refusal): Promise<Look> =>
  isQueueFull(refusal)
    ? skip(deps, refusal, { reason: "queue full", blockedBy: blockerOf(refusal) })
    : join(deps, refusal);

/** The newest slot waits, and the live run in its way is asked to stop; a parked one waits for a person. */
const replaceHolder = async (deps: ClaimDeps, refusal: Refusal): Promise<Look> => {
  const { ask, token, lock } = refusal;
  const [holder] = holdersOf(lock);
  if (holder === undefined || holder.class !== 0) return join(deps, refusal);
  const occurrence = { ...ask.occurrence, slotKey: holder.slotKey };
  const nowMs = deps.clock.nowMs();
  const wish = { nowMs, reason: "replaced" };
  const asked = await deps.table.write(askToStop(occurrence, holder.epoch, wish));
  const state = asked.item?.["st"];
  // Nobody holds it who could be asked.
  if (state === "running" && isUnheld(asked.item)) {
    const stop = await cancelOpenShards(deps, { occurrence, run: asked.item }, "replaced");
    return stop?.kind === "stopping" ? join(deps, refusal) : AGAIN;
  }
  if (asked.written || state === "parked" || state === "running") return join(deps, refusal);
  const mark = markCancelled({
    occurrence,
    epoch: holder.epoch,
    seenFence: fenceOf(asked.item),
    token,
    nowMs,
    trigger: "schedule",
    reason: "replaced",
    locked: true,
    parkedToo: false,
  });
  if (mayHaveShards(ask.job, asked.item)) {
    const { written, item } = await deps.table.write(putOffEnd(mark));
    const stop = written ? await stopShards(deps, { occurrence, run: item }) : undefined;
    return stop?.kind === "stopping" ? join(deps, refusal) : AGAIN;
  }
  await deps.table.write(mark);
  // Over now, or started meanwhile: the next look releases it, or asks it to stop.
  return AGAIN;
};

/** T8, skipped by overlap. */
const skip = async (
  deps: ClaimDeps,
  refusal: Refusal,
  { reason, blockedBy }: { readonly reason: string; readonly blockedBy: string | undefined },
): Promise<Look> => {
  const { occurrence, trigger } = refusal.ask;
  const nowMs = deps.clock.nowMs();
  const because = blockedBy === undefined ? { reason } : { reason, blockedBy };
  const answer = await deps.table.write(
    markAbsent({ occurrence, state: "skipped", nowMs, trigger, ...because }),
  );
  if (!answer.written) return done(await duplicate(deps, refusal, answer.item));
  deps.journal.notice("info", "skipped", { runId: runIdOf(occurrence), ...because });
  return done("skipped");
};

/** T11, then a look: the holder may have left between the refused claim and the join. */
const join = async (deps: ClaimDeps, { ask, contender }: Refusal): Promise<Look> => {
  const answer = await deps.table.write(joinWaiters(contender));
  if (!answer.written) return AGAIN;
  await wakeWaiters(deps, ask.job, answer.item);
  return done("waiting");
};

/**
 * Makes an occurrence one run at most, by one conditional write, and sends it to its pool.
 * @param token the owner token: the same for every repetition of one try, so that a repeated try is no duplicate
 */
export const claimAndSend = async (deps: ClaimDeps, ask: Ask, token: string): Promise<ClaimOutcome> => {
  if (isLocked(ask.job)) return claimLocked(deps, ask, token);
  if (!ask.recorded) return claimRun(deps, ask, token);
  await send(deps, ask);
  return "claimed";
};
