import {
  type Automation,
  automationIn,
  definitionOf,
  scheduleOfAutomation,
} from "../core/automations/automation.ts";
import { automationIdIn } from "../core/identity.ts";
import { automationKey, CONTROL_KEY } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import type { Slots } from "../core/schedule/schedule.ts";
import type { Item, Key } from "../core/write.ts";
import type { Deps } from "./deps.ts";
import { reasonNotToClaim } from "./operate/control.ts";

type SubjectDeps = Pick<Deps, "table" | "jobs">;

/** What occurrences are of: a job, or a run-time schedule as a job of its own. */
export interface Subject {
  /** As its runs are carried out. */
  readonly job: JobDefinition;
  /** Absent = it never fires here. */
  readonly schedule?: Slots;
  /** The item that has its pause. */
  readonly control: Item | undefined;
  /** Why this slot must not be claimed; undefined = claim. */
  reasonNotToClaim(slotMs: number): string | undefined;
  /** Absent for a job. */
  readonly automation?: Automation;
}

/** Where a subject's pause is kept. */
export const controlKey = (subject: string): Key => {
  const id = automationIdIn(subject);
  return id === undefined ? CONTROL_KEY : automationKey(id);
};

export const subjectOfJob = (
  { jobs }: Pick<Deps, "jobs">,
  job: JobDefinition,
  control: Item | undefined,
): Subject => {
  const schedule = jobs.firesHere(job) ? jobs.scheduleOf(job) : undefined;
  return {
    job,
    control,
    reasonNotToClaim: (slotMs) => reasonNotToClaim(control, job, slotMs),
    ...(schedule === undefined ? {} : { schedule }),
  };
};

/** What remains of a deleted one is for runs of it that are not over. Undefined: no automation, or its job is gone. */
export const subjectOfAutomation = (
  { jobs }: Pick<Deps, "jobs">,
  record: Item | undefined,
): Subject | undefined => {
  const automation = automationIn(record);
  const carrier = automation && jobs.bySubject(automation.job);
  if (automation === undefined || carrier === undefined) return undefined;
  const job = definitionOf(automation, carrier);
  return {
    job,
    control: record,
    automation,
    schedule: scheduleOfAutomation(automation),
    reasonNotToClaim: (slotMs) =>
      automation.deletedAtMs === undefined ? reasonNotToClaim(record, job, slotMs) : "deleted",
  };
};

/** Those that are known, by their names. One request for all automations among them; none where there is none. */
export const subjectsNamed = async (
  deps: SubjectDeps,
  names: Iterable<string>,
  control: Item | undefined,
): Promise<ReadonlyMap<string, Subject>> => {
  const found = new Map<string, Subject>();
  const keys: Key[] = [];
  for (const name of new Set(names)) {
    const id = automationIdIn(name);
    const job = deps.jobs.bySubject(name);
    if (id !== undefined) keys.push(automationKey(id));
    else if (job !== undefined) found.set(name, subjectOfJob(deps, job, control));
  }
  const records = keys.length === 0 ? [] : await deps.table.getMany(keys);
  for (const record of records) {
    const subject = subjectOfAutomation(deps, record);
    if (subject !== undefined) found.set(subject.job.subject, subject);
  }
  return found;
};

/** One of them, by one read if it is an automation. */
export const subjectNamed = async (
  deps: SubjectDeps,
  name: string,
  control: Item | undefined,
): Promise<Subject | undefined> => {
  const id = automationIdIn(name);
  if (id !== undefined) {
    return subjectOfAutomation(deps, await deps.table.get(automationKey(id), { consistent: false }));
  }
  const job = deps.jobs.bySubject(name);
  return job && subjectOfJob(deps, job, control);
};

/** The job as whose runs a subject's are carried out; undefined = nobody knows it. */
export const jobOfSubject = async (
  { table, jobs }: SubjectDeps,
  subject: string,
): Promise<JobDefinition | undefined> => {
  const id = automationIdIn(subject);
  if (id === undefined) return jobs.bySubject(subject);
  const automation = automationIn(await table.get(automationKey(id), { consistent: true }));
  const carrier = automation && jobs.bySubject(automation.job);
  return carrier && definitionOf(automation, carrier);
};
