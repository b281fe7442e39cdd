import { runIdOf, slotKeyOf } from "../../core/identity.ts";
import { CONTROL_KEY, CURSOR_KEY, definitionKey, RETENTION_MS, runRange } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import { DAY_MS, shortIsoOf } from "../../core/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Table } from "../../ports/table.ts";
import { pauseOf, reasonNotToClaim } from "../operate/control.ts";
import { slotRefusal } from "../watchdog/check-slot.ts";
import { occurrenceOfItem } from "./run-view.ts";

interface WhyDeps {
  readonly table: Table;
  readonly jobs: JobList;
  readonly clock: Clock;
}

/** After a long outage, slots in a row share the record of the last of them. */
const whyInRange = async ({ table }: WhyDeps, { subject }: JobDefinition, slotMs: number) => {
  const [next] = await table.query({ ...runRange(subject, slotKeyOf(slotMs)), limit: 1 });
  if (next === undefined || Number(next["rangeFromMs"] ?? Number.POSITIVE_INFINITY) > slotMs)
    return undefined;
  const runId = runIdOf(occurrenceOfItem(next));
  return `it was ${String(next["st"])} (${String(next["reason"])}), one of ${String(next["rangeCount"])} slots in a row that share the record ${runId}`;
};

const whyUntouched = async ({ table, clock }: WhyDeps, job: JobDefinition, slotMs: number) => {
  const control = await table.get(CONTROL_KEY, { consistent: true });
  const notWanted = reasonNotToClaim(control, job, slotMs);
  const paused = pauseOf(control, job, clock.nowMs());
  if (notWanted !== undefined) {
    const why = paused === undefined ? notWanted : `${notWanted} since ${paused.since}: ${paused.reason}`;
    return `the job is ${why}; the watchdog is about to record the slot as skipped`;
  }
  const cursor = await table.get(CURSOR_KEY, { consistent: true });
  const doneUntilMs = cursor?.["doneUntilMs"];
  const looked =
    typeof doneUntilMs === "number"
      ? `the watchdog has looked at slots before ${shortIsoOf(doneUntilMs)} so far`
      : "the watchdog has not looked at any slot yet";
  return `the slot has passed, and nothing has triggered it so far; ${looked}`;
};

const GONE = `records are kept for ${RETENTION_MS / DAY_MS} days, so whether it ran can no longer be told`;

/** "Why is there no run?", in one sentence, of a slot of the job that has neither record nor claim. */
export const whyNoRun = async (deps: WhyDeps, job: JobDefinition, slotMs: number): Promise<string> => {
  const { table, jobs, clock } = deps;
  const nowMs = clock.nowMs();
  const refusal = slotRefusal(job, jobs.scheduleOf(job), { slotMs, nowMs });
  // One that is only too old to be run still has its record, for as long as records are kept.
  if (refusal !== undefined && refusal.code !== "slot_too_old")
    return refusal.hint === undefined ? refusal.message : `${refusal.message}; ${refusal.hint}`;
  if (!jobs.firesHere(job)) return `its schedule does not fire in stage ${jobs.stage}`;
  const definition = await table.get(definitionKey(job.subject), { consistent: true });
  const sinceMs = definition?.["sinceMs"];
  if (typeof sinceMs === "number" && slotMs < sinceMs)
    return `its schedule is here since ${shortIsoOf(sinceMs)}, and slots before that are not caught up`;
  const inRange = await whyInRange(deps, job, slotMs);
  if (inRange !== undefined) return inRange;
  return slotMs < nowMs - RETENTION_MS ? GONE : whyUntouched(deps, job, slotMs);
};
