import type { Hono } from "hono";
import type { Inspect } from "../../app/inspect/inspect.ts";
import type { SeriesActs } from "../../app/series/series-acts.ts";
import { InvalidInput } from "../../core/errors.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { SERIES_KINDS, type SeriesKind } from "../../core/runs/series.ts";
import type {
  BackfillAnswer,
  BackfillPlanAnswer,
  RetryDeadAnswer,
  SeriesAnswer,
  SeriesListAnswer,
} from "./answers.ts";
import { bodyOf } from "./body.ts";
import { BACKFILL_REQUEST, checked, NO_REQUEST, RETRY_DEAD_REQUEST } from "./schemas.ts";
import { readTime } from "./times.ts";

interface SeriesRouteDeps {
  readonly inspect: Inspect;
  readonly series: SeriesActs;
}

const kindOf = (text: string): SeriesKind => {
  const kind = SERIES_KINDS.find((known) => known === text);
  if (kind === undefined) throw new InvalidInput("unknown_route", "there is nothing at this address");
  return kind;
};

const rangeOf = (job: JobDefinition, { from, to }: { readonly from: string; readonly to: string }) => ({
  job,
  fromMs: readTime(from, job.timezone, "from"),
  toMs: readTime(to, job.timezone, "to"),
});

/** Many runs of a job at once: backfills, and the retry of its dead runs. */
export const addSeriesRoutes = (app: Hono, { inspect, series }: SeriesRouteDeps): void => {
  app.get("/v1/series", async (context) =>
    context.json({ series: await series.list() } satisfies SeriesListAnswer),
  );

  app.post("/v1/jobs/:job/backfill", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const { from, to, parallel, redo, dryRun } = checked(BACKFILL_REQUEST, await bodyOf(context));
    const request = {
      ...rangeOf(job, { from, to }),
      ...(parallel === undefined ? {} : { parallel }),
      ...(redo === undefined ? {} : { redo }),
    };
    const { timezone } = job;
    if (dryRun === true) {
      const plan = await series.planBackfill(request);
      return context.json({ dryRun: true, ...plan, timezone } satisfies BackfillPlanAnswer);
    }
    const begun = await series.startBackfill(request);
    return context.json({ ...begun, timezone } satisfies BackfillAnswer, 202);
  });

  app.post("/v1/jobs/:job/retry-dead", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const { parallel } = checked(RETRY_DEAD_REQUEST, await bodyOf(context));
    const begun = await series.retryDead(job, parallel);
    return context.json({ series: begun ?? null, timezone: job.timezone } satisfies RetryDeadAnswer, 202);
  });

  app.get("/v1/jobs/:job/series/:kind", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const seen = await series.read(job, kindOf(context.req.param("kind")));
    return context.json({ series: seen, timezone: job.timezone } satisfies SeriesAnswer);
  });

  app.post("/v1/jobs/:job/series/:kind/stop", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const kind = kindOf(context.req.param("kind"));
    checked(NO_REQUEST, await bodyOf(context));
    const stopped = await series.stop(job, kind);
    return context.json({ series: stopped, timezone: job.timezone } satisfies SeriesAnswer);
  });
};
