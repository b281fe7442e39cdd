import { InvalidInput } from "../../core/errors.ts";
import { type Occurrence, runIdOf } from "../../core/identity.ts";
import { expiresAtS, poisonKey, runKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { markDead, markNeverStarted } from "../../core/runs/marks.ts";
import { dueMsOf, parseMessage, type RunMessage, type ShardMessage } from "../../core/runs/message.ts";
import { isTerminal } from "../../core/runs/run.ts";
import type { ShortError } from "../../core/runs/transitions.ts";
import { isUnheld, mayHaveShards } from "../../core/shards/fan-out.ts";
import { putOffEnd } from "../../core/shards/stop.ts";
import { type Item, set } from "../../core/write.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import type { Deps } from "../deps.ts";
import { meetShard } from "../shards/shard.ts";
import { stopShards } from "../shards/stop-shards.ts";
import { jobOfSubject } from "../subjects.ts";
import { lookAt } from "../watchdog/looks.ts";
import { isLocked, release } from "./lock-keeper.ts";
import { tellEnd } from "./tell-end.ts";

type DeadLetterDeps = Omit<Deps, "timers">;

const DELETE: Settlement = { kind: "delete" };

/** How much of an unreadable body is kept: enough to see whose it is. */
const KEPT_BODY = 4_096;

/**
 * Keeps a message that nobody can read as a record of its own, so that it can be deleted without being lost.
 * @param id the message's own id: keeping it twice makes one record
 */
export const keepPoison = async (
  { table, clock, journal }: Pick<Deps, "table" | "clock" | "journal">,
  poison: { readonly id: string; readonly sentAtMs: number; readonly body: string; readonly why: string },
): Promise<void> => {
  const { id, sentAtMs, body, why } = poison;
  await table.write({
    key: poisonKey(sentAtMs, id),
    changes: [
      set("body", body.slice(0, KEPT_BODY)),
      set("why", why),
      set("expiresAtS", expiresAtS(clock.nowMs())),
    ],
  });
  journal.notice("error", "poison-message", { messageId: id, why });
};

/** Reads a message, or keeps it as poison and answers undefined. */
export const readOrKeep = async (
  deps: Pick<Deps, "table" | "clock" | "journal">,
  delivered: { readonly id: string; readonly sentAtMs: number; readonly body: string },
): Promise<RunMessage | undefined> => {
  try {
    return parseMessage(delivered.body);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    await keepPoison(deps, { ...delivered, why: error.message });
    return undefined;
  }
};

/** The run that a dead letter asks for. */
interface Letter {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
  readonly message: RunMessage;
  readonly run: Item | undefined;
}

/**
 * Judges a message that came back too often, by its run's record: the innocent - never started, attempts left - are
 * sent again; only what used up its attempts or crashes ends, as `dead` (or `parked`).
 */
export const judgeDeadLetter = async (deps: DeadLetterDeps, message: RunMessage): Promise<Settlement> => {
  const job = await jobOfSubject(deps, message.subject);
  const occurrence = { subject: message.subject, slotKey: message.slotKey };
  const run = await deps.table.get(runKey(occurrence), { consistent: true });
  const state = String(run?.["st"]);
  if (job === undefined) {
    if (isTerminal(state)) return DELETE;
    // Claimed by code older than the deploy that removed its job: the watchdog ends it.
    await lookAt(deps, occurrence, { atMs: deps.clock.nowMs() });
    deps.journal.notice("warn", "unknown-job", { runId: runIdOf(occurrence) });
    return { kind: "return" };
  }
  const letter = { job, occurrence, message, run };
  if (Number(run?.["ep"] ?? 0) > message.epoch || isTerminal(state)) return drop(deps, letter);
  if (state === "parked") return DELETE;
  if (message.shard !== undefined) return judgeShard(deps, letter, message.shard);
  // Its shards are on their way, and the last of them asks for the run again.
  if (isUnheld(run)) return DELETE;
  if (run?.["fence"] === undefined) return judgeNeverStarted(deps, letter);
  const { clockBoundMs } = deps.timings;
  const live = state === "running" && Number(run["leaseUntilMs"]) + clockBoundMs >= deps.clock.nowMs();
  if (live) return { kind: "return" };
  return usedUp(job, run) ? end(deps, letter) : sendBack(deps, letter);
};

/** A shard is judged by its bucket, as its run is by its record. */
const judgeShard = async (deps: DeadLetterDeps, letter: Letter, shard: ShardMessage): Promise<Settlement> => {
  const visit = { job: letter.job, occurrence: letter.occurrence, message: letter.message };
  const met = await meetShard(deps, { ...visit, token: deps.random.token() }, shard);
  return met ?? sendBack(deps, letter);
};

const drop = async (deps: DeadLetterDeps, { job, occurrence, message }: Letter): Promise<Settlement> => {
  if (isLocked(job)) await release(deps, { job, occurrence, epoch: message.epoch });
  return DELETE;
};

const sendBack = async (
  deps: DeadLetterDeps,
  { job, occurrence, message, run }: Letter,
): Promise<Settlement> => {
  await deps.queue.send(job.pool, message);
  deps.journal.notice("warn", "sent-again", {
    runId: runIdOf(occurrence),
    state: String(run?.["st"] ?? "claimed"),
    from: "dead-letters",
  });
  return DELETE;
};

const judgeNeverStarted = async (deps: DeadLetterDeps, letter: Letter): Promise<Settlement> => {
  const { job, occurrence, message } = letter;
  const nowMs = deps.clock.nowMs();
  if (nowMs <= dueMsOf(message) + job.startDeadlineMs) return sendBack(deps, letter);
  const mark = {
    occurrence,
    state: "expired",
    nowMs,
    trigger: message.trigger,
    reason: "never started",
  } as const;
  const answer = await deps.table.write(markNeverStarted(mark, message.epoch));
  if (!answer.written) return { kind: "return" };
  deps.journal.notice("warn", "expired", { runId: runIdOf(occurrence) });
  return drop(deps, letter);
};

const usedUp = ({ retry }: JobDefinition, run: Item): boolean => {
  const crashes = Number(run["crashes"] ?? 0) + (run["st"] === "running" ? 1 : 0);
  return crashes > retry.crashes || Number(run["attempts"] ?? 0) > retry.retries;
};

const LOST: ShortError = { name: "WorkerLost", message: "no worker could end this run" };

const end = async (deps: DeadLetterDeps, letter: Letter): Promise<Settlement> => {
  const { job, occurrence, message, run } = letter;
  const token = deps.random.token();
  const state = job.onUnknown === "park" ? "parked" : "dead";
  const reason = "its message came back too often";
  const mark = markDead({
    occurrence,
    epoch: message.epoch,
    token,
    nowMs: deps.clock.nowMs(),
    clockBoundMs: deps.timings.clockBoundMs,
    state,
    reason,
    error: LOST,
  });
  const isPutOff = state === "dead" && mayHaveShards(job, run);
  const answer = await deps.table.write(isPutOff ? putOffEnd(mark) : mark);
  if (!answer.written && answer.item?.["own"] !== token) return { kind: "return" };
  tellEnd(deps, letter, { state, reason });
  const stop = isPutOff ? await stopShards(deps, { occurrence, run: answer.item }) : undefined;
  if (stop?.kind === "stopping") {
    await lookAt(deps, occurrence, { atMs: stop.quietAtMs });
    return DELETE;
  }
  return state === "parked" ? DELETE : drop(deps, letter);
};
