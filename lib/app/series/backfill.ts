import { Conflict, InvalidInput } from "../../core/errors.ts";
import { slotKeyOf } from "../../core/identity.ts";
import { CONTROL_KEY, RETENTION_MS, runRange, slotKeyInSortKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { mustRunHere } from "../../core/monitors/monitor.ts";
import type { NewSeries, Series } from "../../core/runs/series.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import { scheduleText } from "../definitions.ts";
import { stateOf } from "../inspect/run-view.ts";
import { pauseOf } from "../operate/control.ts";
import { isLocked, listedInLock } from "../path/lock-keeper.ts";
import { beginSeries, checkParallel, takeUpSeries } from "./begin-series.ts";
import { readSeries, type SeriesDeps } from "./series.ts";
import { epochToAsk } from "./series-source.ts";

/** What nobody ran and nobody decided about is what a backfill is for. */
export const DEFAULT_REDO: readonly string[] = ["missed", "expired"];

/** Twenty years of a daily job, two weeks of every minute: what one request can count, and a person can mean. */
const MOST_SLOTS = 20_000;

export interface BackfillRequest {
  readonly job: JobDefinition;
  /** Half-open: slots in [fromMs, toMs) that have passed. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Default 1. */
  readonly parallel?: number;
  /** Default `DEFAULT_REDO`. */
  readonly redo?: readonly string[];
}

/** What a backfill would do, as the table is now. */
export interface BackfillPlan {
  readonly job: string;
  readonly from: string;
  readonly to: string;
  readonly redo: readonly string[];
  readonly parallel: number;
  readonly slots: number;
  readonly firstSlot: string | null;
  readonly lastSlot: string | null;
  /** How many slots would run. */
  readonly toRun: number;
  /** Slots without a record; all of them run. */
  readonly unrecorded: number;
  /** Of those, slots older than records are kept: whether they ran cannot be told. */
  readonly beyondRecords: number;
  /** Its live slots are skipped; a backfill goes ahead all the same. */
  readonly paused: boolean;
  /** Slots with a record, by its state. */
  readonly recorded: { readonly [state: string]: { readonly slots: number; readonly toRun: number } };
}

const refuse = (code: string, message: string, field: string, hint: string): InvalidInput =>
  new InvalidInput(code, message, { field, hint });

/** The last instants are left to the schedule itself, and to the watchdog's first look. */
const untilMsOf = ({ clock, timings }: SeriesDeps, toMs: number): number =>
  Math.min(toMs, clock.nowMs() - timings.firstLookMs);

/** @throws InvalidInput, naming the field */
const slotsOf = (deps: SeriesDeps, { job, fromMs, toMs }: BackfillRequest): readonly number[] => {
  mustRunHere(job);
  const schedule = deps.jobs.scheduleOf(job);
  if (schedule === undefined) {
    throw refuse("no_schedule", `${job.name} has no schedule, so it has no slots`, "job", "run it by hand");
  }
  if (fromMs >= toMs) {
    throw refuse(
      "empty_range",
      `from ${shortIsoOf(fromMs)} is not before to ${shortIsoOf(toMs)}`,
      "from",
      "slots are taken from --from on, up to and without --to",
    );
  }
  const slots: number[] = [];
  for (const slotMs of schedule.slots(fromMs, untilMsOf(deps, toMs))) {
    if (slots.length === MOST_SLOTS) {
      throw refuse(
        "too_many_slots",
        `${job.name} has more than ${MOST_SLOTS} slots in that range`,
        "to",
        `the first ${MOST_SLOTS} end with --to ${shortIsoOf(slotMs)}`,
      );
    }
    slots.push(slotMs);
  }
  return slots;
};

/** So many records are in memory at once. */
const RECORDS_AT_ONCE = 500;

/** What of a record says whether its slot would run. */
const keptOf = (item: Item): Item =>
  Object.fromEntries(Object.entries(item).filter(([name]) => ["st", "ep", "claimedAtMs"].includes(name)));

/** By slot key: the records of the range in short, those by hand left out. */
const recordsOf = async (
  { table }: SeriesDeps,
  { subject }: JobDefinition,
  slots: readonly number[],
): Promise<ReadonlyMap<string, Item>> => {
  const records = new Map<string, Item>();
  for (let first = 0; first < slots.length; first += RECORDS_AT_ONCE) {
    const some = slots.slice(first, first + RECORDS_AT_ONCE).map(slotKeyOf);
    const items = await table.query(runRange(subject, some[0] ?? "", some.at(-1) ?? ""));
    for (const item of items) records.set(slotKeyInSortKey(String(item["sk"])), keptOf(item));
  }
  return records;
};

/**
 * Looks and changes nothing.
 * @throws InvalidInput, naming the field
 */
export const planBackfill = async (deps: SeriesDeps, request: BackfillRequest): Promise<BackfillPlan> => {
  const { job, fromMs, toMs, parallel = 1, redo = DEFAULT_REDO } = request;
  checkParallel(deps, job, parallel);
  const slots = slotsOf(deps, request);
  const records = await recordsOf(deps, job, slots);
  const claimed = isLocked(job) ? await listedInLock(deps.table, job.subject) : new Set<string>();
  const nowMs = deps.clock.nowMs();
  const recorded: Record<string, { slots: number; toRun: number }> = {};
  let unrecorded = 0;
  let beyondRecords = 0;
  for (const slotMs of slots) {
    const slotKey = slotKeyOf(slotMs);
    const run = records.get(slotKey);
    const state = stateOf(run) ?? (claimed.has(slotKey) ? "queued" : undefined);
    if (state === undefined) {
      unrecorded += 1;
      if (slotMs < nowMs - RETENTION_MS) beyondRecords += 1;
      continue;
    }
    const known = recorded[state] ?? { slots: 0, toRun: 0 };
    const runs = epochToAsk(run, redo, nowMs) !== undefined && !claimed.has(slotKey);
    recorded[state] = { slots: known.slots + 1, toRun: known.toRun + (runs ? 1 : 0) };
  }
  const again = Object.values(recorded).reduce((sum, { toRun }) => sum + toRun, 0);
  const iso = (atMs: number | undefined) => (atMs === undefined ? null : shortIsoOf(atMs));
  return {
    job: job.name,
    from: shortIsoOf(fromMs),
    to: shortIsoOf(toMs),
    redo,
    parallel,
    slots: slots.length,
    firstSlot: iso(slots[0]),
    lastSlot: iso(slots.at(-1)),
    toRun: unrecorded + again,
    unrecorded,
    beyondRecords,
    paused: pauseOf(await deps.table.get(CONTROL_KEY, { consistent: true }), job, nowMs) !== undefined,
    recorded,
  };
};

/** The same range, and nothing asked for that the other does not do. */
const isSame = (series: Series, { fromMs, toMs, parallel, redo }: BackfillRequest): boolean =>
  series.fromMs === fromMs &&
  series.toMs === toMs &&
  (parallel === undefined || parallel === series.parallel) &&
  (redo === undefined || [...redo].sort().join() === [...series.redo].sort().join());

export interface BackfillAnswer {
  readonly series: Series;
  /** It went on already: the same command again begins no second one. */
  readonly takenUp: boolean;
}

/**
 * Begins a backfill, or takes up the same one that goes on.
 * @throws InvalidInput naming the field, Conflict when another backfill of the job goes on or its pool has no places
 */
export const startBackfill = async (deps: SeriesDeps, request: BackfillRequest): Promise<BackfillAnswer> => {
  const { job, fromMs, toMs, parallel = 1, redo = DEFAULT_REDO } = request;
  const name = { subject: job.subject, kind: "backfill" } as const;
  const going = await readSeries(deps, name);
  if (going?.state === "open") {
    if (going.stopping || !isSame(going, request)) {
      const { fromMs, toMs, parallel, redo } = going;
      throw new Conflict(
        "in_flight",
        `a backfill of ${job.name} from ${shortIsoOf(fromMs)} to ${shortIsoOf(toMs)} (parallel ${parallel}, redo ${redo.join(",") || "none"}) ` +
          (going.stopping
            ? "is stopping: its runs are not over yet"
            : "goes on; stop it, or wait for its end"),
      );
    }
    return { series: await takeUpSeries(deps, job, going), takenUp: true };
  }
  checkParallel(deps, job, parallel);
  const slots = slotsOf(deps, request);
  const untilMs = untilMsOf(deps, toMs);
  const wanted: NewSeries = {
    ...name,
    id: deps.random.token(),
    cursor: slotKeyOf(fromMs),
    until: slotKeyOf(Math.max(fromMs, untilMs)),
    fromMs,
    toMs,
    parallel,
    redo,
    schedule: scheduleText(job),
    total: slots.length,
  };
  return { series: await beginSeries(deps, job, wanted), takenUp: false };
};
