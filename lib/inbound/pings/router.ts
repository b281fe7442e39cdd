import { type Context, Hono } from "hono";
import * as v from "valibot";
import type { PingRequest, SendPing } from "../../app/monitors/ping.ts";
import { BelfryError, InvalidInput, Unavailable } from "../../core/errors.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import { isMonitor, type MonitorDefinition, PINGS } from "../../core/monitors/monitor.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Journal } from "../../ports/journal.ts";
import type { PingAnswer } from "../operate/answers.ts";
import { answerError } from "../operate/problems.ts";
import { checked, PING_DURATION, time } from "../operate/schemas.ts";
import { readTime } from "../operate/times.ts";
import { isPingKey, isStrong, pingKey } from "./ping-key.ts";
import { startOf } from "./start-of.ts";

/** The deployment's secret, newest first: after a change the one before is still good. */
export interface PingSecrets {
  /** May be of some time ago. @throws Unavailable */
  known(): Promise<readonly string[]>;
  /** As they are now, or were a minute ago. @throws Unavailable */
  renewed(): Promise<readonly string[]>;
}

export interface PingRouterDeps {
  readonly ping: SendPing;
  readonly jobs: JobList;
  readonly secrets: PingSecrets;
  readonly journal: Pick<Journal, "notice">;
}

/** Appended to the address, as `curl .../$?` does; nothing = the job has succeeded. */
const signalOf = (text: string | undefined): PingRequest["signal"] => {
  if (text === undefined) return "ok";
  if (text === "start" || text === "ok" || text === "fail") return text;
  if (/^\d{1,10}$/.test(text) && Number(text) < 2 ** 32) return Number(text);
  throw new InvalidInput("invalid_request", `"${text}" is neither start, ok, fail nor an exit code`, {
    field: "signal",
    hint: "end the address with /start, /fail or the exit code of the job, or with its key alone for a success",
  });
};

const QUERY = v.strictObject({
  slot: v.optional(time),
  message: v.optional(v.string()),
  durationMs: v.optional(v.pipe(v.string(), v.transform(Number), PING_DURATION)),
});

/** Of a body; what the job printed may be long, and its ping is not lost for that. */
const MESSAGE_BYTES = 1_024;

const messageOf = async (request: Request): Promise<string | undefined> => {
  const text = request.method === "POST" ? (await startOf(request.body, MESSAGE_BYTES)).trim() : "";
  return text === "" ? undefined : text;
};

const requestOf = async (context: Context, job: MonitorDefinition): Promise<PingRequest> => {
  const { method } = context.req;
  if (method !== "GET" && method !== "POST")
    throw new InvalidInput("method_not_allowed", `a ping is a GET or a POST, not a ${method}`);
  const signal = signalOf(context.req.param("signal"));
  const { slot, message, durationMs } = checked(QUERY, context.req.query());
  const said = message ?? (await messageOf(context.req.raw));
  return {
    job,
    signal,
    ...(said === undefined ? {} : { message: said }),
    ...(slot === undefined ? {} : { slotMs: readTime(slot, job.timezone, "slot") }),
    ...(durationMs === undefined ? {} : { durationMs }),
  };
};

const unknownAddress = (): InvalidInput =>
  new InvalidInput("unknown_address", "there is no monitor at this address");

/** Anybody may ask here: what it is that does not answer is nobody's business. */
const NOT_NOW = new Unavailable("unavailable", "the ping could not be taken: send it again");

/**
 * The addresses by which jobs that run elsewhere tell of themselves: `/ping/<monitor>/<key>`, then nothing, `/start`,
 * `/fail` or an exit code. A wrong key and an unknown monitor are answered alike. What is refused of a caller with the
 * right key is counted: that is how a job goes silent unseen.
 */
export const pingRouter = ({ ping, jobs, secrets, journal }: PingRouterDeps): Hono => {
  const app = new Hono();
  const report = (error: unknown): void =>
    journal.notice("error", "invocation-failed", {
      why: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });

  const monitorAt = async (name: string, key: string): Promise<MonitorDefinition> => {
    const job = jobs.bySubject(name) ?? jobs.byName(name);
    const subject = job?.subject ?? name;
    const isKnown =
      isPingKey(key, await secrets.known(), subject) || isPingKey(key, await secrets.renewed(), subject);
    if (!isKnown || job === undefined || !isMonitor(job)) throw unknownAddress();
    return job;
  };

  app.all(`${PINGS}:monitor/:key/:signal?`, async (context) => {
    const { monitor, key } = context.req.param();
    const job = await monitorAt(monitor, key);
    try {
      const { runId, slotMs, duplicate } = await ping(await requestOf(context, job));
      return context.json({ runId, slot: shortIsoOf(slotMs), duplicate } satisfies PingAnswer);
    } catch (error) {
      if (error instanceof BelfryError && !error.retryable)
        journal.notice("warn", "ping-refused", { job: job.name, why: error.message });
      throw error;
    }
  });
  app.notFound((context) => answerError(context, unknownAddress()));
  app.onError((error, context) => {
    if (!(error instanceof Unavailable)) return answerError(context, error, report);
    report(error);
    return answerError(context, NOT_NOW);
  });
  return app;
};

/** The path of the monitor's address. @throws InvalidInput (`weak_secret`) where its secret would open nothing */
export const pingPath = ([newest = ""]: readonly string[], { subject }: MonitorDefinition): string => {
  if (isStrong(newest)) return `${PINGS}${subject}/${pingKey(newest, subject)}`;
  throw new InvalidInput("weak_secret", "the secret of the ping addresses is shorter than 32 bytes", {
    hint: "give it a new random value of at least 32 bytes",
  });
};
