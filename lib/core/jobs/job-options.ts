import { alerts, alertsOf } from "../alerts/alert-options.ts";
import { durationText } from "../duration.ts";
import { InvalidInput } from "../errors.ts";
import { NAME_PATTERN } from "../identity.ts";
import type { Json } from "../json.ts";
import { json } from "../read-json.ts";
import {
  type Checked,
  choice,
  defined,
  duration,
  type Fault,
  flag,
  listOf,
  matching,
  noted,
  number,
  oneOrMore,
  type Place,
  placeOf,
  type Reader,
  record,
  text,
} from "../read-options.ts";
import { parseSchedule, type Schedule } from "../schedule/schedule.ts";
import { parseZone } from "../schedule/zone.ts";
import { AWS_TIMINGS } from "../settings.ts";
import { MAX_SHARDS, type Tolerance } from "../shards/shards.ts";
import { isStandardSchema } from "../standard-schema.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, readInstant } from "../time.ts";
import {
  DEFAULTS,
  type JobDefinition,
  type Misfire,
  type Overlap,
  type Retry,
  type ShardsDefinition,
} from "./job.ts";
import { environment, permissions, secrets } from "./job-needs.ts";
import { catchesUpSeveral } from "./misfire.ts";
import { fittedRetry } from "./retry-defaults.ts";
import { shortestGapMs } from "./shortest-gap.ts";

export const NAME_HINT = "a name is a-z, 0-9 and -, begins with a letter and has at most 48 characters";

export const name = matching(NAME_PATTERN, NAME_HINT);
const wait = duration({
  maxMs: 11 * HOUR_MS,
  why: "a queue can hide a message for twelve hours, its run included",
});
/** As the HTTP API and the command line take it for one run. */
const INPUT_KIB = 128;

const input: Reader<Json> = (value, place) => {
  const read = json(value, place);
  const bytes = read === undefined ? 0 : new TextEncoder().encode(JSON.stringify(read)).length;
  if (bytes <= INPUT_KIB * 1024) return read;
  return place.fault(
    `the input has ${Math.ceil(bytes / 1024)} KiB of JSON; at most ${INPUT_KIB} fit`,
    "store it elsewhere and give its place",
  );
};

const POLICIES = ["skip", "latest", "all"] as const;

const misfire: Reader<Partial<Misfire>> = (value, place) => {
  if (typeof value === "string") {
    const policy = choice(POLICIES)(value, place);
    return policy && { policy };
  }
  const read = record({
    policy: choice(POLICIES),
    max: number({ min: 1, max: 1_000, whole: true }),
    within: duration({ maxMs: 14 * DAY_MS, why: "no message lives longer" }),
  })(value, place);
  if (read === undefined) return undefined;
  const { within, ...rest } = read;
  return { ...rest, ...(within !== undefined && { withinMs: within }) };
};

const OVERLAPS = ["skip", "queue", "replace", "allow"] as const;

const limited = record({
  // With more holders the lock item outgrows the one write unit that each of its writes may cost.
  max: number({ min: 1, max: 50, whole: true }),
  whenFull: choice(["skip", "queue"]),
});

const overlap: Reader<Overlap> = (value, place) => {
  if (typeof value !== "object" || value === null) return choice(OVERLAPS)(value, place);
  const read = limited(value, place);
  if (read === undefined) return undefined;
  if (!("max" in value))
    return place.inner("max").fault("how many may run at once is missing", "overlap: { max: 2 }");
  if (read.max === undefined) return undefined;
  return { max: read.max, whenFull: read.whenFull ?? "skip" };
};

const retry = record({
  retries: number({ min: 0, max: 100, whole: true }),
  firstWait: wait,
  factor: number({ min: 1, max: 10 }),
  maxWait: wait,
  jitter: number({ min: 0, max: 1 }),
  ladder: listOf(wait),
  crashes: number({ min: 0, max: 100, whole: true }),
});

const schema: Reader<object> = (value, place) =>
  isStandardSchema(value)
    ? value
    : place.fault(
        "this is no Standard Schema",
        "pass a schema of valibot, zod, arktype or any other such library",
      );

const code =
  (example: string): Reader<object> =>
  (value, place) =>
    typeof value === "function" ? value : place.fault("this is not a function", example);

const shards: Reader<number | object> = (value, place) => {
  if (typeof value === "function") return value;
  if (typeof value === "number" && value > MAX_SHARDS) {
    return place.fault(
      `${value} shards are too many; at most ${MAX_SHARDS}`,
      "let each shard do several of them",
    );
  }
  if (typeof value === "number" && Number.isInteger(value) && value >= 1) return value;
  return place.fault(
    "this is neither a whole number from 1 on nor a function that lists the shards",
    "shards: 100, or shards: async (ctx) => [...], or shards: async function* (ctx) { ... }",
  );
};

const tolerance: Reader<Tolerance> = (value, place) => {
  if (typeof value === "number") {
    const count = number({ min: 0, max: MAX_SHARDS, whole: true })(value, place);
    return count === undefined ? undefined : { count };
  }
  const percent = /^(\d{1,3}(?:\.\d{1,3})?) ?%$/.exec(typeof value === "string" ? value : "")?.[1];
  if (percent !== undefined && Number(percent) <= 100) return { percent: Number(percent) };
  return place.fault("this is neither a number nor a share", "toleratedFailures: 10, or '2 %'");
};

export const timezone: Reader<string> = (value, place) => {
  const zone = text(value, place);
  return zone === undefined ? undefined : noted(place, () => parseZone(zone).name);
};

/** What later versions bring; named here so that whoever tries them hears "not yet", not "no such option". */
const LATER = ["except"];

const timingOptions = {
  schedule: oneOrMore(text),
  timezone,
  dst: record({ gap: choice(["skip", "run-after"]), repeat: choice(["first", "last", "both"]) }),
  startsAt: text,
  endsAt: text,
};
const timingRecord = record(timingOptions);
type TimingOptions = NonNullable<ReturnType<typeof timingRecord>>;

/** What every kind of job has: who it is, when its slots are, and what is told of it. */
export const COMMON_OPTIONS = {
  name,
  description: text,
  owner: text,
  runbook: text,
  ...timingOptions,
  grace: duration({ maxMs: DAY_MS, why: "silence of a day is not to be overlooked" }),
  alerts,
  ownAlarms: flag,
  stages: listOf(name),
  renamedFrom: oneOrMore(name),
};

const options = record(
  {
    ...COMMON_OPTIONS,
    input,
    schema,
    overlap,
    misfire,
    startDeadline: duration({ minMs: MINUTE_MS, maxMs: 14 * DAY_MS, why: "no message lives longer" }),
    timeout: duration({
      maxMs: 15 * MINUTE_MS,
      why: "a Lambda function ends after 15 minutes; split longer work",
    }),
    retry,
    onUnknown: choice(["retry", "park"]),
    pool: name,
    permissions,
    environment,
    secrets,
    shards,
    maxInFlight: number({ min: 1, max: MAX_SHARDS, whole: true }),
    toleratedFailures: tolerance,
    join: code("join: async (ctx) => { ... }"),
    handler: code("handler: async (ctx) => { ... }"),
  },
  LATER,
);
type Options = NonNullable<ReturnType<typeof options>>;

/**
 * The definition that `defineJob`'s options describe, with every default filled in, or all that is wrong with them.
 * The input is not checked against the schema here, since a schema may answer later (see `checkInput`).
 * @param fallbackName the job's name where the options give none: its file's.
 */
export const checkJob = (given: unknown, fallbackName: string): Checked<JobDefinition> => {
  const faults: Fault[] = [];
  const place = placeOf("", faults);
  const read = options(given, place) ?? {};
  if (read.handler === undefined && !faults.some(({ field }) => field === "handler"))
    place.inner("handler").fault("the job has no handler", "handler: async (ctx) => { ... }");
  const jobName = read.name ?? name(fallbackName, place.inner("name"));
  const timing = timingOf(read, place);
  const misfireFor = misfireOf(read, timing.schedules, place.inner("misfire"));
  const retryFor = retryOf(read, timing.schedules, place.inner("retry"));
  const alertsFor = alertsOf(read.alerts ?? {}, place.inner("alerts"));
  const shardsFor = shardsOf(read, place);
  if (faults.length > 0 || jobName === undefined) return { ok: false, faults };
  const { description, owner, runbook, stages, permissions, environment, secrets } = read;
  const value: JobDefinition = {
    name: jobName,
    subject: read.renamedFrom?.[0] ?? jobName,
    ...defined({ description, owner, runbook, stages, permissions, environment, secrets }),
    schedules: timing.schedules.map(({ expression }) => expression),
    timezone: timing.timezone,
    dst: timing.dst,
    ...timing.bounds,
    input: read.input ?? {},
    misfire: misfireFor,
    retry: retryFor,
    alerts: alertsFor,
    ...settingsOf(read),
    ...defined({ shards: shardsFor }),
    ...(read.ownAlarms === true && { ownAlarms: true }),
  };
  return { ok: true, value };
};

const settingsOf = (read: Options) => ({
  overlap: read.overlap ?? DEFAULTS.overlap,
  startDeadlineMs: read.startDeadline ?? DEFAULTS.startDeadlineMs,
  timeoutMs: read.timeout ?? DEFAULTS.timeoutMs,
  onUnknown: read.onUnknown ?? "retry",
  graceMs: read.grace ?? DEFAULTS.graceMs,
  pool: read.pool ?? DEFAULTS.pool,
});

/** Options that mean something only where a run has shards. */
const OF_SHARDS = ["maxInFlight", "toleratedFailures", "join"] as const;

const shardsOf = (read: Options, place: Place): ShardsDefinition | undefined => {
  if (read.shards === undefined) {
    for (const option of OF_SHARDS) {
      if (read[option] !== undefined) place.inner(option).fault("the job has no shards", "set shards too");
    }
    return undefined;
  }
  const { shards, maxInFlight, toleratedFailures: tolerance, join } = read;
  const count = typeof shards === "number" ? shards : undefined;
  return { joins: join !== undefined, ...defined({ count, maxInFlight, tolerance }) };
};

interface Timing {
  readonly timezone: string;
  readonly dst: JobDefinition["dst"];
  readonly bounds: { readonly startsAtMs?: number; readonly endsAtMs?: number };
  readonly schedules: readonly Schedule[];
}

/** The schedules that the options describe; notes what is wrong with them. */
export const timingOf = (read: TimingOptions, place: Place): Timing => {
  const zone = read.timezone ?? DEFAULTS.timezone;
  const dst = { gap: read.dst?.gap ?? "skip", repeat: read.dst?.repeat ?? "first" } as const;
  const startsAtMs = instantOf(read.startsAt, zone, place.inner("startsAt"));
  const endsAtMs = instantOf(read.endsAt, zone, place.inner("endsAt"));
  const bounds = defined({ startsAtMs, endsAtMs });
  if (startsAtMs !== undefined && endsAtMs !== undefined && endsAtMs <= startsAtMs)
    place.inner("endsAt").fault("the end is not after startsAt", "no slot would be left");
  const expressions = read.schedule ?? [];
  const schedules = expressions.flatMap((expression, i) => {
    const field = expressions.length === 1 ? "schedule" : `schedule[${i}]`;
    const parse = () => parseSchedule(expression, { timezone: zone, dst, ...bounds });
    return noted(place.inner(field), parse) ?? [];
  });
  return { timezone: zone, dst, bounds, schedules };
};

/** A date is its midnight; a time without a zone is read in the job's. */
const instantOf = (given: string | undefined, zone: string, place: Place): number | undefined => {
  if (given === undefined) return undefined;
  const instant = readInstant(given);
  if (instant !== undefined) return instant;
  const local = /^\d{4}-\d\d-\d\d$/.test(given) ? `${given}T00:00` : given;
  return noted(place, () => {
    const shape = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(local);
    const atMs = shape ? parseSchedule(`at(${local})`, { timezone: zone }).next(-1) : undefined;
    if (atMs !== undefined) return atMs;
    throw new InvalidInput("invalid_instant", `"${given}" is no instant`, {
      hint: "write 2027-01-31, 2027-01-31T09:00 (the job's time zone) or 2027-01-31T09:00:00Z",
    });
  });
};

/** How many missed slots `all` runs at most, where the job does not say. */
const ALL_MAX = 100;

const misfireOf = (read: Options, schedules: readonly Schedule[], place: Place): Misfire => {
  const { policy = "latest", max = policy === "all" ? ALL_MAX : 1, withinMs } = read.misfire ?? {};
  const deadlineMs = read.startDeadline ?? DEFAULTS.startDeadlineMs;
  if (withinMs !== undefined && withinMs > deadlineMs)
    place
      .inner("within")
      .fault("it is longer than startDeadline, so the oldest runs would expire", "raise startDeadline too");
  checkReach({ policy, max, ...defined({ withinMs }) }, shortestGapMs(schedules), place);
  // `all` within one period would be `latest`; it reaches as far back as a run may start at all.
  const reachMs = withinMs ?? (policy === "all" ? deadlineMs : undefined);
  return {
    policy,
    max,
    ...(reachMs !== undefined && { withinMs: reachMs }),
  };
};

/** A policy of several slots, which reaches only so far back that there is never more than one, is not what was meant. */
const checkReach = ({ policy, max, withinMs }: Misfire, gapMs: number, place: Place): void => {
  const isSeveral = catchesUpSeveral({ policy, max }) && gapMs < Number.POSITIVE_INFINITY;
  const { firstLookMs } = AWS_TIMINGS;
  if (withinMs === undefined) {
    if (isSeveral && policy === "latest")
      place
        .inner("max")
        .fault(
          "without within, only the last slot of an outage is caught up",
          "set within too, or leave max out",
        );
  } else if (withinMs < firstLookMs)
    place
      .inner("within")
      .fault(
        `a slot that nothing dispatched is found ${durationText(firstLookMs)} after it at the earliest, so none would run`,
        "raise it, or write misfire: 'skip'",
      );
  else if (isSeveral && withinMs < gapMs)
    place
      .inner("within")
      .fault(
        `it is shorter than the ${durationText(gapMs)} between two slots, so there would never be more than one to run`,
        `raise it to several times ${durationText(gapMs)}, or write policy: 'latest' without max`,
      );
};

const retryOf = (read: Options, schedules: readonly Schedule[], place: Place): Retry => {
  const { retries, firstWait, factor, maxWait, jitter, ladder, crashes } = read.retry ?? {};
  if (ladder && (firstWait ?? factor ?? maxWait) !== undefined)
    place
      .inner("ladder")
      .fault("a ladder takes the place of firstWait, factor and maxWait", "keep one of the two");
  const count = retries ?? ladder?.length ?? DEFAULTS.retry.retries;
  const named = (firstWait ?? factor ?? maxWait ?? ladder) !== undefined;
  const waits = named ? DEFAULTS.retry : fittedRetry(count, schedules);
  const first = firstWait ?? waits.firstWaitMs;
  const cap = maxWait ?? Math.max(waits.maxWaitMs, first);
  if (cap < first)
    place.inner("maxWait").fault("it is shorter than firstWait", "raise it or lower firstWait");
  return {
    retries: count,
    ...(ladder && { ladderMs: ladder }),
    firstWaitMs: first,
    factor: factor ?? DEFAULTS.retry.factor,
    maxWaitMs: cap,
    jitter: jitter ?? DEFAULTS.retry.jitter,
    crashes: crashes ?? DEFAULTS.retry.crashes,
  };
};
