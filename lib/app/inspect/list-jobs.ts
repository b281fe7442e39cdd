import type { Health } from "../../core/health/health.ts";
import { storedHealth } from "../../core/health/health-items.ts";
import { type Occurrence, slotKeyOf } from "../../core/identity.ts";
import { CONTROL_KEY, definitionKey, HEALTH_RANGE, runKey, runRange } from "../../core/items.ts";
import type { JobDefinition, Overlap } from "../../core/jobs/job.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import { isMonitor } from "../../core/monitors/monitor.ts";
import { isTerminal, type RunState, type RunView } from "../../core/runs/run.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item, Key } from "../../core/write.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Table } from "../../ports/table.ts";
import { type HealthView, healthNow, type Known } from "../health/job-health.ts";
import { type MuteView, muteOf, type PauseView, pauseOf } from "../operate/control.ts";
import { occurrenceOfItem, runViewOf, stateOf } from "./run-view.ts";

/** A job as `list` shows it. */
export interface JobSummary extends HealthView {
  readonly name: string;
  readonly description?: string;
  readonly owner?: string;
  /** It runs elsewhere, and pings. */
  readonly monitor?: true;
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
  /** Its slots are skipped until it is resumed, or until that instant. */
  readonly paused: PauseView | null;
  /** Runs go on, and alerts wait. */
  readonly muted: MuteView | null;
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

type Lookup = (key: Key) => Item | undefined;

const lookupOf = (items: readonly Item[]): Lookup => {
  const byKey = new Map(items.map((item) => [`${String(item["pk"])} ${String(item["sk"])}`, item]));
  return ({ pk, sk }) => byKey.get(`${pk} ${sk}`);
};

type Sighting = Known["runs"][number];

const troubledKeys = (subject: string, health: Health | undefined): readonly Key[] =>
  (health?.troubles ?? []).map(({ slotKey }) => runKey({ subject, slotKey }));

const sightingOf = (run: Item): Sighting => ({ occurrence: occurrenceOfItem(run), run });

/** All jobs in order of name: one query and a few small reads each, however long their history. */
export const makeListJobs = ({ table, jobs, clock }: ListJobsDeps) => {
  const newestRuns = async ({ subject }: JobDefinition): Promise<readonly Item[]> => {
    const items = await table.query({ ...runRange(subject), descending: true, limit: NEWEST });
    return items.filter((item) => stateOf(item) !== undefined);
  };

  const storedHealths = async (): Promise<ReadonlyMap<string, Health | undefined>> => {
    const items = await table.query(HEALTH_RANGE);
    return new Map(items.map((item) => [String(item["sk"]), storedHealth(item)?.health]));
  };

  return async (): Promise<readonly JobSummary[]> => {
    const nowMs = clock.nowMs();
    const control = await table.get(CONTROL_KEY, { consistent: true });
    const definitions = lookupOf(await table.getMany(jobs.all.map(({ subject }) => definitionKey(subject))));
    const healths = await storedHealths();
    const dueOf = (job: JobDefinition): Occurrence | undefined => {
      const sinceMs = Number(
        definitions(definitionKey(job.subject))?.["sinceMs"] ?? Number.POSITIVE_INFINITY,
      );
      const slotMs = dueSlot(job, { jobs, nowMs, sinceMs });
      return slotMs === undefined ? undefined : { subject: job.subject, slotKey: slotKeyOf(slotMs) };
    };
    const due = jobs.all.map(dueOf);
    const keys = jobs.all.flatMap(({ subject }, index) => {
      const occurrence = due[index];
      return [
        ...troubledKeys(subject, healths.get(subject)),
        ...(occurrence === undefined ? [] : [runKey(occurrence)]),
      ];
    });
    const read = lookupOf(await table.getMany(keys));
    const histories = await Promise.all(jobs.all.map(newestRuns));
    return jobs.all.map((job, index) => {
      const stored = healths.get(job.subject);
      const newest = histories[index] ?? [];
      const troubled = troubledKeys(job.subject, stored)
        .map(read)
        .filter((run) => run !== undefined);
      const occurrence = due[index];
      const dueRun = occurrence === undefined ? [] : [{ occurrence, run: read(runKey(occurrence)) }];
      const runs = [...dueRun, ...[...newest, ...troubled].map(sightingOf)];
      const health = healthNow(job, { stored, runs, fires: jobs.firesHere(job), control, nowMs });
      return summaryOf(job, {
        jobs,
        nowMs,
        health,
        control,
        runs: newest.map((item) => runViewOf(item, job)),
      });
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
    health: HealthView;
    control: Item | undefined;
    runs: readonly RunView[];
  },
): JobSummary => {
  const { jobs, nowMs, health, control, runs } = seen;
  const schedule = jobs.scheduleOf(job);
  const nextMs = jobs.firesHere(job) ? schedule?.next(nowMs) : undefined;
  const last = runs.find(isOutcome);
  return {
    name: job.name,
    ...(job.description === undefined ? {} : { description: job.description }),
    ...(job.owner === undefined ? {} : { owner: job.owner }),
    ...(isMonitor(job) ? { monitor: true } : {}),
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
    ...health,
    paused: pauseOf(control, job, nowMs) ?? null,
    muted: muteOf(control, job, nowMs) ?? null,
  };
};
