import { InvalidInput } from "../../core/errors.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { SeriesKind } from "../../core/runs/series.ts";
import { type BackfillPlan, type BackfillRequest, planBackfill, startBackfill } from "./backfill.ts";
import { stopSeriesByHand } from "./begin-series.ts";
import { retryDead } from "./retry-dead.ts";
import { readSeries, type SeriesDeps } from "./series.ts";
import { listSeries, type SeriesView, seriesView } from "./series-view.ts";

/** What a person does with many runs of a job at once. Each answers the series as it is afterwards. */
export const makeSeriesActs = (deps: SeriesDeps) => ({
  planBackfill: (request: BackfillRequest): Promise<BackfillPlan> => planBackfill(deps, request),

  startBackfill: async (
    request: BackfillRequest,
  ): Promise<{ readonly series: SeriesView; readonly takenUp: boolean }> => {
    const { series, takenUp } = await startBackfill(deps, request);
    return { series: await seriesView(deps, series), takenUp };
  },

  /** Undefined = the job has no dead runs. */
  retryDead: async (job: JobDefinition, parallel?: number): Promise<SeriesView | undefined> => {
    const series = await retryDead(deps, job, parallel);
    return series && seriesView(deps, series);
  },

  stop: async (job: JobDefinition, kind: SeriesKind): Promise<SeriesView> =>
    seriesView(deps, await stopSeriesByHand(deps, job, kind)),

  /** The one that goes on, else the last one. @throws InvalidInput `unknown_series` */
  read: async (job: JobDefinition, kind: SeriesKind): Promise<SeriesView> => {
    const series = await readSeries(deps, { subject: job.subject, kind });
    if (series !== undefined) return seriesView(deps, series);
    throw new InvalidInput("unknown_series", `there has been no ${kind} of ${job.name}`, { field: "job" });
  },

  list: (): Promise<readonly SeriesView[]> => listSeries(deps),
});

export type SeriesActs = ReturnType<typeof makeSeriesActs>;
