import { runIdOf } from "../../core/identity.ts";
import { markNeverStarted } from "../../core/runs/marks.ts";
import { dueMsOf, type RunMessage } from "../../core/runs/message.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import { fanOut, hasShards } from "../shards/fan-out.ts";
import { workOnShard } from "../shards/shard.ts";
import { jobOfSubject } from "../subjects.ts";
import { runAttempt } from "./attempt.ts";
import { begin } from "./begin.ts";
import { leave, type Visit, type WorkDeps } from "./visit.ts";

/** A message for a job that this code does not know may be a newer job met by older code: look again. */
const UNKNOWN_JOB_WAIT_MS = MINUTE_MS;

/**
 * Looks at the run that the message names and, if it may start, carries out one attempt of it. Everything is decided
 * by the run's record; the message only asks. Answers what becomes of the message.
 * @throws Unavailable when the table does not answer; the message must then come again.
 */
export const work = async (deps: WorkDeps, message: RunMessage): Promise<Settlement> => {
  const job = await jobOfSubject(deps, message.subject);
  const occurrence = { subject: message.subject, slotKey: message.slotKey };
  if (job === undefined) {
    deps.journal.notice("warn", "unknown-job", { runId: runIdOf(occurrence) });
    return { kind: "return", afterMs: UNKNOWN_JOB_WAIT_MS };
  }
  const visit = { job, occurrence, message, token: deps.random.token() };
  if (message.shard !== undefined) return workOnShard(deps, visit, message.shard);
  if (await expired(deps, visit)) return leave(deps, visit);
  const began = await begin(deps, visit);
  if (began.kind === "settled") return began.settlement;
  return hasShards(visit, began.lease)
    ? fanOut(deps, visit, began.lease)
    : runAttempt(deps, visit, began.lease);
};

const expired = async (deps: WorkDeps, { job, occurrence, message }: Visit): Promise<boolean> => {
  const nowMs = deps.clock.nowMs();
  if (nowMs <= dueMsOf(message) + job.startDeadlineMs) return false;
  const reason = "not started by its start deadline";
  const mark = { occurrence, state: "expired", nowMs, trigger: message.trigger, reason } as const;
  const answer = await deps.table.write(markNeverStarted(mark, message.epoch));
  if (answer.written) deps.journal.notice("warn", "expired", { runId: runIdOf(occurrence) });
  return answer.written;
};
