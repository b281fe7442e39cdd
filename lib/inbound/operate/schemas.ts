import * as v from "valibot";
import { InvalidInput } from "../../core/errors.ts";
import { NAME_PATTERN } from "../../core/identity.ts";
import type { Json } from "../../core/json.ts";
import { RUN_STATES } from "../../core/runs/run.ts";

/** What the router takes. Unknown names are refused: a mistyped filter must not answer as if it were none. */

const wholeNumber = (least: number, most: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,7}$/, "must be a whole number"),
    v.transform(Number),
    v.minValue(least, `must be at least ${least}`),
    v.maxValue(most, `must be at most ${most}`),
  );

export const time = v.pipe(v.string(), v.nonEmpty("must be a time"), v.maxLength(40, "must be a time"));

const jobName = v.pipe(v.string(), v.regex(NAME_PATTERN, "must be the name of a job"));

const MAX_RUNS = 1_000;

export const RUNS_QUERY = v.strictObject({
  job: v.optional(jobName),
  state: v.optional(v.picklist(RUN_STATES, `must be one of ${RUN_STATES.join(", ")}`)),
  since: v.optional(time),
  limit: v.optional(wholeNumber(1, MAX_RUNS)),
});

/** A request is answered within the time that a caller's proxy may allow. */
export const MAX_WAIT_MS = 25_000;

export const RUN_QUERY = v.strictObject({ waitMs: v.optional(wholeNumber(0, MAX_WAIT_MS)) });

export const FLIPS_QUERY = v.strictObject({ limit: v.optional(wholeNumber(1, MAX_RUNS)) });

export const JOB_RUN_QUERY = v.strictObject({ slot: v.optional(time) });

export const NEXT_QUERY = v.strictObject({
  from: v.optional(time),
  count: v.optional(wholeNumber(1, 1_000)),
});

const INPUT_KIB = 128;

const json = v.custom<Json>((value) => value !== undefined, "must be JSON");

const input = v.pipe(
  json,
  v.check(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= INPUT_KIB * 1_024,
    `must be at most ${INPUT_KIB} KiB of JSON`,
  ),
);

const reason = v.pipe(
  v.string("must be a text"),
  v.nonEmpty("must say something"),
  v.maxLength(200, "must be at most 200 characters"),
);

export const ALERTS_QUERY = v.strictObject({ limit: v.optional(wholeNumber(1, 1_000)) });
export const ALERT_TEST_REQUEST = v.strictObject({
  topic: v.optional(v.picklist(["notify", "page"], "must be notify or page")),
});

const EXIT_CODE = "must be start, ok, fail or an exit code";

/** How long a job that runs elsewhere says that it took. */
export const PING_DURATION = v.pipe(
  v.number("must be milliseconds"),
  v.integer("must be whole milliseconds"),
  v.minValue(0, "must be at least 0"),
  v.maxValue(30 * 86_400_000, "must be at most 30 days"),
);

/** A ping's own words; what is longer is cut, not refused: the ping matters more. */
export const HEARTBEAT_REQUEST = v.strictObject({
  signal: v.optional(
    v.union(
      [
        v.picklist(["start", "ok", "fail"]),
        v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2 ** 32 - 1)),
      ],
      EXIT_CODE,
    ),
  ),
  message: v.optional(v.string("must be a text")),
  slot: v.optional(time),
  durationMs: v.optional(PING_DURATION),
});

export const NO_REQUEST = v.strictObject({});
export const RETRY_REQUEST = v.strictObject({
  shards: v.optional(
    v.pipe(
      v.array(v.pipe(v.string("must be a key"), v.nonEmpty("must be a key")), "must be a list of keys"),
      v.nonEmpty("must name one"),
    ),
  ),
});
export const CANCEL_REQUEST = v.strictObject({ reason: v.optional(reason) });
export const MUTE_REQUEST = v.strictObject({ until: time, reason: v.optional(reason) });
export const PAUSE_REQUEST = v.strictObject({ reason, until: v.optional(time) });

export const RUN_REQUEST = v.strictObject({
  input: v.optional(input),
  slot: v.optional(time),
  reason: v.optional(reason),
  dryRun: v.optional(v.boolean("must be true or false")),
});

const PARALLEL = "must be a whole number from 1 on";
const parallel = v.pipe(v.number(PARALLEL), v.integer(PARALLEL), v.minValue(1, PARALLEL));

/** Endings that a backfill may run again. */
export const REDO_STATES = ["missed", "expired", "skipped", "dead", "cancelled"] as const;

export const BACKFILL_REQUEST = v.strictObject({
  from: time,
  to: time,
  parallel: v.optional(parallel),
  redo: v.optional(v.array(v.picklist(REDO_STATES, `must be of ${REDO_STATES.join(", ")}`))),
  dryRun: v.optional(v.boolean("must be true or false")),
});

export const RETRY_DEAD_REQUEST = v.strictObject({ parallel: v.optional(parallel) });

/** @throws InvalidInput (`invalid_request`) that names the first field that is wrong. */
export const checked = <Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
): v.InferOutput<Schema> => {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const [issue] = result.issues;
  const field = issue.path?.map((step) => String(step.key)).join(".");
  if (field === undefined) throw new InvalidInput("invalid_request", "the request is no JSON object");
  const message = issue.type === "strict_object" ? "is not known" : issue.message;
  throw new InvalidInput("invalid_request", `${field} ${message}`, { field });
};
