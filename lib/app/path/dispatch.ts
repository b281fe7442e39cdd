import { InvalidInput } from "../../core/errors.ts";
import { automationIdIn, runIdOf, slotKeyOf } from "../../core/identity.ts";
import { CONTROL_KEY, OLDEST_DELIVERY_MS } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { isMonitor } from "../../core/monitors/monitor.ts";
import { type Mark, markAbsent } from "../../core/runs/marks.ts";
import { parseSchedulerEvent } from "../../core/runs/scheduler-event.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { type Subject, subjectNamed } from "../subjects.ts";
import { type ClaimOutcome, claimAndSend } from "./claims.ts";
import { isLocked, listedInLock } from "./lock-keeper.ts";

type DispatchDeps = Pick<Deps, "table" | "queue" | "clock" | "random" | "journal" | "jobs" | "timings">;

export type DispatchOutcome = ClaimOutcome | "expired" | "off-schedule";

/**
 * One delivery of a schedule: claims the slot for each of its jobs and sends it to their pools.
 * @param requestId Lambda's: it stays the same when Lambda retries the event, so that the retry knows its own claims
 * @throws InvalidInput for an event that is none of ours, and for a job nobody knows; whatever else went wrong,
 *   after every job of the event had its try
 */
export const dispatch = async (
  deps: DispatchDeps,
  event: unknown,
  requestId: string,
): Promise<readonly DispatchOutcome[]> => {
  const { subjects, slotMs, isTick } = parseSchedulerEvent(event);
  // An automation's pause is in its own record.
  const hasJobs = subjects.some((subject) => automationIdIn(subject) === undefined);
  const control = hasJobs ? await deps.table.get(CONTROL_KEY, { consistent: false }) : undefined;
  const settled = await Promise.allSettled(
    subjects.map((subject) => dispatchOne(deps, { subject, slotMs, isTick, requestId, control })),
  );
  const failures = settled.flatMap((one): unknown[] => (one.status === "rejected" ? [one.reason] : []));
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} jobs of this event failed`);
  return settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
};

interface Delivery {
  readonly subject: string;
  readonly slotMs: number;
  readonly isTick: boolean;
  readonly requestId: string;
  readonly control: Item | undefined;
}

const dispatchOne = async (deps: DispatchDeps, delivery: Delivery): Promise<DispatchOutcome> => {
  const { subject, slotMs, requestId, control } = delivery;
  const found = await subjectNamed(deps, subject, control);
  if (found === undefined) {
    throw new InvalidInput("unknown_job", `no job "${subject}" in this deployment`, { field: "subjects" });
  }
  const { job } = found;
  const nowMs = deps.clock.nowMs();
  if (!isExpected(deps, found, delivery)) return "off-schedule";
  const occurrence = { subject, slotKey: slotKeyOf(slotMs) };
  const mark = { occurrence, nowMs, trigger: "schedule" } as const;
  if (slotMs < nowMs - OLDEST_DELIVERY_MS) {
    await deps.table.write(
      markAbsent({ ...mark, state: "expired", reason: "delivered more than 30 days after its slot" }),
    );
    deps.journal.notice("warn", "expired", { runId: runIdOf(occurrence) });
    return "expired";
  }
  const reason = found.reasonNotToClaim(slotMs);
  if (reason !== undefined) return skip(deps, job, { ...mark, state: "skipped", reason });
  const ask = { job, occurrence, epoch: 1, trigger: "schedule", queuedAtMs: nowMs, recorded: false } as const;
  return claimAndSend(deps, ask, requestId);
};

/** What was claimed before the pause goes on, also when its event comes once more. */
const skip = async (deps: DispatchDeps, job: JobDefinition, mark: Mark): Promise<DispatchOutcome> => {
  const { subject, slotKey } = mark.occurrence;
  if (isLocked(job) && (await listedInLock(deps.table, subject)).has(slotKey)) return "duplicate";
  const answer = await deps.table.write(markAbsent(mark));
  if (!answer.written) return "duplicate";
  deps.journal.notice("info", "skipped", { runId: runIdOf(mark.occurrence), reason: mark.reason });
  return "skipped";
};

/** A schedule may tick finer than the job's slots; those instants are nothing. Any other stray one is said. */
const isExpected = (
  { jobs, journal }: DispatchDeps,
  { job, schedule }: Subject,
  { slotMs, isTick }: Delivery,
): boolean => {
  if (!isMonitor(job) && schedule?.has(slotMs) === true) return true;
  if (!isTick && jobs.scheduleOf(job)?.aws.kind !== "superset") {
    journal.notice("warn", "off-schedule-event", { job: job.name, slot: shortIsoOf(slotMs) });
  }
  return false;
};
