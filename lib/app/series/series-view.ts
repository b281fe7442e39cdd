import { runIdOf } from "../../core/identity.ts";
import { runKey, SERIES_KEY, seriesKey } from "../../core/items.ts";
import type { RunState } from "../../core/runs/run.ts";
import {
  registeredIn,
  SERIES_KINDS,
  type Series,
  type SeriesKind,
  seriesIn,
} from "../../core/runs/series.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Deps } from "../deps.ts";
import { stateOf } from "../inspect/run-view.ts";

/** A backfill, or the retry of a job's dead runs, as the CLI and the API show it. */
export interface SeriesView {
  readonly job: string;
  readonly kind: SeriesKind;
  /** `stopping`: nothing is handed out any more, and some runs are not over. */
  readonly state: "open" | "stopping" | "done" | "stopped";
  /** Why it was stopped. */
  readonly reason?: string;
  /** Of a backfill: slots in `[from, to)`. */
  readonly from?: string;
  readonly to?: string;
  /** Runs that ended so are run again. */
  readonly redo: readonly string[];
  /** At most so many runs on their way at once. */
  readonly parallel: number;
  /** Slots, or dead runs, when it began. */
  readonly total: number;
  /** Runs asked for so far; those that are over are in `ended`. */
  readonly asked: number;
  /** Passed over: done already, on its way, or not among `redo`. */
  readonly left: number;
  /** By state; those with none are left out. */
  readonly ended: { readonly [state: string]: number };
  /** On their way, in order of their slot. */
  readonly outstanding: readonly { readonly runId: string; readonly state: RunState }[];
  readonly startedAt: string;
  readonly endedAt: string | null;
}

type ViewDeps = Pick<Deps, "table" | "jobs">;

const stateOfSeries = ({ state, stopping }: Series): SeriesView["state"] => (stopping ? "stopping" : state);

export const seriesView = async ({ table, jobs }: ViewDeps, series: Series): Promise<SeriesView> => {
  const { subject, kind, handed, endedAtMs } = series;
  const runs = await table.getMany(handed.map(({ slotKey }) => runKey({ subject, slotKey })));
  const states = new Map(runs.map((run) => [String(run["sk"]), stateOf(run)]));
  return {
    job: jobs.bySubject(subject)?.name ?? subject,
    kind,
    state: stateOfSeries(series),
    ...(series.reason === undefined ? {} : { reason: series.reason }),
    ...(kind === "backfill" ? { from: shortIsoOf(series.fromMs), to: shortIsoOf(series.toMs) } : {}),
    redo: series.redo,
    parallel: series.parallel,
    total: series.total,
    asked: series.asked,
    left: series.left,
    ended: Object.fromEntries(Object.entries(series.ended).filter(([, count]) => count > 0)),
    outstanding: handed.map(({ slotKey }) => ({
      runId: runIdOf({ subject, slotKey }),
      state: states.get(runKey({ subject, slotKey }).sk) ?? "queued",
    })),
    startedAt: shortIsoOf(series.startedAtMs),
    endedAt: endedAtMs === undefined ? null : shortIsoOf(endedAtMs),
  };
};

/** Every series that goes on, and the last one of each job, by job and kind. */
export const listSeries = async (deps: ViewDeps): Promise<readonly SeriesView[]> => {
  const registry = await deps.table.get(SERIES_KEY, { consistent: true });
  const subjects = new Set([
    ...deps.jobs.all.map(({ subject }) => subject),
    ...registeredIn(registry).map(({ subject }) => subject),
  ]);
  const names = [...subjects].flatMap((subject) => SERIES_KINDS.map((kind) => ({ subject, kind })));
  const items = await deps.table.getMany(names.map(seriesKey));
  const byKey = new Map(items.map((item) => [`${item["pk"]} ${item["sk"]}`, item]));
  const found = names
    .map((name) => seriesIn(name, byKey.get(`${seriesKey(name).pk} ${seriesKey(name).sk}`)))
    .filter((series) => series !== undefined);
  return Promise.all(found.map((series) => seriesView(deps, series)));
};
