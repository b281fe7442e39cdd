import { isManualKey, runIdOf } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { type Class, holdersOf, waitersOf } from "../../core/runs/lock.ts";
import type { Trigger } from "../../core/runs/message.ts";
import type { RunView } from "../../core/runs/run.ts";
import type { Item } from "../../core/write.ts";
import { duplicatesOf, queuedViewOf } from "../inspect/run-view.ts";

const triggerOf = (slotKey: string, itsClass: Class): Trigger => {
  if (itsClass === 2) return "backfill";
  return itsClass === 1 || isManualKey(slotKey) ? "manual" : "schedule";
};

/**
 * The runs that a job's lock lists, as queued views, by slot key. An entry whose run has a record is told by its
 * record instead; the caller knows which ones have.
 */
export const unstartedRuns = (
  subject: string,
  lock: Item | undefined,
  job: JobDefinition | undefined,
  /** Of an occurrence's RUN item that has no state yet, if any. */
  counterOf: (slotKey: string) => Item | undefined = () => undefined,
): ReadonlyMap<string, RunView> => {
  const views = new Map<string, RunView>();
  const add = (slotKey: string, itsClass: Class, queuedAtMs: number | undefined, reason?: string): void => {
    views.set(
      slotKey,
      queuedViewOf({
        occurrence: { subject, slotKey },
        job,
        trigger: triggerOf(slotKey, itsClass),
        queuedAtMs,
        duplicates: duplicatesOf(counterOf(slotKey)),
        ...(reason === undefined ? {} : { reason }),
      }),
    );
  };
  const first = holdersOf(lock)[0]?.slotKey;
  const reason = first === undefined ? undefined : `waits for ${runIdOf({ subject, slotKey: first })}`;
  for (const waiter of waitersOf(lock)) add(waiter.slotKey, waiter.class, undefined, reason);
  for (const holder of holdersOf(lock)) add(holder.slotKey, holder.class, holder.sentAtMs);
  return views;
};
