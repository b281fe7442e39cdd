import { InvalidInput } from "../../core/errors.ts";
import { NAME_PATTERN, type Occurrence, readRunId, slotKeyOf } from "../../core/identity.ts";
import { definitionKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import { isMonitor } from "../../core/monitors/monitor.ts";
import type { RunView } from "../../core/runs/run.ts";
import type { Clock, Timers } from "../../ports/clock.ts";
import type { Table } from "../../ports/table.ts";
import { makeListFlips } from "../health/list-flips.ts";
import type { Pointed } from "../operate/operator.ts";
import { removedJob } from "../removed-job.ts";
import { jobOfSubject } from "../subjects.ts";
import { makeListJobs } from "./list-jobs.ts";
import { makeListRuns } from "./list-runs.ts";
import { makeAwaitRun, makeReadRun } from "./read-run.ts";
import { whyNoRun } from "./why-no-run.ts";

export interface InspectDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly jobs: JobList;
}

/** What the history of a job takes from it. */
type PastJob = Pick<JobDefinition, "name" | "subject" | "timezone">;

/** More names than that help nobody who mistyped one. */
const NAMES_IN_HINT = 12;

const unknownJob = (jobs: JobList, name: string): InvalidInput => {
  const names = jobs.all.map((job) => job.name);
  const hint =
    names.length > NAMES_IN_HINT ? "list all jobs to see their names" : `jobs: ${names.join(", ")}`;
  return new InvalidInput("unknown_job", `there is no job "${name}"`, { field: "job", hint });
};

const unknownRun = (message: string, hint?: string): InvalidInput =>
  new InvalidInput("unknown_run", message, { field: "run", ...(hint === undefined ? {} : { hint }) });

/** Nobody here runs a monitor. */
const whatStarts = (job: JobDefinition | undefined): string | undefined =>
  job !== undefined && isMonitor(job)
    ? `it is a monitor and has not pinged: "belfry heartbeat ${job.name} --url" prints where it pings`
    : undefined;

/** Everything that looks and changes nothing. */
export const makeInspect = (deps: InspectDeps) => {
  const { table, jobs, clock, timers } = deps;
  const readRun = makeReadRun(deps);
  const awaitRun = makeAwaitRun({ readRun, clock, timers });
  const listRuns = makeListRuns(deps);

  /** @throws InvalidInput `unknown_job`. A former name, under which the history is kept, is found too. */
  const job = (name: string): JobDefinition => {
    const found = jobs.byName(name) ?? jobs.bySubject(name);
    if (found === undefined) throw unknownJob(jobs, name);
    return found;
  };

  /** Also one that a deploy removed, by its oldest name, as its runs show it. @throws InvalidInput `unknown_job`. */
  const pastJob = async (name: string): Promise<PastJob> => {
    const present = jobs.byName(name) ?? jobs.bySubject(name);
    if (present !== undefined) return present;
    const mayBe = NAME_PATTERN.test(name);
    const kept = mayBe ? await table.get(definitionKey(name), { consistent: false }) : undefined;
    if (kept === undefined) throw unknownJob(jobs, name);
    const { timezone } = JSON.parse(String(kept["definition"])) as JobDefinition;
    return { name, subject: name, timezone };
  };

  /** The id may begin with the job's present name, although the run is kept under its oldest. */
  const occurrenceOf = (runId: string): Occurrence => {
    const read = readRunId(runId);
    if (read === undefined) {
      const hint = 'one is like report~20261008T020000Z; "belfry runs" lists them';
      throw unknownRun(`"${runId}" is no run id`, hint);
    }
    return { ...read, subject: jobs.byName(read.subject)?.subject ?? read.subject };
  };

  return {
    job,
    pastJob,

    /**
     * @param orRemoved also of a job that a deploy has removed: its runs can be ended, and no more
     * @throws InvalidInput `unknown_run`, also for a run of a job that this deployment lacks.
     */
    pointed: async (runId: string, { orRemoved = false } = {}): Promise<Pointed> => {
      const occurrence = occurrenceOf(runId);
      const present = await jobOfSubject(deps, occurrence.subject);
      const owner = present ?? (orRemoved ? (await removedJob(deps, occurrence.subject))?.job : undefined);
      if (owner === undefined) throw unknownRun(`the job of ${runId} is not in this deployment`);
      return { job: owner, occurrence };
    },

    listJobs: makeListJobs(deps),
    listFlips: makeListFlips(deps),
    listRuns,

    /** As soon as the run is settled, at the latest after `waitMs`. @throws InvalidInput `unknown_run`. */
    run: async (runId: string, waitMs = 0): Promise<RunView> => {
      const run = await awaitRun(occurrenceOf(runId), waitMs);
      if (run === undefined) throw unknownRun(`there is no run ${runId}`);
      return run;
    },

    /** @throws InvalidInput `unknown_job`, or `unknown_run` when the job has not run yet. */
    lastRun: async (name: string): Promise<RunView> => {
      const { subject } = await pastJob(name);
      const [newest] = await listRuns({ subject, limit: 1 });
      const occurrence = newest === undefined ? undefined : readRunId(newest.runId);
      // Once more by its key: the list leaves out what lies beside the record.
      const run = occurrence === undefined ? undefined : await readRun(occurrence);
      if (run === undefined) throw unknownRun(`${name} has no run yet`, whatStarts(jobs.bySubject(subject)));
      return run;
    },

    /** Of a slot that has neither record nor claim. */
    whyNoRun: (of: JobDefinition, slotMs: number): Promise<string> => whyNoRun(deps, of, slotMs),

    /** The run of the job's slot, undefined where there is none. @throws InvalidInput `unknown_job`. */
    runAtSlot: (name: string, slotMs: number): Promise<RunView | undefined> =>
      readRun({ subject: job(name).subject, slotKey: slotKeyOf(slotMs) }),
  };
};

export type Inspect = ReturnType<typeof makeInspect>;
