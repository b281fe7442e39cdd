import { Conflict } from "../../core/errors.ts";
import { RETENTION_MS } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { mustRunHere } from "../../core/monitors/monitor.ts";
import { AT_END, type NewSeries, type Series } from "../../core/runs/series.ts";
import { isoOf } from "../../core/time.ts";
import { beginSeries, checkParallel, mostParallel, takeUpSeries } from "./begin-series.ts";
import { readSeries, type SeriesDeps } from "./series.ts";
import { nextDead } from "./series-source.ts";

/** What broke may still be weak: not all of it comes at once. */
const DEFAULT_PARALLEL = 5;

const countDead = async (deps: SeriesDeps, job: JobDefinition, wanted: NewSeries): Promise<number> => {
  let { cursor } = wanted;
  let count = 0;
  while (cursor !== AT_END) {
    const page = await nextDead(deps, job, { ...wanted, cursor }, Number.POSITIVE_INFINITY);
    count += page.runs.length;
    cursor = page.cursor;
  }
  return count;
};

/**
 * Runs all dead runs of a job again, a few at a time; one that goes on already is taken up. Runs that die from now on are
 * not part of it. Undefined = there are none.
 * @throws InvalidInput for `parallel`; Conflict when one is stopping, or the job's pool has no places
 */
export const retryDead = async (
  deps: SeriesDeps,
  job: JobDefinition,
  parallel = Math.min(DEFAULT_PARALLEL, mostParallel(deps, job)),
): Promise<Series | undefined> => {
  mustRunHere(job);
  checkParallel(deps, job, parallel);
  const name = { subject: job.subject, kind: "retry" } as const;
  const going = await readSeries(deps, name);
  if (going?.stopping) {
    throw new Conflict("in_flight", `a retry of ${job.name} is stopping: its runs are not over yet`);
  }
  if (going?.state === "open") return takeUpSeries(deps, job, going);
  const nowMs = deps.clock.nowMs();
  const wanted: NewSeries = {
    ...name,
    id: deps.random.token(),
    cursor: isoOf(nowMs - RETENTION_MS),
    until: isoOf(nowMs),
    fromMs: nowMs - RETENTION_MS,
    toMs: nowMs,
    parallel,
    redo: ["dead"],
    schedule: undefined,
    total: 0,
  };
  const total = await countDead(deps, job, wanted);
  return total === 0 ? undefined : beginSeries(deps, job, { ...wanted, total });
};
