import { parseSchedule, type UnionSchedule, unionOf } from "../schedule/schedule.ts";
import { DEFAULT_POOL, type JobDefinition, type Manifest } from "./job.ts";

/** The jobs of one deployment, as every process of it sees them. */
export interface JobList {
  readonly stage: string;
  /** Of the manifest. */
  readonly hash: string;
  /** In order of name. */
  readonly all: readonly JobDefinition[];
  bySubject(subject: string): JobDefinition | undefined;
  byName(name: string): JobDefinition | undefined;
  /** Its slots; undefined for a job that runs by hand only. */
  scheduleOf(job: JobDefinition): UnionSchedule | undefined;
  /** Are its slots expected in this stage? */
  firesHere(job: JobDefinition): boolean;
  /** How many runs of its pool are carried out at once. */
  concurrencyOf(job: JobDefinition): number;
}

type JobsOfManifest = Pick<Manifest, "jobs" | "hash"> & Partial<Pick<Manifest, "pools">>;

export const scheduleOfJob = (job: JobDefinition): UnionSchedule | undefined => {
  if (job.schedules.length === 0) return undefined;
  const { timezone, dst, startsAtMs, endsAtMs } = job;
  return unionOf(
    job.schedules.map((expression) =>
      parseSchedule(expression, {
        timezone,
        dst,
        ...(startsAtMs === undefined ? {} : { startsAtMs, anchorMs: startsAtMs }),
        ...(endsAtMs === undefined ? {} : { endsAtMs }),
      }),
    ),
  );
};

export const jobList = ({ jobs, hash, pools = {} }: JobsOfManifest, stage: string): JobList => {
  const bySubject = new Map(jobs.map((job) => [job.subject, job]));
  const byName = new Map(jobs.map((job) => [job.name, job]));
  const schedules = new WeakMap<JobDefinition, UnionSchedule | undefined>();
  return {
    stage,
    hash,
    all: jobs,
    bySubject: (subject) => bySubject.get(subject),
    byName: (name) => byName.get(name),
    scheduleOf: (job) => {
      if (!schedules.has(job)) schedules.set(job, scheduleOfJob(job));
      return schedules.get(job);
    },
    firesHere: (job) => job.schedules.length > 0 && (job.stages === undefined || job.stages.includes(stage)),
    concurrencyOf: ({ pool }) => (pools[pool] ?? DEFAULT_POOL).concurrency,
  };
};
