import { type Context, Hono } from "hono";
import type { Inspect } from "../../app/inspect/inspect.ts";
import { previewJob } from "../../app/inspect/preview-job.ts";
import type { SendPing } from "../../app/monitors/ping.ts";
import type { Operator } from "../../app/operate/operator.ts";
import type { RunByHandAnswer, RunByHandRequest } from "../../app/operate/run-by-hand.ts";
import type { SeriesActs } from "../../app/series/series-acts.ts";
import { slotRefusal } from "../../app/watchdog/check-slot.ts";
import { Conflict, InvalidInput } from "../../core/errors.ts";
import { runIdOf, slotKeyOf } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import type { Json } from "../../core/json.ts";
import { mustRunHere } from "../../core/monitors/monitor.ts";
import { isTerminal, type RunView } from "../../core/runs/run.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Clock } from "../../ports/clock.ts";
import { addActRoutes } from "./act-routes.ts";
import { type AlarmDeps, addAlarmRoute } from "./alarm-route.ts";
import { type AlertDeps, addAlertRoutes } from "./alert-routes.ts";
import type {
  AcceptedAnswer,
  DefinitionsAnswer,
  DryRunAnswer,
  FlipsAnswer,
  HeartbeatAnswer,
  JobsAnswer,
  PingAddressAnswer,
  RunAnswer,
  RunsAnswer,
} from "./answers.ts";
import { bodyOf } from "./body.ts";
import { answerError } from "./problems.ts";
import {
  checked,
  FLIPS_QUERY,
  HEARTBEAT_REQUEST,
  JOB_RUN_QUERY,
  NEXT_QUERY,
  RUN_QUERY,
  RUN_REQUEST,
  RUNS_QUERY,
} from "./schemas.ts";
import { addSeriesRoutes } from "./series-routes.ts";
import { readTime } from "./times.ts";

export interface OperateDeps extends AlertDeps, AlarmDeps {
  readonly inspect: Inspect;
  readonly runByHand: (request: RunByHandRequest) => Promise<RunByHandAnswer>;
  readonly operator: Operator;
  readonly ping: SendPing;
  /** Where a monitor's job pings, key and all. @throws InvalidInput for a job that runs here, and for a weak secret */
  readonly pingAddress: (job: JobDefinition) => Promise<string>;
  readonly series: SeriesActs;
  readonly jobs: JobList;
  readonly clock: Clock;
  /** Told of errors that the caller is not told of. */
  readonly report?: (error: unknown) => void;
}

const DEFAULT_LIMIT = 20;

/** Somebody was first: the run is over, or on its way. */
const taken = (runId: string, state: string, reason?: string): Conflict =>
  isTerminal(state)
    ? new Conflict("already_done", `already done: run ${runId} is ${state}`)
    : new Conflict("in_flight", reason ?? `run ${runId} is ${state}`);

/**
 * Runs on request. A dry run goes through the same checks, and stops before the first write; what another run may
 * do in between, only a real one can tell.
 */
const makeRunRequest = ({ inspect, runByHand, jobs, clock }: OperateDeps) => {
  const slotOf = (job: JobDefinition, text: string | undefined): number | undefined => {
    if (text === undefined) return undefined;
    const slotMs = readTime(text, job.timezone, "slot");
    const refusal = slotRefusal(job, jobs.scheduleOf(job), { slotMs, nowMs: clock.nowMs() });
    if (refusal !== undefined) throw refusal;
    return slotMs;
  };

  const dryRun = async (job: JobDefinition, slotMs: number | undefined, input: Json | undefined) => {
    const run = slotMs === undefined ? undefined : await inspect.runAtSlot(job.name, slotMs);
    if (run !== undefined) throw taken(run.runId, run.state);
    const occurrence =
      slotMs === undefined ? undefined : { subject: job.subject, slotKey: slotKeyOf(slotMs) };
    return {
      dryRun: true,
      job: job.name,
      slot: slotMs === undefined ? null : shortIsoOf(slotMs),
      runId: occurrence === undefined ? null : runIdOf(occurrence),
      input: input ?? job.input,
      timezone: job.timezone,
    } satisfies DryRunAnswer;
  };

  return async (context: Context, name: string): Promise<Response> => {
    const job = inspect.job(name);
    mustRunHere(job);
    const request = checked(RUN_REQUEST, await bodyOf(context));
    const slotMs = slotOf(job, request.slot);
    if (request.dryRun === true) return context.json(await dryRun(job, slotMs, request.input));
    const answer = await runByHand({
      job,
      ...(slotMs === undefined ? {} : { slotMs }),
      ...(request.input === undefined ? {} : { input: request.input }),
      ...(request.reason === undefined ? {} : { reason: request.reason }),
    });
    if (answer.kind === "refused") throw taken(answer.runId, answer.state, answer.reason);
    const accepted: AcceptedAnswer = {
      run: await inspect.run(answer.runId),
      timezone: job.timezone,
      ...(answer.notice === undefined ? {} : { notice: answer.notice }),
    };
    context.header("location", `/v1/runs/${answer.runId}`);
    return context.json(accepted, 202);
  };
};

const runAnswer = ({ jobs }: OperateDeps, run: RunView): RunAnswer => ({
  run,
  timezone: jobs.byName(run.job)?.timezone ?? "UTC",
});

const addJobRoutes = (app: Hono, deps: OperateDeps): void => {
  const { inspect, jobs, clock } = deps;
  const requestRun = makeRunRequest(deps);

  app.get("/v1/jobs", async (context) =>
    context.json({ jobs: await inspect.listJobs() } satisfies JobsAnswer),
  );

  app.get("/v1/definitions", (context) =>
    context.json({ stage: jobs.stage, hash: jobs.hash, jobs: jobs.all } satisfies DefinitionsAnswer),
  );

  app.get("/v1/jobs/:job/next", (context) => {
    const job = inspect.job(context.req.param("job"));
    const { from, count } = checked(NEXT_QUERY, context.req.query());
    const fromMs = from === undefined ? clock.nowMs() : readTime(from, job.timezone, "from");
    return context.json(previewJob(job, jobs.scheduleOf(job), { fromMs, count }));
  });

  /** Its last run, or the one of a slot. */
  app.get("/v1/jobs/:job/run", async (context) => {
    const name = context.req.param("job");
    const { slot } = checked(JOB_RUN_QUERY, context.req.query());
    if (slot === undefined) return context.json(runAnswer(deps, await inspect.lastRun(name)));
    const job = inspect.job(name);
    const slotMs = readTime(slot, job.timezone, "slot");
    const run = await inspect.runAtSlot(job.name, slotMs);
    if (run === undefined)
      throw new InvalidInput("unknown_run", `${job.name} has no run of slot ${shortIsoOf(slotMs)}`, {
        field: "slot",
        hint: await inspect.whyNoRun(job, slotMs),
      });
    return context.json(runAnswer(deps, run));
  });

  app.get("/v1/jobs/:job/flips", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const { limit } = checked(FLIPS_QUERY, context.req.query());
    const flips = await inspect.listFlips(job, limit ?? DEFAULT_LIMIT);
    return context.json({ flips, timezone: job.timezone } satisfies FlipsAnswer);
  });

  app.post("/v1/jobs/:job/heartbeat", async (context) => {
    const job = inspect.job(context.req.param("job"));
    const { signal, slot, message, durationMs } = checked(HEARTBEAT_REQUEST, await bodyOf(context));
    const ping = {
      job,
      signal: signal ?? "ok",
      ...(message === undefined ? {} : { message }),
      ...(slot === undefined ? {} : { slotMs: readTime(slot, job.timezone, "slot") }),
      ...(durationMs === undefined ? {} : { durationMs }),
    };
    const { runId, duplicate } = await deps.ping(ping);
    return context.json({
      ...runAnswer(deps, await inspect.run(runId)),
      duplicate,
    } satisfies HeartbeatAnswer);
  });

  app.get("/v1/jobs/:job/ping-address", async (context) => {
    const job = inspect.job(context.req.param("job"));
    return context.json({ url: await deps.pingAddress(job) } satisfies PingAddressAnswer);
  });

  app.post("/v1/jobs/:job/runs", (context) => requestRun(context, context.req.param("job")));
};

const addRunRoutes = (app: Hono, deps: OperateDeps): void => {
  const { inspect, jobs } = deps;

  app.get("/v1/runs", async (context) => {
    const { job: name, state, since, limit } = checked(RUNS_QUERY, context.req.query());
    const job = name === undefined ? undefined : await inspect.pastJob(name);
    const runs = await inspect.listRuns({
      ...(job === undefined ? {} : { subject: job.subject }),
      ...(state === undefined ? {} : { state }),
      ...(since === undefined ? {} : { sinceMs: readTime(since, job?.timezone ?? "UTC", "since") }),
      limit: limit ?? DEFAULT_LIMIT,
    });
    const known = runs.map((run) => jobs.byName(run.job)).filter((found) => found !== undefined);
    const timezones = Object.fromEntries(known.map(({ name, timezone }) => [name, timezone]));
    return context.json({ runs, timezones } satisfies RunsAnswer);
  });

  /** With `waitMs`, answers as soon as the run is over or parked. */
  app.get("/v1/runs/:id", async (context) => {
    const { waitMs } = checked(RUN_QUERY, context.req.query());
    return context.json(runAnswer(deps, await inspect.run(context.req.param("id"), waitMs)));
  });
};

/**
 * The one door for whoever looks or acts: the CLI, and later the HTTP API. Who may pass is decided before it (see
 * `requireKey`). Errors are problem details; docs/cli.md has the shapes.
 */
export const operateRouter = (deps: OperateDeps): Hono => {
  const app = new Hono();
  addJobRoutes(app, deps);
  addRunRoutes(app, deps);
  addActRoutes(app, deps);
  addSeriesRoutes(app, deps);
  addAlertRoutes(app, deps);
  addAlarmRoute(app, deps);
  app.notFound((context) =>
    answerError(context, new InvalidInput("unknown_route", "there is nothing at this address")),
  );
  app.onError((error, context) => answerError(context, error, deps.report));
  return app;
};
