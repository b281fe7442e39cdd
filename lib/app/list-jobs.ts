import { slotKeyOf } from "../core/identity.ts";
import { CONTROL_KEY, definitionKey, runKey, runRange } from "../core/items.ts";
import type { JobDefinition, Overlap } from "../core/job.ts";
import type { JobList } from "../core/job-list.ts";
import { isTerminal, type RunState, type RunView } from "../core/run.ts";
import { shortIsoOf } from "../core/time.ts";
import type { Item, Key } from "../core/write.ts";
import type { Clock } from "../ports/clock.ts";
import type { Table } from "../ports/table.ts";
import { type PauseView, pauseOf } from "./control.ts";
import { runViewOf, stateOf } from "./run-view.ts";

/**
 * `up`: the last run that ended, ended well. `failing`: it did not. `parked`: it waits for a person. `overdue`: the
 * slot whose start is due has no started run. `new`: nothing has ended yet.
 */
export type Health = "up" | "failing" | "parked" | "overdue" | "new";

/** A job as `list` shows it. */
export interface JobSummary {
  readonly name: string;
  readonly description?: string;
  readonly owner?: string;
  /** The expressions; none = by hand only. */
  readonly schedules: readonly string[];
  /** The schedule in words, without the zone; null = by hand only. */
  readonly inWords: string | null;
  readonly timezone: string;
  readonly pool: string;
  readonly overlap: string;
  /** Null also where the schedule does not fire in this stage. */
  readonly nextSlot: string | null;
  /** The newest run that is over or parked. */
  readonly lastRun: {
    readonly runId: string;
    readonly slot: string;
    readonly state: RunState;
    readonly finishedAt: string | null;
  } | null;
  readonly health: Health;
  /** Its slots are skipped until it is resumed, or until that instant. */
  readonly paused: PauseView | null;
}

export interface ListJobsDeps {
  readonly table: Table;
  readonly jobs: JobList;
  readonly clock: Clock;
}

/** Enough to find an outcome behind a few runs that are still going on. */
const NEWEST = 20;

const isOutcome = ({ state }: RunView): boolean => isTerminal(state) || state === "parked";

/** The newest slot whose grace is over, if the job's definition held by then. */
const dueSlot = (
  job: JobDefinition,
  { jobs, nowMs, sinceMs }: { jobs: JobList; nowMs: number; sinceMs: number },
): number | undefined => {
  if (!jobs.firesHere(job)) return undefined;
  const slotMs = jobs.scheduleOf(job)?.previous(nowMs - job.graceMs + 1);
  return slotMs === undefined || slotMs < sinceMs ? undefined : slotMs;
};

const healthOf = (isOverdue: boolean, runs: readonly RunView[]): Health => {
  if (isOverdue) return "overdue";
  // Cancelled says nothing of the job: a person, or the job itself, decided.
  switch (runs.find((run) => isOutcome(run) && run.state !== "cancelled")?.state) {
    case undefined:
      return "new";
    case "parked":
      return "parked";
    case "succeeded":
    case "skipped":
      return "up";
    default:
      return "failing";
  }
};

type Lookup = (key: Key) => Item | undefined;

const lookupOf = (items: readonly Item[]): Lookup => {
  const byKey = new Map(items.map((item) => [`${String(item["pk"])} ${String(item["sk"])}`, item]));
  return ({ pk, sk }) => byKey.get(`${pk} ${sk}`);
};

/** Neither started nor decided; a run that the lock lists counts as not started. */
const isUnstarted = (run: Item | undefined): boolean => {
  const state = stateOf(run);
  return state === undefined || state === "queued";
};

/** All jobs in order of name: one query and three small reads each, however long their history. */
export const makeListJobs = ({ table, jobs, clock }: ListJobsDeps) => {
  const newestRuns = async (job: JobDefinition): Promise<readonly RunView[]> => {
    const range = runRange(job.subject);
    const items = await table.query({ ...range, descending: true, limit: NEWEST });
    return items.filter((item) => stateOf(item) !== undefined).map((item) => runViewOf(item, job));
  };

  return async (): Promise<readonly JobSummary[]> => {
    const nowMs = clock.nowMs();
    const control = await table.get(CONTROL_KEY, { consistent: true });
    const definitions = lookupOf(await table.getMany(jobs.all.map(({ subject }) => definitionKey(subject))));
    const sinceOf = ({ subject }: JobDefinition) =>
      Number(definitions(definitionKey(subject))?.["sinceMs"] ?? Number.POSITIVE_INFINITY);
    const due = new Map(
      jobs.all.map((job) => [job.subject, dueSlot(job, { jobs, nowMs, sinceMs: sinceOf(job) })]),
    );
    const dueKey = (subject: string): Key | undefined => {
      const slotMs = due.get(subject);
      return slotMs === undefined ? undefined : runKey({ subject, slotKey: slotKeyOf(slotMs) });
    };
    const keys = jobs.all.map(({ subject }) => dueKey(subject)).filter((key) => key !== undefined);
    const dueRuns = lookupOf(await table.getMany(keys));
    const histories = await Promise.all(jobs.all.map(newestRuns));
    return jobs.all.map((job, index) => {
      const key = dueKey(job.subject);
      const isOverdue = key !== undefined && isUnstarted(dueRuns(key));
      const paused = pauseOf(control, job, nowMs);
      return summaryOf(job, { jobs, nowMs, isOverdue, paused, runs: histories[index] ?? [] });
    });
  };
};

const overlapText = (overlap: Overlap): string =>
  typeof overlap === "object" ? `${overlap.max} at once, then ${overlap.whenFull}` : overlap;

const summaryOf = (
  job: JobDefinition,
  seen: {
    jobs: JobList;
    nowMs: number;
    isOverdue: boolean;
    paused: PauseView | undefined;
    runs: readonly RunView[];
  },
): JobSummary => {
  const { jobs, nowMs, isOverdue, paused, runs } = seen;
  const schedule = jobs.scheduleOf(job);
  const nextMs = jobs.firesHere(job) ? schedule?.next(nowMs) : undefined;
  const last = runs.find(isOutcome);
  return {
    name: job.name,
    ...(job.description === undefined ? {} : { description: job.description }),
    ...(job.owner === undefined ? {} : { owner: job.owner }),
    schedules: job.schedules,
    inWords: schedule?.describe("en") ?? null,
    timezone: job.timezone,
    pool: job.pool,
    overlap: overlapText(job.overlap),
    nextSlot: nextMs === undefined ? null : shortIsoOf(nextMs),
    lastRun:
      last === undefined
        ? null
        : { runId: last.runId, slot: last.slot, state: last.state, finishedAt: last.finishedAt },
    health: healthOf(isOverdue, runs),
    paused: paused ?? null,
  };
};
