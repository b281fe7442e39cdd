import { Conflict, InvalidInput, Unavailable } from "../../core/errors.ts";
import { type Occurrence, runIdOf, slotKeyOf } from "../../core/identity.ts";
import { HEALTH_NOTE, lockKey, OLDEST_DELIVERY_MS, runKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { mustRunHere } from "../../core/monitors/monitor.ts";
import { type Holder, holdersOf, type Waiter, waitersOf } from "../../core/runs/lock.ts";
import { askToStop, dismiss, markCancelled, reopen } from "../../core/runs/marks.ts";
import { isTrigger } from "../../core/runs/message.ts";
import { isTerminal } from "../../core/runs/run.ts";
import { fenceOf } from "../../core/runs/run-attributes.ts";
import { fanOutOf, forSomeShards, mayHaveShards } from "../../core/shards/fan-out.ts";
import { putOffEnd } from "../../core/shards/stop.ts";
import { type Item, remove, set } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { claimAndSend } from "../path/claims.ts";
import { type Entry, isLocked, mustFitInLine, release } from "../path/lock-keeper.ts";
import { chosenShards } from "../shards/retry-shards.ts";
import { cancelOpenShards, type Stop, stopShards } from "../shards/stop-shards.ts";
import { controlKey } from "../subjects.ts";
import { lookAt, noteAsk } from "../watchdog/looks.ts";
import { mutedUntilMs, muteEntry, pausedBy, pauseEntry, skipEntry } from "./control.ts";

type OperatorDeps = Omit<Deps, "timers">;

/** A run that a person points at. */
export interface Pointed {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
}

const refused = (occurrence: Occurrence, state: string, why: string): Conflict =>
  new Conflict(
    state === "succeeded" ? "already_done" : "refused",
    `run ${runIdOf(occurrence)} is ${state}: ${why}`,
  );

/** How to open the run again. */
const reopening = async (
  deps: OperatorDeps,
  occurrence: Occurrence,
  again: {
    readonly run: Item | undefined;
    readonly epoch: number;
    readonly token: string;
    readonly shards: readonly string[] | undefined;
  },
) => {
  const { run, epoch, token, shards } = again;
  const retry = reopen(occurrence, epoch, { token, nowMs: deps.clock.nowMs() });
  if (shards === undefined) return retry;
  const fan = fanOutOf(occurrence, run);
  if (fan !== undefined) return forSomeShards(retry, await chosenShards(deps, fan, shards));
  throw new InvalidInput("no_shards", `run ${runIdOf(occurrence)} has no shards`, { field: "shard" });
};

/**
 * Runs an ended or parked run again, under the identity it has, with a new set of attempts.
 * @param shards of a run that has some: keys of those that failed and are to be tried again; default: all of them
 * @throws Conflict when it succeeded, or is not over, or too many wait for the job's lock (`queue_full`);
 *   InvalidInput for a shard that has not failed
 */
export const retryRun = async (
  deps: OperatorDeps,
  { job, occurrence }: Pointed,
  shards?: readonly string[],
): Promise<void> => {
  mustRunHere(job);
  const run = await deps.table.get(runKey(occurrence), { consistent: true });
  const state = String(run?.["st"] ?? "queued");
  const epoch = Number(run?.["ep"] ?? 1);
  const nowMs = deps.clock.nowMs();
  if (nowMs - Number(run?.["claimedAtMs"] ?? nowMs) > OLDEST_DELIVERY_MS) {
    throw new Conflict(
      "too_old",
      `run ${runIdOf(occurrence)} is over 30 days old: what lies beside it may be gone`,
    );
  }
  // A parked run has the lock: nobody in the line moves until it is retried or cancelled.
  if (isLocked(job) && state !== "parked") {
    mustFitInLine(job, await deps.table.get(lockKey(job.subject), { consistent: true }));
  }
  const token = deps.random.token();
  const wanted = await reopening(deps, occurrence, { run, epoch, token, shards });
  // Noted first: a crash after the next write leaves a queued run whose message nobody sent.
  await noteAsk(deps, occurrence, epoch + 1);
  const answer = await deps.table.write(wanted);
  const mine = answer.item?.["own"] === token && answer.item["ep"] === epoch + 1;
  if (!answer.written && !mine) {
    throw refused(occurrence, state, state === "succeeded" ? "it is done" : "it is on its way");
  }
  const trigger = run?.["trigger"];
  await claimAndSend(
    deps,
    {
      job,
      occurrence,
      epoch: epoch + 1,
      trigger: isTrigger(trigger) ? trigger : "manual",
      queuedAtMs: nowMs,
      recorded: true,
    },
    token,
  );
};

export type CancelOutcome = "cancelled" | "stopping";

/** Each refusal has moved the run on; more of them in a row mean a broken invariant. */
const MAX_LOOKS = 20;

/**
 * Ends a run that is not over. A running one is asked to stop: its holder, or those of its shards, see that at their next
 * renewal.
 * @throws Conflict when it is over, or was retried meanwhile; InvalidInput when there is no such run
 */
export const cancelRun = async (
  deps: OperatorDeps,
  { job, occurrence }: Pointed,
  reason: string,
): Promise<CancelOutcome> => {
  mustRunHere(job);
  let run = await deps.table.get(runKey(occurrence), { consistent: true });
  const epoch = Number(run?.["ep"] ?? 1);
  if (run?.["st"] === undefined) await mustBeClaimed(deps, job, occurrence);
  for (let look = 0; look < MAX_LOOKS; look++) {
    const seen = await cancelAsSeen(deps, { job, occurrence, epoch, run }, reason);
    if (typeof seen === "string") return seen;
    run = seen.now;
    const state = String(run?.["st"]);
    if (run?.["ep"] !== epoch || isTerminal(state)) {
      throw refused(occurrence, state, "it cannot be cancelled any more");
    }
  }
  throw new Unavailable("run_busy", `run ${runIdOf(occurrence)} changed ${MAX_LOOKS} times in a row`);
};

/** Refused: the run has moved on, and is now so. */
interface MovedOn {
  readonly now: Item | undefined;
}

const cancelAsSeen = async (
  deps: OperatorDeps,
  { job, occurrence, epoch, run }: Entry & { readonly run: Item | undefined },
  reason: string,
): Promise<CancelOutcome | MovedOn> => {
  const nowMs = deps.clock.nowMs();
  if (run?.["st"] === "running") {
    const asked = await deps.table.write(askToStop(occurrence, epoch, { nowMs, reason }));
    const stop = await cancelOpenShards(deps, { occurrence, run: asked.item }, reason);
    if (stop !== undefined) return afterStop(deps, { job, occurrence, epoch }, stop);
    return asked.written || asked.item?.["st"] === "running" ? "stopping" : { now: asked.item };
  }
  const token = deps.random.token();
  const trigger = run?.["trigger"];
  // A claim without a record is in the lock, also where a deploy has changed the job to allow overlap.
  const locked = isLocked(job) || run?.["st"] === undefined;
  const mark = markCancelled({
    occurrence,
    epoch,
    seenFence: fenceOf(run),
    token,
    nowMs,
    trigger: isTrigger(trigger) ? trigger : "schedule",
    reason,
    locked,
    parkedToo: true,
  });
  const isPutOff = mayHaveShards(job, run);
  // A parked run waits for a person, so that nobody else would find it between the two steps.
  if (isPutOff) await lookAt(deps, occurrence, { atMs: nowMs });
  const answer = await deps.table.write(isPutOff ? putOffEnd(mark) : mark);
  if (!answer.written && answer.item?.["own"] !== token) return { now: answer.item };
  const entry = { job, occurrence, epoch };
  if (isPutOff) return afterStop(deps, entry, await stopShards(deps, { occurrence, run: answer.item }));
  if (locked) await release(deps, entry);
  return "cancelled";
};

/** The lock stays with a run whose shards are at work; the watchdog ends it. */
const afterStop = async (deps: OperatorDeps, entry: Entry, stop: Stop): Promise<CancelOutcome> => {
  if (stop.kind === "stopping") {
    await lookAt(deps, entry.occurrence, { atMs: stop.quietAtMs });
    return "stopping";
  }
  if (isLocked(entry.job)) await release(deps, entry);
  return "cancelled";
};

/** Without a record there is only what the lock lists; a run that nobody asked for cannot be cancelled. */
const mustBeClaimed = async (
  { table }: OperatorDeps,
  { subject }: JobDefinition,
  occurrence: Occurrence,
): Promise<void> => {
  const lock = await table.get(lockKey(subject), { consistent: true });
  const entries: readonly (Holder | Waiter)[] = [...holdersOf(lock), ...waitersOf(lock)];
  if (entries.some(({ slotKey }) => slotKey === occurrence.slotKey)) return;
  throw new InvalidInput("unknown_run", `there is no run ${runIdOf(occurrence)}`, { field: "run" });
};

/**
 * Takes a run that ended badly off the list of those; its record stays.
 * @throws Conflict when it is not on the list
 */
export const dismissRun = async (deps: OperatorDeps, { occurrence }: Pointed): Promise<void> => {
  const answer = await deps.table.write(dismiss(occurrence, deps.clock.nowMs()));
  if (answer.written) return;
  const state = String(answer.item?.["st"] ?? "unknown");
  const why = isTerminal(state) ? "it is not on the list" : "only a run that ended badly can be dismissed";
  throw refused(occurrence, state, why);
};

const writeControl = (
  { table }: OperatorDeps,
  { subject }: JobDefinition,
  changes: Parameters<typeof set>[],
): Promise<unknown> =>
  table.write({ key: controlKey(subject), changes: changes.map(([path, value]) => set(path, value)) });

/** From now on, slots are recorded as skipped; with `untilMs`, that slot is the first to fire again. */
export const pauseJob = async (
  deps: OperatorDeps,
  job: JobDefinition,
  pause: { readonly reason: string; readonly untilMs?: number },
): Promise<void> => {
  const until = pause.untilMs === undefined ? {} : { untilMs: pause.untilMs };
  const entry = { sinceMs: deps.clock.nowMs(), reason: pause.reason, ...until };
  await writeControl(deps, job, [[pauseEntry(job), entry]]);
};

/** @throws Conflict when the job is not paused */
export const resumeJob = async (deps: OperatorDeps, job: JobDefinition): Promise<void> => {
  const control = await deps.table.get(controlKey(job.subject), { consistent: true });
  if (pausedBy(control, job, deps.clock.nowMs()) === undefined)
    throw new Conflict("not_paused", `${job.name} is not paused`);
  await deps.table.write({ key: controlKey(job.subject), changes: [remove(pauseEntry(job))] });
};

/**
 * The next slot alone is recorded as skipped. Answers it.
 * @throws Conflict when there is no next slot
 */
export const skipNextSlot = async (deps: OperatorDeps, job: JobDefinition): Promise<number> => {
  const slotMs = deps.jobs.scheduleOf(job)?.next(deps.clock.nowMs());
  if (slotMs === undefined || !deps.jobs.firesHere(job)) {
    throw new Conflict("no_next_slot", `${job.name} has no next slot in stage ${deps.jobs.stage}`);
  }
  await writeControl(deps, job, [[skipEntry(job), { slot: slotKeyOf(slotMs) }]]);
  return slotMs;
};

/** Until then its runs go on, and alerts wait. A silence that stands already is replaced. */
export const muteJob = async (
  deps: OperatorDeps,
  job: JobDefinition,
  mute: { readonly untilMs: number; readonly reason?: string },
): Promise<void> => {
  const reason = mute.reason === undefined ? {} : { reason: mute.reason };
  const entry = { sinceMs: deps.clock.nowMs(), untilMs: mute.untilMs, ...reason };
  await writeControl(deps, job, [[muteEntry(job), entry]]);
};

/**
 * What is still wrong is told by the watchdog's next pass.
 * @throws Conflict when the job is not muted
 */
export const unmuteJob = async (deps: OperatorDeps, job: JobDefinition): Promise<void> => {
  const control = await deps.table.get(controlKey(job.subject), { consistent: true });
  if (mutedUntilMs(control, job, deps.clock.nowMs()) === undefined)
    throw new Conflict("not_muted", `${job.name} is not muted`);
  await deps.table.write({ key: controlKey(job.subject), changes: [remove(muteEntry(job))] });
  await lookAt(deps, { subject: job.subject, slotKey: HEALTH_NOTE }, { atMs: deps.clock.nowMs() });
};

/** The acts of a person at the command line or the API, each on the run or the job that is pointed at. */
export const makeOperator = (deps: OperatorDeps) => ({
  retry: (pointed: Pointed, shards?: readonly string[]) => retryRun(deps, pointed, shards),
  cancel: (pointed: Pointed, reason: string) => cancelRun(deps, pointed, reason),
  dismiss: (pointed: Pointed) => dismissRun(deps, pointed),
  pause: (job: JobDefinition, pause: Parameters<typeof pauseJob>[2]) => pauseJob(deps, job, pause),
  resume: (job: JobDefinition) => resumeJob(deps, job),
  mute: (job: JobDefinition, mute: Parameters<typeof muteJob>[2]) => muteJob(deps, job, mute),
  unmute: (job: JobDefinition) => unmuteJob(deps, job),
  skipNext: (job: JobDefinition) => skipNextSlot(deps, job),
});

export type Operator = ReturnType<typeof makeOperator>;
