import { shortIsoOf } from "../time.ts";
import type { JobDefinition } from "./job.ts";
import { type JobList, scheduleOfJob } from "./job-list.ts";

/** What another version of the jobs makes of one of them. */
export interface JobChange {
  /** Its name in the newer version, where it has one. */
  readonly job: string;
  readonly change: "added" | "changed" | "removed";
  /** The options that differ, in order of name; empty for a job that comes or goes. */
  readonly options: readonly string[];
  /** Of the stage, ISO 8601 in UTC; none where it does not fire there, or runs by hand only. */
  readonly nextBefore: readonly string[];
  readonly nextAfter: readonly string[];
}

const SLOTS_SHOWN = 3;

const nextSlots = (jobs: JobList, job: JobDefinition | undefined, nowMs: number): readonly string[] => {
  if (job === undefined || !jobs.firesHere(job)) return [];
  const schedule = scheduleOfJob(job);
  const slots: string[] = [];
  let slotMs = schedule?.next(nowMs);
  while (slotMs !== undefined && slots.length < SLOTS_SHOWN) {
    slots.push(shortIsoOf(slotMs));
    slotMs = schedule?.next(slotMs);
  }
  return slots;
};

const differingOptions = (before: JobDefinition, after: JobDefinition): readonly string[] => {
  const [old, young] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  const names = [...new Set([...old.keys(), ...young.keys()])].sort();
  return names.filter((name) => JSON.stringify(old.get(name)) !== JSON.stringify(young.get(name)));
};

/**
 * What changes for the jobs when the second version takes the place of the first, in order of name. A job is known by
 * its subject, so a renamed one is changed, not removed and added.
 */
export const diffJobs = (before: JobList, after: JobList, nowMs: number): readonly JobChange[] => {
  const subjects = [...new Set([...before.all, ...after.all].map(({ subject }) => subject))];
  const changes = subjects.flatMap((subject): JobChange[] => {
    const [old, young] = [before.bySubject(subject), after.bySubject(subject)];
    const options = old && young ? differingOptions(old, young) : [];
    if (old && young && options.length === 0) return [];
    const change = old === undefined ? "added" : young === undefined ? "removed" : "changed";
    return [
      {
        job: (young ?? old)?.name ?? subject,
        change,
        options,
        nextBefore: nextSlots(before, old, nowMs),
        nextAfter: nextSlots(after, young, nowMs),
      },
    ];
  });
  return changes.sort((a, b) => (a.job < b.job ? -1 : 1));
};
