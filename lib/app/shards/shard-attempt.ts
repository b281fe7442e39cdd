import { Conflict } from "../../core/errors.ts";
import { runIdOf, slotMsOf } from "../../core/identity.ts";
import { runKey, shardScope } from "../../core/items.ts";
import { waitBeforeRetryMs } from "../../core/jobs/retry.ts";
import type { Json } from "../../core/json.ts";
import { MAX_PIECES } from "../../core/runs/kept.ts";
import { phaseOf } from "../../core/shards/fan-out.ts";
import { doneIn, failedSeatsIn, type Seat, seatIn } from "../../core/shards/seats.ts";
import {
  endShard,
  failShard,
  putOffShard,
  renewShard,
  type ShardHolding,
} from "../../core/shards/shard-writes.ts";
import { isStopped } from "../../core/shards/stop.ts";
import type { Item } from "../../core/write.ts";
import type { AttemptEnd, ErrorFacts } from "../../ports/attempts.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import type { WriteAnswer } from "../../ports/table.ts";
import { afterLostLease, INPUT_GONE, servicesFor } from "../path/attempt.ts";
import { type Kept, makeKept } from "../path/kept.ts";
import { keepLease } from "../path/lease.ts";
import { isLeftToPerson, MAX_SNOOZES, shortError } from "../path/record.ts";
import { repeated } from "../path/repeated.ts";
import { readAside } from "../path/side.ts";
import { DELETE, type WorkDeps } from "../path/visit.ts";
import { leaveStopping } from "./leave-stopping.ts";
import { leaveShard, type ShardVisit, storeFailure } from "./shard-visit.ts";

/** A shard's lease as its holder sees it. */
export interface ShardLease {
  /** As the start left it. */
  readonly seat: Seat;
  readonly startedAtMs: number;
  readonly untilMs: number;
}

const attemptOf = ({ attempts, crashes }: Seat): number => attempts + crashes + 1;

const keyOf = ({ shard }: ShardVisit): string => shard.key ?? String(shard.index);

/** Runs the handler for the shard under its lease, and records how it ended. */
export const runShard = async (deps: WorkDeps, visit: ShardVisit, lease: ShardLease): Promise<Settlement> => {
  const { at, fan, shard, token, message } = visit;
  const holding: ShardHolding = { at, token, epoch: message.epoch };
  const scope = shardScope(fan.plan, shard.index);
  const kept = makeKept(deps, { occurrence: at.occurrence, fence: lease.seat.starts, scope });
  const ended = { visit, lease, holding, kept };
  const input = await inputOf(deps, visit);
  if (input === undefined) return record(deps, { ...ended, end: INPUT_GONE, endedAtMs: deps.clock.nowMs() });
  const running = deps.attempts.start(requestOf(visit, lease, input), {
    ...servicesFor(deps, visit, { shard: keyOf(visit) }),
    ...kept,
    // The progress of a run with shards is how many of them are over.
    progress: () => undefined,
  });
  const keeper = keepLease(deps, {
    renew: (leaseUntilMs) => renewShard(holding, leaseUntilMs),
    running,
    untilMs: lease.untilMs,
    isStopped: (bucket) => seatIn(bucket, at.place.seat)?.owner === token && isStopped(bucket, message.epoch),
    askedToStop: undefined,
    progress: () => undefined,
  });
  const end = await running.ended;
  keeper.stop();
  if (keeper.lost()) return afterLostLease(deps, visit, keeper.why());
  const done = { ...ended, end, endedAtMs: deps.clock.nowMs() };
  const isToLeave = keeper.cancelled() !== undefined && end.kind === "stopped";
  return isToLeave ? leaveSeat(deps, done) : record(deps, done);
};

/** The run's own input, which each of its shards gets. Undefined = it had one, and that is gone. */
const inputOf = async (deps: WorkDeps, { job, shard, occurrence }: ShardVisit) =>
  shard.sideInput === true ? readAside(deps.table, occurrence, "input") : (shard.runInput ?? job.input);

const requestOf = (visit: ShardVisit, { seat }: ShardLease, input: Json) => {
  const { job, occurrence, message, shard } = visit;
  return {
    job: job.name,
    runId: runIdOf(occurrence),
    slotMs: slotMsOf(occurrence.slotKey),
    attempt: attemptOf(seat),
    trigger: message.trigger,
    input,
    timeoutMs: job.timeoutMs,
    part: {
      kind: "shard",
      index: shard.index,
      count: shard.total,
      key: keyOf(visit),
      ...(shard.input === undefined ? {} : { input: shard.input }),
    },
  } as const;
};

interface EndedShard {
  readonly visit: ShardVisit;
  readonly lease: ShardLease;
  readonly holding: ShardHolding;
  readonly kept: Pick<Kept, "saveState">;
  readonly end: AttemptEnd;
  readonly endedAtMs: number;
}

const record = async (deps: WorkDeps, ended: EndedShard): Promise<Settlement> => {
  const { end } = ended;
  switch (end.kind) {
    case "returned":
    case "skip":
      return succeed(deps, ended);
    case "cancel":
      return die(deps, ended, { name: "Cancelled", message: end.reason });
    case "snooze":
      return snooze(deps, ended, end.waitMs);
    case "continue":
      return continueLater(deps, ended, end);
    default:
      return fail(deps, ended, end);
  }
};

const seatOf = ({ holding }: EndedShard): number => holding.at.place.seat;

const succeed = async (deps: WorkDeps, ended: EndedShard): Promise<Settlement> => {
  const answer = await repeated(() => deps.table.write(endShard(ended.holding)));
  // Only its holder could have recorded it: the answer of an earlier copy of this write was lost.
  if (!answer.written && !doneIn(answer.item).has(seatOf(ended))) return stale(deps, ended);
  journalEnd(deps, ended, "succeeded");
  return afterLeaving(deps, ended, answer.item, await leaveShard(deps, ended.visit, answer.item));
};

/** Of a run that is to stop, the shard that leaves last ends it; where its worker died the watchdog does. */
const afterLeaving = async (
  deps: WorkDeps,
  { visit }: EndedShard,
  bucket: Item | undefined,
  settlement: Settlement,
): Promise<Settlement> => {
  if (!isStopped(bucket, visit.message.epoch)) return settlement;
  const run = await deps.table.get(runKey(visit.occurrence), { consistent: true });
  if (phaseOf(run) === "stop") await leaveStopping(deps, visit, run);
  return settlement;
};

/** Its run is to stop, and so was told to the handler: neither a failure nor a crash. A retry of the run has it again. */
const leaveSeat = async (deps: WorkDeps, ended: EndedShard): Promise<Settlement> => {
  const next = { ...ended.lease.seat, dueAtMs: undefined };
  const answer = await repeated(() => deps.table.write(putOffShard(ended.holding, next)));
  if (!isPutOff(ended, answer, next)) return stale(deps, ended);
  journalEnd(deps, ended, "cancelled");
  return afterLeaving(deps, ended, answer.item, DELETE);
};

type Failure = Extract<AttemptEnd, { readonly error: ErrorFacts }>;

const fail = async (deps: WorkDeps, ended: EndedShard, failure: Failure): Promise<Settlement> => {
  const { retry } = ended.visit.job;
  const { seat } = ended.lease;
  const failed = seat.attempts + 1;
  const permanent = failure.kind === "threw" && failure.permanent;
  if (isLeftToPerson(ended.visit, failure)) return die(deps, ended, failure.error);
  if (permanent || failed > retry.retries) return die(deps, ended, failure.error);
  const named = failure.kind === "threw" ? failure.retryAfterMs : undefined;
  const waitMs = named ?? waitBeforeRetryMs(retry, failed, deps.random.fraction());
  return putOff(deps, ended, { ...seat, attempts: failed, dueAtMs: ended.endedAtMs + waitMs }, failure.error);
};

/** It has failed for good: with its input and its error, until somebody retries it. */
const die = async (deps: WorkDeps, ended: EndedShard, error: ErrorFacts): Promise<Settlement> => {
  const { visit, lease, holding } = ended;
  const { starts } = lease.seat;
  await storeFailure(deps, visit, { error, attempts: attemptOf(lease.seat) });
  const answer = await repeated(() => deps.table.write(failShard(holding, starts)));
  if (!answer.written && !failedSeatsIn(answer.item).has(seatOf(ended))) return stale(deps, ended);
  journalEnd(deps, ended, "dead", error);
  return afterLeaving(deps, ended, answer.item, await leaveShard(deps, visit, answer.item));
};

const endless = (outcome: string, times: number): ErrorFacts => ({
  name: "EndlessRun",
  message: `${outcome} was returned ${times} times; does the handler see that it is done?`,
});

const snooze = (deps: WorkDeps, ended: EndedShard, waitMs: number): Promise<Settlement> => {
  const { seat } = ended.lease;
  if (seat.snoozes >= MAX_SNOOZES) return die(deps, ended, endless("snooze", MAX_SNOOZES));
  return putOff(deps, ended, { ...seat, snoozes: seat.snoozes + 1, dueAtMs: ended.endedAtMs + waitMs });
};

/** Many shards may wait at once, and a queue holds 120,000 messages that are hidden. */
const MANY_SHARDS = 10_000;
const LONG_WAIT_MS = 15 * 60_000;

const putOff = async (
  deps: WorkDeps,
  ended: EndedShard,
  next: Seat & { readonly dueAtMs: number },
  error?: ErrorFacts,
): Promise<Settlement> => {
  const answer = await repeated(() => deps.table.write(putOffShard(ended.holding, next)));
  if (!isPutOff(ended, answer, next)) return stale(deps, ended);
  journalEnd(deps, ended, "waiting", error);
  const waitMs = Math.max(0, next.dueAtMs - deps.clock.nowMs());
  // The watchdog sends those that are due.
  const isLeft = waitMs > LONG_WAIT_MS && ended.visit.fan.total > MANY_SHARDS;
  return afterLeaving(deps, ended, answer.item, isLeft ? DELETE : { kind: "return", afterMs: waitMs });
};

/** Written, or refused by an earlier copy of the same write: nobody has started the shard since. */
const isPutOff = (ended: EndedShard, { written, item }: WriteAnswer, next: Omit<Seat, "owner">): boolean => {
  const seat = seatIn(item, seatOf(ended));
  return written || (seat?.owner === undefined && seat?.starts === next.starts);
};

/** The next piece has attempts of its own; a new message asks for it, as it does for a run. */
const continueLater = async (
  deps: WorkDeps,
  ended: EndedShard,
  { state }: { readonly state?: Json },
): Promise<Settlement> => {
  const { visit, lease, kept, holding } = ended;
  const pieces = lease.seat.pieces + 1;
  if (pieces > MAX_PIECES) return die(deps, ended, endless("continueLater", MAX_PIECES));
  try {
    if (state !== undefined) await kept.saveState(state);
  } catch (error) {
    if (error instanceof Conflict) return stale(deps, ended);
    throw error;
  }
  const next = { ...lease.seat, attempts: 0, crashes: 0, pieces, dueAtMs: undefined };
  const answer = await repeated(() => deps.table.write(putOffShard(holding, next)));
  if (!isPutOff(ended, answer, next)) return stale(deps, ended);
  journalEnd(deps, ended, "queued");
  await deps.queue.send(visit.job.pool, { ...visit.message, queuedAtMs: deps.clock.nowMs() });
  return afterLeaving(deps, ended, answer.item, DELETE);
};

/** Another attempt has the shard by now, or the run was stopped: this end is refused, and said. */
const stale = async (deps: WorkDeps, { visit }: EndedShard): Promise<Settlement> => {
  const runId = runIdOf(visit.occurrence);
  deps.journal.notice("warn", "stale-result", { runId, shard: keyOf(visit) });
  return { kind: "return" };
};

const journalEnd = (
  deps: WorkDeps,
  { visit, lease, end, endedAtMs }: EndedShard,
  state: string,
  error?: ErrorFacts,
): void => {
  const { occurrence, job, message } = visit;
  const slotMs = slotMsOf(occurrence.slotKey);
  deps.journal.attempt({
    runId: runIdOf(occurrence),
    shard: keyOf(visit),
    job: job.name,
    trigger: message.trigger,
    slotMs,
    attempt: attemptOf(lease.seat),
    state,
    outcome: end.kind,
    startedAtMs: lease.startedAtMs,
    endedAtMs,
    latenessMs: lease.startedAtMs - slotMs,
    ...(error === undefined ? {} : { error: shortError(error) }),
    ...(end.kind === "returned" && end.result !== undefined ? { result: end.result } : {}),
  });
};
