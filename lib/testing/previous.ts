import { fitsInline, storeAside } from "../app/path/side.ts";
import { InvalidInput } from "../core/errors.ts";
import { type Occurrence, slotKeyOf } from "../core/identity.ts";
import { runKey } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { scheduleOfJob } from "../core/jobs/job-list.ts";
import type { Json } from "../core/json.ts";
import { set, type Value } from "../core/write.ts";
import type { Table } from "../ports/table.ts";

/** The run before, as `ctx.previous()` finds it. */
export interface PreviousRun {
  /** What it returned. */
  readonly result?: Json;
}

/** The last slot before this one, of the job's schedule. */
const slotBefore = (job: JobDefinition, slotMs: number | undefined): number => {
  const beforeMs = slotMs === undefined ? undefined : scheduleOfJob(job)?.previous(slotMs);
  if (beforeMs !== undefined) return beforeMs;
  throw new InvalidInput("no_previous_slot", `${job.name} has no slot before the one that is tried`, {
    field: "previous",
  });
};

/** Of its attempt: what lies aside is named by it. */
const FENCE = 1;

const store = async (
  table: Table,
  occurrence: Occurrence,
  slotMs: number,
  { result }: PreviousRun,
): Promise<void> => {
  const aside = result !== undefined && !fitsInline(result);
  if (aside) await storeAside(table, occurrence, `result-${FENCE}`, result, slotMs);
  await table.write({
    key: runKey(occurrence),
    changes: [
      set("st", "succeeded"),
      set("ep", 1),
      set("fence", FENCE),
      set("startedAtMs", slotMs),
      set("endedAtMs", slotMs),
      ...(aside ? [set("sideResult", FENCE)] : []),
      ...(aside || result === undefined ? [] : [set("result", result as Value)]),
    ],
  });
};

/**
 * Records that the slot before succeeded.
 * @throws InvalidInput at once, where there is none
 */
export const recordPrevious = (
  table: Table,
  job: JobDefinition,
  slotMs: number | undefined,
  previous: PreviousRun,
): Promise<void> => {
  const beforeMs = slotBefore(job, slotMs);
  return store(table, { subject: job.subject, slotKey: slotKeyOf(beforeMs) }, beforeMs, previous);
};
