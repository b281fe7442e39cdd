import type { Occurrence } from "../core/identity.ts";
import { lockKey, runKey } from "../core/items.ts";
import type { JobList } from "../core/job-list.ts";
import type { Json } from "../core/json.ts";
import { isSettled, type RunView } from "../core/run.ts";
import type { Item } from "../core/write.ts";
import type { Clock, Timers } from "../ports/clock.ts";
import type { Table } from "../ports/table.ts";
import { runViewOf, type SideValues, stateOf } from "./run-view.ts";
import { readAside } from "./side.ts";
import { unstartedRuns } from "./unstarted-runs.ts";

export interface ReadRunDeps {
  readonly table: Table;
  readonly jobs: JobList;
}

const sideValuesOf = async (table: Table, occurrence: Occurrence, run: Item): Promise<SideValues> => {
  const read = async (wanted: boolean, name: string): Promise<Json | undefined> => {
    return wanted ? readAside(table, occurrence, name) : undefined;
  };
  const { sideInput, sideResult, sideError } = run;
  const [input, result, error] = await Promise.all([
    read(sideInput === true, "input"),
    read(sideResult !== undefined, `result-${String(sideResult)}`),
    read(sideError !== undefined, `error-${String(sideError)}`),
  ]);
  return {
    ...(input === undefined ? {} : { input }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
  };
};

/** A recorded run that waits for its job's lock says for whom, beside the reason for which it was asked. */
const inLine = (view: RunView, waitsFor: string | undefined): RunView => {
  const reasons = [view.reason, waitsFor].filter((reason) => reason !== undefined);
  return reasons.length === 0 ? view : { ...view, reason: reasons.join("; ") };
};

/**
 * One occurrence's run, with everything that lies beside its record; undefined where there is none. Consistent:
 * it sees every write that was answered before.
 */
export const makeReadRun = ({ table, jobs }: ReadRunDeps) => {
  const recorded = async (occurrence: Occurrence, run: Item | undefined): Promise<RunView | undefined> => {
    if (run === undefined || stateOf(run) === undefined) return undefined;
    const side = await sideValuesOf(table, occurrence, run);
    return runViewOf(run, jobs.bySubject(occurrence.subject), side);
  };
  return async (occurrence: Occurrence): Promise<RunView | undefined> => {
    const { subject, slotKey } = occurrence;
    const before = await table.get(runKey(occurrence), { consistent: true });
    const view = await recorded(occurrence, before);
    if (view !== undefined && view.state !== "queued") return view;
    const lock = await table.get(lockKey(subject), { consistent: true });
    const listed = unstartedRuns(subject, lock, jobs.bySubject(subject), () => before).get(slotKey);
    if (view !== undefined) return inLine(view, listed?.reason);
    if (listed !== undefined) return listed;
    // Neither: unless it started, ended and left the lock between the two reads.
    return recorded(occurrence, await table.get(runKey(occurrence), { consistent: true }));
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
    for (;;) {
      const run = await readRun(occurrence);
      const leftMs = untilMs - clock.nowMs();
      if (run === undefined || isSettled(run) || leftMs <= 0) return run;
      await pause(timers, Math.min(POLL_MS, leftMs));
    }
  };
