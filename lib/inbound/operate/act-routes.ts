import type { Context, Hono } from "hono";
import type { Inspect } from "../../app/inspect/inspect.ts";
import type { Operator } from "../../app/operate/operator.ts";
import { InvalidInput } from "../../core/errors.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ActAnswer, JobActAnswer } from "./answers.ts";
import { bodyOf } from "./body.ts";
import {
  CANCEL_REQUEST,
  checked,
  MUTE_REQUEST,
  NO_REQUEST,
  PAUSE_REQUEST,
  RETRY_REQUEST,
} from "./schemas.ts";
import { readTime } from "./times.ts";

interface ActDeps {
  readonly inspect: Inspect;
  readonly operator: Operator;
  readonly jobs: JobList;
  readonly clock: Clock;
}

/** What a person does to one run. Each answers the run as it is afterwards. */
const addRunActs = (app: Hono, { inspect, operator, jobs }: ActDeps): void => {
  const answer = async (context: Context, runId: string): Promise<Response> => {
    const run = await inspect.run(runId);
    return context.json({ run, timezone: jobs.byName(run.job)?.timezone ?? "UTC" } satisfies ActAnswer);
  };
  app.post("/v1/runs/:id/retry", async (context) => {
    const { shards } = checked(RETRY_REQUEST, await bodyOf(context));
    const runId = context.req.param("id");
    await operator.retry(await inspect.pointed(runId), shards);
    return answer(context, runId);
  });
  app.post("/v1/runs/:id/cancel", async (context) => {
    const { reason } = checked(CANCEL_REQUEST, await bodyOf(context));
    const runId = context.req.param("id");
    await operator.cancel(await inspect.pointed(runId, { orRemoved: true }), reason ?? "cancelled by hand");
    return answer(context, runId);
  });
  app.post("/v1/runs/:id/dismiss", async (context) => {
    checked(NO_REQUEST, await bodyOf(context));
    const runId = context.req.param("id");
    await operator.dismiss(await inspect.pointed(runId, { orRemoved: true }));
    return answer(context, runId);
  });
};

/** What a person does to a job's slots to come, and to what is told of it. */
const addJobActs = (app: Hono, { inspect, operator, clock }: ActDeps): void => {
  const timeAhead = (until: string, { timezone }: JobDefinition, hint: string): number => {
    const untilMs = readTime(until, timezone, "until");
    if (untilMs > clock.nowMs()) return untilMs;
    const message = `until ${shortIsoOf(untilMs)} is in the past`;
    throw new InvalidInput("invalid_request", message, { field: "until", hint });
  };
  app.post("/v1/jobs/:job/mute", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const { reason, until } = checked(MUTE_REQUEST, await bodyOf(context));
    const untilMs = timeAhead(until, job, "name the instant from which alerts are told again");
    const because = reason === undefined ? {} : { reason };
    await operator.mute(job, { untilMs, ...because });
    const answer = { job: job.name, timezone: job.timezone, until: shortIsoOf(untilMs), ...because };
    return context.json(answer satisfies JobActAnswer);
  });
  app.post("/v1/jobs/:job/unmute", async (context) => {
    const job = inspect.job(context.req.param("job"));
    checked(NO_REQUEST, await bodyOf(context));
    await operator.unmute(job);
    return context.json({ job: job.name, timezone: job.timezone } satisfies JobActAnswer);
  });
  app.post("/v1/jobs/:job/pause", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const { reason, until } = checked(PAUSE_REQUEST, await bodyOf(context));
    const hint = "name the first instant at which the job may fire again";
    const untilMs = until === undefined ? undefined : timeAhead(until, job, hint);
    await operator.pause(job, { reason, ...(untilMs === undefined ? {} : { untilMs }) });
    const paused = { job: job.name, timezone: job.timezone, reason };
    return context.json({
      ...paused,
      ...(untilMs === undefined ? {} : { until: shortIsoOf(untilMs) }),
    } satisfies JobActAnswer);
  });
  app.post("/v1/jobs/:job/resume", async (context) => {
    const job = inspect.job(context.req.param("job"));
    checked(NO_REQUEST, await bodyOf(context));
    await operator.resume(job);
    return context.json({ job: job.name, timezone: job.timezone } satisfies JobActAnswer);
  });
  app.post("/v1/jobs/:job/skip-next", async (context) => {
    const job = inspect.job(context.req.param("job"));
    checked(NO_REQUEST, await bodyOf(context));
    const slot = shortIsoOf(await operator.skipNext(job));
    return context.json({ job: job.name, timezone: job.timezone, slot } satisfies JobActAnswer);
  });
};

export const addActRoutes = (app: Hono, deps: ActDeps): void => {
  addRunActs(app, deps);
  addJobActs(app, deps);
};
