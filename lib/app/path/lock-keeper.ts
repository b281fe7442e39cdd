import { Conflict, Unavailable } from "../../core/errors.ts";
import type { Occurrence } from "../../core/identity.ts";
import { lockKey, runKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { catchesUpSeveral } from "../../core/jobs/misfire.ts";
import {
  handOver,
  hasRoom,
  holdersOf,
  releaseHolder,
  removeWaiter,
  type Waiter,
  waitersOf,
} from "../../core/runs/lock.ts";
import { markCancelled } from "../../core/runs/marks.ts";
import { isTrigger, type Trigger } from "../../core/runs/message.ts";
import { isTerminal } from "../../core/runs/run.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";

/** How many runs of a job with an overlap lock may be open at once. */
export const maxHolders = ({ overlap }: JobDefinition): number =>
  typeof overlap === "object" ? overlap.max : 1;

/** What a slot does that finds every place taken. */
export const policyOf = ({ overlap }: JobDefinition): "skip" | "queue" | "replace" | "allow" =>
  typeof overlap === "object" ? overlap.whenFull : overlap;

/**
 * Must its caught-up slots wait for one another, where slots that are delivered in time would skip? They are recorded
 * first then, and wait behind live slots, as backfills do.
 */
export const catchesUpInLine = (job: JobDefinition): boolean =>
  policyOf(job) === "skip" && catchesUpSeveral(job.misfire);

export const isLocked = (job: JobDefinition): boolean => job.overlap !== "allow";

/** Slot keys that a job's lock lists: claimed, although they have no record before they start. */
export const listedInLock = async (table: Deps["table"], subject: string): Promise<ReadonlySet<string>> => {
  const lock = await table.get(lockKey(subject), { consistent: true });
  return new Set([...holdersOf(lock), ...waitersOf(lock)].map(({ slotKey }) => slotKey));
};

/** Looks that each found the lock changed; more in a row than processes can cause means a broken invariant. */
export const MAX_LOOKS = 200;
export const lockBusy = ({ name }: JobDefinition): Unavailable =>
  new Unavailable("lock_busy", `the lock of ${name} changed ${MAX_LOOKS} times in a row`);

/** Each that waits makes every write on the lock dearer; of a longer line nobody would see the end. */
const LONGEST_LINE = 64;

/** @throws Conflict (`queue_full`) when so many runs wait for the job's lock that nobody should join them by hand */
export const mustFitInLine = ({ name }: JobDefinition, lock: Item | undefined): void => {
  if (waitersOf(lock).length < LONGEST_LINE) return;
  throw new Conflict(
    "queue_full",
    `${LONGEST_LINE} runs of ${name} wait already; ask again when some are over`,
  );
};

export type LockDeps = Pick<Deps, "table" | "queue" | "clock" | "random">;

/** One attempt set of a run of a job that has a lock. */
export interface Entry {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
  readonly epoch: number;
}

/** A live slot made no record while it waited; the others' records keep their own trigger and input. */
const triggerOf = async ({ table }: LockDeps, subject: string, waiter: Waiter): Promise<Trigger> => {
  if (waiter.class !== 2) return waiter.class === 0 ? "schedule" : "manual";
  // A backfill's start deadline counts from when it was asked for, that of a caught-up slot from the slot.
  const run = await table.get(runKey({ subject, slotKey: waiter.slotKey }), { consistent: true });
  const trigger = run?.["trigger"];
  return isTrigger(trigger) ? trigger : "backfill";
};

const sendWaiter = async (
  deps: LockDeps,
  { subject, pool }: JobDefinition,
  waiter: Waiter,
): Promise<void> => {
  const { slotKey, epoch } = waiter;
  const trigger = await triggerOf(deps, subject, waiter);
  await deps.queue.send(pool, { subject, slotKey, epoch, trigger, queuedAtMs: deps.clock.nowMs() });
};

/** T10 once. Undefined = nothing is left to do; else the lock as it is now. */
const handOverOnce = async (deps: LockDeps, job: JobDefinition, lock: Item): Promise<Item | undefined> => {
  const [waiter] = waitersOf(lock);
  const max = maxHolders(job);
  if (waiter === undefined || !hasRoom(lock, max)) return undefined;
  const token = deps.random.token();
  const answer = await deps.table.write(
    handOver(job.subject, waiter, { token, nowMs: deps.clock.nowMs(), max }),
  );
  const entry = holdersOf(answer.item).find(({ slotKey }) => slotKey === waiter.slotKey);
  if (entry === undefined) return answer.item;
  if (entry.owner === token && entry.epoch === waiter.epoch) {
    await sendWaiter(deps, job, waiter);
    return answer.item;
  }
  // An entry of an older attempt set is in the way; one of the same or a newer set makes the waiter superfluous.
  const mend =
    entry.epoch < waiter.epoch
      ? releaseHolder({ subject: job.subject, slotKey: waiter.slotKey }, entry.epoch)
      : removeWaiter(job.subject, waiter.text);
  return (await deps.table.write(mend)).item;
};

/**
 * Of several live slots that wait to replace a run only the newest may: the others end as replaced. One that is not
 * over and yet refuses to end has the lock by now, and keeps it.
 */
const supersedeOlder = async (deps: LockDeps, job: JobDefinition, lock: Item): Promise<Item> => {
  const live = waitersOf(lock).filter((waiter) => waiter.class === 0);
  if (policyOf(job) !== "replace" || live.length < 2) return lock;
  let seen = lock;
  for (const { slotKey, epoch, text } of live.slice(0, -1)) {
    const occurrence = { subject: job.subject, slotKey };
    const answer = await deps.table.write(
      markCancelled({
        occurrence,
        epoch,
        seenFence: undefined,
        token: deps.random.token(),
        nowMs: deps.clock.nowMs(),
        trigger: "schedule",
        reason: "replaced",
        locked: true,
        parkedToo: false,
      }),
    );
    if (!isTerminal(String(answer.item?.["st"]))) continue;
    seen = (await deps.table.write(removeWaiter(job.subject, text))).item ?? seen;
  }
  return seen;
};

/**
 * Gives the lock to those who wait, while there is room. `lock` is the item as it was last seen.
 * @throws Unavailable (`lock_busy`)
 */
export const wakeWaiters = async (
  deps: LockDeps,
  job: JobDefinition,
  lock: Item | undefined,
): Promise<void> => {
  let seen = lock;
  for (let look = 0; look < MAX_LOOKS; look++) {
    if (seen === undefined) return;
    seen = await handOverOnce(deps, job, await supersedeOlder(deps, job, seen));
  }
  throw lockBusy(job);
};

/** Removes the run's entry among the waiters or, if it got the lock meanwhile, among the holders. */
const leaveWaiters = async (
  { table }: LockDeps,
  { occurrence, epoch }: Entry,
  lock: Item | undefined,
): Promise<Item | undefined> => {
  const waiter = waitersOf(lock).find((any) => any.slotKey === occurrence.slotKey && any.epoch === epoch);
  if (waiter === undefined) return lock;
  const answer = await table.write(removeWaiter(occurrence.subject, waiter.text));
  if (answer.written) return answer.item;
  return (await table.write(releaseHolder(occurrence, epoch))).item;
};

/** T9 of a run that is over, or of an entry it left behind; then the lock goes to those who wait. */
export const release = async (deps: LockDeps, entry: Entry): Promise<void> => {
  const answer = await deps.table.write(releaseHolder(entry.occurrence, entry.epoch));
  const lock = answer.written ? answer.item : await leaveWaiters(deps, entry, answer.item);
  await wakeWaiters(deps, entry.job, lock);
};

/** Releases every holder whose run is over; answers whether there was one. */
export const releaseEnded = async (
  deps: LockDeps,
  job: JobDefinition,
  lock: Item | undefined,
): Promise<boolean> => {
  let released = false;
  for (const { slotKey, epoch } of holdersOf(lock)) {
    const occurrence = { subject: job.subject, slotKey };
    const run = await deps.table.get(runKey(occurrence), { consistent: true });
    if (!isOver(run, epoch)) continue;
    await release(deps, { job, occurrence, epoch });
    released = true;
  }
  return released;
};

/** Is the attempt set that an entry of the lock names over? */
const isOver = (run: Item | undefined, epoch: number): boolean => {
  const runEpoch = Number(run?.["ep"] ?? 0);
  return runEpoch > epoch || (runEpoch === epoch && isTerminal(String(run?.["st"])));
};
