import { isManualKey, type Occurrence, slotMsOf } from "../../core/identity.ts";
import { lockKey, runKey } from "../../core/items.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import type { Json } from "../../core/json.ts";
import { isSettled, type RunView } from "../../core/runs/run.ts";
import type { Item } from "../../core/write.ts";
import type { Clock, Timers } from "../../ports/clock.ts";
import type { Table } from "../../ports/table.ts";
import { readAside } from "../path/side.ts";
import { unstartedRuns } from "../path/unstarted-runs.ts";
import { shardsViewOf } from "../shards/shard-view.ts";
import { jobOfSubject } from "../subjects.ts";
import { runViewOf, type SideValues, stateOf } from "./run-view.ts";

export interface ReadRunDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly jobs: JobList;
}

interface ReadOptions {
  /** Default true: how far its shards are, which may take a read for each 64 of them. */
  readonly shards?: boolean;
}

const sideValuesOf = async (
  { table, clock }: ReadRunDeps,
  occurrence: Occurrence,
  { run, shards: wantsShards = true }: ReadOptions & { readonly run: Item },
): Promise<SideValues> => {
  const read = async (wanted: boolean, name: string): Promise<Json | undefined> => {
    return wanted ? readAside(table, occurrence, name) : undefined;
  };
  const { sideInput, sideResult, sideError } = run;
  const [input, result, error, shards] = await Promise.all([
    read(sideInput === true, "input"),
    read(sideResult !== undefined, `result-${String(sideResult)}`),
    read(sideError !== undefined, `error-${String(sideError)}`),
    wantsShards ? shardsViewOf({ table, clock }, occurrence, run) : undefined,
  ]);
  return {
    ...(input === undefined ? {} : { input }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
    ...(shards === undefined ? {} : { shards }),
  };
};

/** A recorded run that waits for its job's lock says for whom, beside the reason for which it was asked. */
const inLine = (view: RunView, waitsFor: string | undefined): RunView => {
  const reasons = [view.reason, waitsFor].filter((reason) => reason !== undefined);
  return reasons.length === 0 ? view : { ...view, reason: reasons.join("; ") };
};

/** Where slots of several schedules coincide there is one run, and whoever looks for either must find it in it. */
const namingSchedules = (jobs: JobList, { subject, slotKey }: Occurrence, view: RunView): RunView => {
  // A run-time schedule is one.
  const job = jobs.bySubject(subject);
  if (job === undefined || job.schedules.length < 2 || isManualKey(slotKey)) return view;
  const slotMs = slotMsOf(slotKey);
  const named = jobs.scheduleOf(job)?.schedules.filter((schedule) => schedule.has(slotMs)) ?? [];
  return named.length === 0 ? view : { ...view, schedules: named.map(({ expression }) => expression) };
};

/**
 * One occurrence's run, with everything that lies beside its record; undefined where there is none. Consistent:
 * it sees every write that was answered before.
 */
export const makeReadRun = (deps: ReadRunDeps) => {
  const { table, jobs } = deps;
  const recorded = async (
    occurrence: Occurrence,
    run: Item | undefined,
    options: ReadOptions,
  ): Promise<RunView | undefined> => {
    if (run === undefined || stateOf(run) === undefined) return undefined;
    const side = await sideValuesOf(deps, occurrence, { ...options, run });
    return runViewOf(run, await jobOfSubject(deps, occurrence.subject), side);
  };
  const find = async (occurrence: Occurrence, options: ReadOptions): Promise<RunView | undefined> => {
    const { subject, slotKey } = occurrence;
    const before = await table.get(runKey(occurrence), { consistent: true });
    const view = await recorded(occurrence, before, options);
    if (view !== undefined && view.state !== "queued") return view;
    const lock = await table.get(lockKey(subject), { consistent: true });
    const job = await jobOfSubject(deps, subject);
    const listed = unstartedRuns(subject, lock, job, () => before).get(slotKey);
    if (view !== undefined) return inLine(view, listed?.reason);
    if (listed !== undefined) return listed;
    // Neither: unless it started, ended and left the lock between the two reads.
    return recorded(occurrence, await table.get(runKey(occurrence), { consistent: true }), options);
  };
  return async (occurrence: Occurrence, options: ReadOptions = {}): Promise<RunView | undefined> => {
    const view = await find(occurrence, options);
    return view && namingSchedules(jobs, occurrence, view);
  };
};

export type ReadRun = ReturnType<typeof makeReadRun>;

/** Short enough that `run --wait` feels immediate, and ten small reads a second cost nothing anyone would notice. */
const POLL_MS = 100;

const pause = (timers: Timers, waitMs: number): Promise<void> =>
  new Promise((resolve) => {
    timers.after(waitMs, resolve);
  });

/** The run once it is settled, or as it is when `waitMs` have passed; undefined where there is no such run. */
export const makeAwaitRun =
  ({ readRun, clock, timers }: { readRun: ReadRun; clock: Clock; timers: Timers }) =>
  async (occurrence: Occurrence, waitMs: number): Promise<RunView | undefined> => {
    const untilMs = clock.nowMs() + waitMs;
    for (let leftMs = waitMs; leftMs > 0; leftMs = untilMs - clock.nowMs()) {
      const run = await readRun(occurrence, { shards: false });
      if (run === undefined || isSettled(run)) break;
      await pause(timers, Math.min(POLL_MS, leftMs));
    }
    return readRun(occurrence);
  };
