import { Conflict, InvalidInput } from "../../core/errors.ts";
import { SERIES_KEY } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import {
  type NewSeries,
  openSeries,
  placesTaken,
  registeredIn,
  registerSeries,
  type Series,
  type SeriesName,
  seriesIn,
  stopSeries,
} from "../../core/runs/series.ts";
import type { Item } from "../../core/write.ts";
import { isLocked, maxHolders } from "../path/lock-keeper.ts";
import { driveSeries, readSeries, type SeriesDeps } from "./series.ts";

/** Each run on its way has a place in the item of its series, which is written for each. */
const MOST_PARALLEL = 50;

const placesFor = ({ jobs }: SeriesDeps, job: JobDefinition): number => jobs.concurrencyOf(job) - 1;

/**
 * How many runs a series of the job may have on their way: one place of its pool, and of its lock where that has several,
 * stays free for live slots.
 */
export const mostParallel = (deps: SeriesDeps, job: JobDefinition): number => {
  const inLock = isLocked(job) ? Math.max(1, maxHolders(job) - 1) : MOST_PARALLEL;
  return Math.min(placesFor(deps, job), inLock, MOST_PARALLEL);
};

/** @throws InvalidInput (`too_parallel`) that says what bounds it */
export const checkParallel = (deps: SeriesDeps, job: JobDefinition, parallel: number): void => {
  const most = mostParallel(deps, job);
  if (parallel <= most) return;
  const why =
    isLocked(job) && maxHolders(job) - 1 <= most
      ? `${job.name} runs ${maxHolders(job)} at once (overlap)`
      : `the pool "${job.pool}" runs ${deps.jobs.concurrencyOf(job)} at once, and one place stays free for live slots`;
  throw new InvalidInput("too_parallel", `at most ${most} at once for ${job.name}, not ${parallel}: ${why}`, {
    field: "parallel",
    hint: `--parallel ${most}`,
  });
};

const busyPool = (deps: SeriesDeps, job: JobDefinition, wanted: NewSeries, registry: Item | undefined) => {
  const others = registeredIn(registry).filter(({ pool }) => pool === job.pool);
  const names = others.map(({ kind, subject, places }) => `${kind} of ${subject} (${places})`).join(", ");
  return new Conflict(
    "pool_busy",
    `the pool "${job.pool}" has ${placesFor(deps, job)} places for backfills and retries, ` +
      `${placesTaken(registry, job.pool)} of them taken by ${names}; ${wanted.parallel} more do not fit`,
  );
};

/** Takes the series' places in its pool, for the watchdog to know of it. @throws Conflict */
const register = async (deps: SeriesDeps, job: JobDefinition, wanted: NewSeries): Promise<void> => {
  const { subject, kind, id, parallel } = wanted;
  const entry = { subject, kind, id, pool: job.pool, places: parallel, atMs: deps.clock.nowMs() };
  const answer = await deps.table.write(registerSeries(entry, placesFor(deps, job)));
  const mine = registeredIn(answer.item).find((other) => other.subject === subject && other.kind === kind);
  if (answer.written || mine?.id === id) return;
  if (mine === undefined) throw busyPool(deps, job, wanted, answer.item);
  throw new Conflict("being_started", `a ${kind} of ${job.name} was begun just now: ask again in a moment`);
};

/**
 * Begins a series and hands out its first runs. Its places come first: what is begun without them, nobody would go on
 * with.
 * @throws Conflict when one of its name goes on, or its pool has no places left
 */
export const beginSeries = async (
  deps: SeriesDeps,
  job: JobDefinition,
  wanted: NewSeries,
): Promise<Series> => {
  await register(deps, job, wanted);
  const answer = await deps.table.write(openSeries(wanted, deps.clock.nowMs()));
  const series = seriesIn(wanted, answer.item);
  if (series?.id !== wanted.id) {
    throw new Conflict("in_flight", `a ${wanted.kind} of ${job.name} goes on already`);
  }
  await driveSeries(deps, series);
  return (await readSeries(deps, wanted)) ?? series;
};

/** A series that goes on already, taken up again: whatever it waits for is looked at now. */
export const takeUpSeries = async (deps: SeriesDeps, job: JobDefinition, series: Series): Promise<Series> => {
  const registry = await deps.table.get(SERIES_KEY, { consistent: true });
  if (!registeredIn(registry).some(({ id }) => id === series.id)) await register(deps, job, series);
  await driveSeries(deps, series);
  return (await readSeries(deps, series)) ?? series;
};

/**
 * Hands out nothing more; the runs that are on their way end as they would.
 * @throws Conflict when there is none that goes on
 */
export const stopSeriesByHand = async (
  deps: SeriesDeps,
  job: JobDefinition,
  kind: SeriesName["kind"],
): Promise<Series> => {
  const name = { subject: job.subject, kind };
  const series = await readSeries(deps, name);
  if (series?.state !== "open") throw new Conflict("not_open", `no ${kind} of ${job.name} goes on`);
  const answer = await deps.table.write(stopSeries(series, deps.clock.nowMs(), "stopped by hand"));
  const stopped = seriesIn(name, answer.item) ?? series;
  await driveSeries(deps, stopped);
  return (await readSeries(deps, name)) ?? stopped;
};
