import { Unavailable } from "../../core/errors.ts";
import { definitionKey, runKey, SERIES_KEY, seriesKey, slotKeyInSortKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { reopen } from "../../core/runs/marks.ts";
import { isTrigger } from "../../core/runs/message.ts";
import { isTerminal } from "../../core/runs/run.ts";
import {
  AT_END,
  endSeries,
  type Handed,
  handOut,
  type Registered,
  registeredIn,
  type Series,
  type SeriesEnd,
  type SeriesKind,
  type SeriesName,
  seriesIn,
  settleRun,
  stopSeries,
  unregisterSeries,
} from "../../core/runs/series.ts";
import { claim } from "../../core/runs/transitions.ts";
import type { Item } from "../../core/write.ts";
import { scheduleText } from "../definitions.ts";
import type { Deps } from "../deps.ts";
import { claimAndSend } from "../path/claims.ts";
import { isLocked, maxHolders } from "../path/lock-keeper.ts";
import { eachInTurn, type Failure } from "../watchdog/each-in-turn.ts";
import { LONGEST_ASK_MS, noteAsk } from "../watchdog/looks.ts";
import { nextRuns } from "./series-source.ts";

export type SeriesDeps = Omit<Deps, "timers">;

/** So many pages of a series are looked at in one go; a long stretch of slots that have records takes several. */
const MAX_PAGES = 20;

type HandedRun = Pick<Handed, "slotKey" | "epoch">;

/** The series as it is now. @throws Unavailable */
export const readSeries = async (
  { table }: Pick<Deps, "table">,
  name: SeriesName,
): Promise<Series | undefined> => seriesIn(name, await table.get(seriesKey(name), { consistent: true }));

const settle = async (
  { table }: Pick<Deps, "table">,
  series: Series,
  run: HandedRun,
  end: SeriesEnd | "left",
): Promise<Series> => seriesIn(series, (await table.write(settleRun(series, run, end))).item) ?? series;

/**
 * Asks for a run that the series has listed: its note, its record, its claim. Whoever asks again does no harm, since the
 * record says for which series it was made.
 */
const ask = async (
  deps: SeriesDeps,
  job: JobDefinition,
  series: Series,
  handed: HandedRun,
): Promise<Series> => {
  const { epoch, slotKey } = handed;
  const occurrence = { subject: series.subject, slotKey };
  const own = { token: deps.random.token(), nowMs: deps.clock.nowMs(), series: series.kind };
  await noteAsk(deps, occurrence, epoch);
  const { item: run } = await deps.table.write(
    epoch === 1 ? claim({ occurrence, trigger: "backfill", ...own }) : reopen(occurrence, epoch - 1, own),
  );
  if (run?.["series"] !== series.kind || run["ep"] !== epoch) return settle(deps, series, handed, "left");
  if (run["st"] !== "queued") return series;
  const trigger = run["trigger"];
  await claimAndSend(
    deps,
    {
      job,
      occurrence,
      epoch,
      trigger: isTrigger(trigger) ? trigger : "backfill",
      queuedAtMs: Number(run["reopenedAtMs"] ?? run["claimedAtMs"]),
      recorded: true,
    },
    own.token,
  );
  return series;
};

/**
 * A job that runs one at a time has its live slot soon: a run that began now could be in its way. Where slots come closer
 * than that, a live one waits for the run that it meets.
 */
const isLiveSlotNear = ({ jobs, clock }: SeriesDeps, job: JobDefinition): boolean => {
  if (!isLocked(job) || maxHolders(job) > 1 || !jobs.firesHere(job)) return false;
  const schedule = jobs.scheduleOf(job);
  const nextMs = schedule?.next(clock.nowMs());
  if (nextMs === undefined || nextMs - clock.nowMs() >= job.timeoutMs) return false;
  const followingMs = schedule?.next(nextMs);
  return followingMs === undefined || followingMs - nextMs > 2 * job.timeoutMs;
};

const hasSameSchedule = (job: JobDefinition, { schedule }: Series): boolean =>
  schedule === undefined || schedule === scheduleText(job);

/** Hands out what there is room for. */
const handOutNext = async (deps: SeriesDeps, job: JobDefinition, given: Series): Promise<Series> => {
  let series = given;
  for (let page = 0; page < MAX_PAGES; page++) {
    const room = series.parallel - series.handed.length;
    const mayGoOn = series.state === "open" && !series.stopping && series.cursor !== AT_END;
    if (!mayGoOn || room <= 0 || !hasSameSchedule(job, series) || isLiveSlotNear(deps, job)) return series;
    const next = await nextRuns(deps, job, series, room);
    const token = deps.random.token();
    const { item } = await deps.table.write(handOut(series, { ...next, token, nowMs: deps.clock.nowMs() }));
    const seen = seriesIn(series, item);
    if (seen === undefined) return series;
    series = seen;
    // Refused, and not by our own write whose answer was lost: whoever was faster asks for its own.
    if (seen.owner !== token) continue;
    for (const run of next.runs) series = await ask(deps, job, series, run);
  }
  return series;
};

/** The end of a series whose last run is over; its places go back to the pool. */
const endIfOver = async (deps: SeriesDeps, series: Series): Promise<void> => {
  const isThrough = series.stopping || series.cursor === AT_END;
  if (series.state !== "open" || series.handed.length > 0 || !isThrough) return;
  const ended = await deps.table.write(endSeries(series, deps.clock.nowMs()));
  if (!ended.written && ended.item?.["st"] === "open") return;
  const registry = await deps.table.get(SERIES_KEY, { consistent: true });
  const mine = registeredIn(registry).find(({ id }) => id === series.id);
  if (mine !== undefined) await deps.table.write(unregisterSeries(mine));
};

/** A listed run as it is now: over, or never asked for by a process that died, or on its way. */
const lookAtHanded = async (
  deps: SeriesDeps,
  job: JobDefinition | undefined,
  series: Series,
  handed: Handed,
): Promise<Series> => {
  const occurrence = { subject: series.subject, slotKey: handed.slotKey };
  const run = await deps.table.get(runKey(occurrence), { consistent: true });
  const epoch = run?.["st"] === undefined ? 0 : Number(run["ep"]);
  if (epoch > handed.epoch) return settle(deps, series, handed, "left");
  if (epoch === handed.epoch) {
    const state = String(run?.["st"]);
    return isTerminal(state) ? settle(deps, series, handed, state as SeriesEnd) : series;
  }
  if (deps.clock.nowMs() < handed.atMs + deps.timings.firstLookMs) return series;
  // Whoever listed it died before it asked.
  return job === undefined || series.stopping
    ? settle(deps, series, handed, "left")
    : ask(deps, job, series, handed);
};

/** Looks at all that is on its way, and hands out what there is room for. */
export const driveSeries = async (deps: SeriesDeps, given: Series): Promise<void> => {
  const job = deps.jobs.bySubject(given.subject);
  let series = given;
  for (const handed of given.handed) series = await lookAtHanded(deps, job, series, handed);
  if (job !== undefined) series = await handOutNext(deps, job, series);
  await endIfOver(deps, series);
};

/**
 * A run that belongs to a series is over: the next one is handed out at once, not only when the watchdog comes by.
 * `run` is its record as its end left it.
 */
export const runOfSeriesEnded = async (deps: SeriesDeps, job: JobDefinition, run: Item): Promise<void> => {
  const name = { subject: job.subject, kind: run["series"] as SeriesKind };
  const ended = { slotKey: slotKeyInSortKey(String(run["sk"])), epoch: Number(run["ep"]) };
  try {
    const answer = await deps.table.write(settleRun(name, ended, run["st"] as SeriesEnd));
    const series = seriesIn(name, answer.item);
    // Also where it was settled before: by our own write, whose answer was lost, or by a process that may be gone.
    if (series !== undefined) await endIfOver(deps, await handOutNext(deps, job, series));
  } catch (error) {
    // The run itself is over, and its message has done its work: the watchdog goes on with the series.
    if (!(error instanceof Unavailable)) throw error;
  }
};

/** Why a series must not go on by itself: nothing that a deploy changes may fire a run by surprise. */
const reasonToStop = async ({ table, jobs }: SeriesDeps, series: Series): Promise<string | undefined> => {
  const job = jobs.bySubject(series.subject);
  if (job !== undefined) return hasSameSchedule(job, series) ? undefined : "the schedule of its job changed";
  // A job that this code does not know may be a newer one, met by older code.
  const definition = await table.get(definitionKey(series.subject), { consistent: true });
  return definition?.["removedAtMs"] === undefined ? undefined : "its job was removed";
};

const continueOne = async (deps: SeriesDeps, registered: Registered): Promise<void> => {
  let series = await readSeries(deps, registered);
  if (series?.id !== registered.id || series.state !== "open") {
    // Over, or about to begin: unless whoever began it ended in between.
    const isOver = series?.id === registered.id;
    const isAbandoned = deps.clock.nowMs() > registered.atMs + LONGEST_ASK_MS;
    if (isOver || isAbandoned) await deps.table.write(unregisterSeries(registered));
    return;
  }
  const reason = series.stopping ? undefined : await reasonToStop(deps, series);
  if (reason !== undefined) {
    const { item } = await deps.table.write(stopSeries(series, deps.clock.nowMs(), reason));
    series = seriesIn(series, item) ?? series;
    deps.journal.notice("warn", "series-stopped", { job: series.subject, kind: series.kind, reason });
  }
  if (deps.jobs.bySubject(series.subject) === undefined && !series.stopping) return;
  await driveSeries(deps, series);
};

/** The watchdog's part: every series that is not over, by the one item that lists them. Answers what was thrown. */
export const continueSeries = async (deps: SeriesDeps): Promise<readonly Failure[]> => {
  const registry = await deps.table.get(SERIES_KEY, { consistent: false });
  return eachInTurn(registeredIn(registry), (registered) => continueOne(deps, registered));
};
