import { Unavailable } from "../../core/errors.ts";
import { type StoredHealth, writeHealth } from "../../core/health/health-items.ts";
import { healthOfGone } from "../../core/health/health-of-gone.ts";
import { HEALTH_NOTE, runKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { DAY_MS } from "../../core/time.ts";
import { type RemovedJob, removedJob } from "../removed-job.ts";
import type { Subject } from "../subjects.ts";
import { eachInTurn, type Failure } from "../watchdog/each-in-turn.ts";
import { lookAt } from "../watchdog/looks.ts";
import { type HealthDeps, type HealthPass, isDeleted, noteFlips, readHealth, tellAll } from "./health.ts";

/** While a run of it waits for a person, what was told of it is not over. */
const LOOK_EVERY_MS = DAY_MS;

/**
 * Tells of jobs that a deploy has removed, and of run-time schedules that somebody has deleted, that what people know of
 * them is over. Answers what was thrown.
 */
export const closeHealth = (
  deps: HealthDeps,
  { noted, subjects }: Pick<HealthPass, "noted" | "subjects">,
): Promise<readonly Failure[]> => {
  const noteAt = (subject: string, atMs: number): Promise<void> =>
    lookAt(deps, { subject, slotKey: HEALTH_NOTE }, { atMs });
  const closeOne = async (name: string): Promise<void> => {
    const gone = await goneJob(deps, name, subjects.get(name));
    if (gone === undefined) return;
    const nowMs = deps.clock.nowMs();
    // Older code, which still knows it, may judge it for a moment after a deploy.
    const fromMs = gone.removedAtMs + deps.timings.firstLookMs;
    if (nowMs < fromMs) await noteAt(name, fromMs);
    else if (!(await close(deps, gone.job))) await noteAt(name, nowMs + LOOK_EVERY_MS);
  };
  const isGone = (name: string): boolean => {
    const subject = subjects.get(name);
    return subject === undefined || isDeleted(subject);
  };
  return eachInTurn([...noted].filter(isGone), closeOne, (name) => noteAt(name, deps.clock.nowMs()));
};

const goneJob = async (
  deps: HealthDeps,
  name: string,
  subject: Subject | undefined,
): Promise<RemovedJob | undefined> => {
  const deletedAtMs = subject?.automation?.deletedAtMs;
  return subject === undefined || deletedAtMs === undefined
    ? removedJob(deps, name)
    : { job: subject.job, removedAtMs: deletedAtMs };
};

/** As often as others may change it between our reading and our writing. */
const MAX_TRIES = 5;

/** False while it is not over. */
const close = async (deps: HealthDeps, job: JobDefinition): Promise<boolean> => {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await readHealth(deps, job);
    if (stored === undefined) return true;
    // Of ourselves, too, where a write was made again after its answer was lost.
    if (stored.untold.length > 0) await tellAll(deps, job, stored);
    else if (await isParked(deps, job, stored)) return false;
    else if (await writeEnd(deps, job, stored)) return true;
  }
  throw new Unavailable("contended", `the health of ${job.name} is written by too many at once`);
};

const writeEnd = async (deps: HealthDeps, job: JobDefinition, stored: StoredHealth): Promise<boolean> => {
  const { after, flips } = healthOfGone(job, stored.health, deps.clock.nowMs());
  if (flips.length === 0) return true;
  const answer = await deps.table.write(
    writeHealth(job.subject, { seenRevision: stored.revision, health: after, flips }),
  );
  if (!answer.written) return false;
  noteFlips(deps, job, flips);
  await tellAll(deps, job, { untold: flips, revision: Number(answer.item["rev"]) });
  return true;
};

const isParked = async (
  { table }: HealthDeps,
  { subject }: JobDefinition,
  { health }: StoredHealth,
): Promise<boolean> => {
  const keys = health.troubles
    .filter(({ kind }) => kind === "parked")
    .map(({ slotKey }) => runKey({ subject, slotKey }));
  const runs = keys.length === 0 ? [] : await table.getMany(keys);
  return runs.some((run) => run["st"] === "parked");
};
