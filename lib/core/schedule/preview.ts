import { InvalidInput } from "../errors.ts";
import { isRecord } from "../json.ts";
import { readInstant, shortIsoOf } from "../time.ts";
import { wallMsOf } from "./calendar.ts";
import { type Dialect, parseSchedule, type ScheduleOptions, type ScheduleWarning } from "./schedule.ts";
import { instantsOf } from "./slot-source.ts";
import { parseZone } from "./zone.ts";

/** What `next` is asked. */
export interface PreviewRequest {
  readonly expression: string;
  readonly dialect?: Dialect;
  readonly timezone?: string;
  readonly dst?: ScheduleOptions["dst"];
  /** ISO 8601; without a zone it is UTC, since no job is named whose clock could be meant. Default: `nowMs`. */
  readonly from?: string;
  /** Default 5, at most 1,000. */
  readonly count?: number;
}

export interface Preview {
  readonly expression: string;
  readonly dialect: Dialect;
  readonly timezone: string;
  readonly description: string;
  /** ISO 8601 in UTC, strictly after `from`, ascending; fewer than `count` when the schedule ends. */
  readonly occurrences: readonly string[];
  readonly warnings: readonly ScheduleWarning[];
}

/** The shape of every error that a program reads. */
export interface PreviewError {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly field?: string;
    readonly hint?: string;
  };
}

const DEFAULT_COUNT = 5;
const MOST_COUNT = 1_000;

const refuse = (field: string, message: string, hint: string): InvalidInput =>
  new InvalidInput("invalid_request", message, { field, hint });

const LOCAL_TIME = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.0+)?)?)?$/;

/**
 * The instant of `from`: with a zone or offset as it says, without one on the clocks of `timezone`; the first
 * pass of a time that comes twice.
 * @throws InvalidInput for anything else, a time that the clocks skip included.
 */
export const readFrom = (text: string, timezone: string): number => {
  const instant = readInstant(text);
  if (instant !== undefined) return instant;
  const parts = LOCAL_TIME.exec(text)
    ?.slice(1)
    .map((part) => Number(part ?? 0));
  if (parts === undefined) {
    throw refuse(
      "from",
      `cannot read the time '${text.slice(0, 40)}'`,
      "ISO 8601, for example 2027-01-01T00:00:00Z",
    );
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts;
  const isDate =
    readInstant(`${text.slice(0, 10)}T00:00:00Z`) !== undefined && hour < 24 && minute < 60 && second < 60;
  const wallMs = wallMsOf({ year, month, day, hour, minute, second });
  const [first] = isDate ? instantsOf(parseZone(timezone), wallMs) : [];
  if (first === undefined)
    throw refuse("from", `${text} does not exist in ${timezone}`, "a time that the clocks show");
  return first;
};

const countOf = (count: number | undefined): number => {
  if (count === undefined) return DEFAULT_COUNT;
  if (Number.isInteger(count) && count >= 1 && count <= MOST_COUNT) return count;
  throw refuse("count", `count ${count} is not a whole number from 1 to ${MOST_COUNT}`, `1 to ${MOST_COUNT}`);
};

const optionsOf = ({ timezone, dialect, dst }: PreviewRequest): ScheduleOptions => ({
  ...(timezone === undefined ? {} : { timezone }),
  ...(dialect === undefined ? {} : { dialect }),
  ...(dst === undefined ? {} : { dst }),
});

/**
 * The next slots of an expression, and what it means. For `rate(...)`, `from` is the start: slots are from + n,
 * from + 2n, ...
 * @throws InvalidInput for an expression, zone or request that cannot be read.
 */
export const preview = (request: PreviewRequest, nowMs: number): Preview => {
  const { expression } = request;
  const fromMs = request.from === undefined ? nowMs : readFrom(request.from, "UTC");
  const isRate = /^[ \t]*rate\(/.test(expression);
  const schedule = parseSchedule(expression, {
    ...optionsOf(request),
    ...(isRate ? { anchorMs: fromMs } : {}),
  });
  const occurrences: string[] = [];
  const count = countOf(request.count);
  for (let slot = schedule.next(fromMs); slot !== undefined && occurrences.length < count; ) {
    occurrences.push(shortIsoOf(slot));
    slot = schedule.next(slot);
  }
  return {
    expression,
    dialect: schedule.dialect,
    timezone: schedule.timezone,
    description: schedule.describe(),
    occurrences,
    warnings: schedule.warnings(fromMs),
  };
};

export const previewErrorOf = ({ code, message, field, hint }: InvalidInput): PreviewError => ({
  error: {
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(hint === undefined ? {} : { hint }),
  },
});

const DIALECTS: readonly string[] = ["unix", "aws", "quartz", "belfry"] satisfies readonly Dialect[];

const isDialect = (value: unknown): value is Dialect => typeof value === "string" && DIALECTS.includes(value);

const KNOWN = ["id", "expression", "dialect", "timezone", "from", "count"];

/** @throws InvalidInput naming the member that is wrong. */
const parseRequest = (value: Readonly<Record<string, unknown>>): PreviewRequest => {
  const { expression, dialect, timezone, from, count } = value;
  const unknown = Object.keys(value).find((key) => !KNOWN.includes(key));
  if (unknown !== undefined)
    throw refuse(unknown.slice(0, 40), "unknown member", `one of ${KNOWN.join(", ")}`);
  if (typeof expression !== "string") throw refuse("expression", "expression is not a text", "a text");
  if (dialect !== undefined && !isDialect(dialect)) {
    throw refuse("dialect", "no such dialect", `one of ${DIALECTS.join(", ")}`);
  }
  if (timezone !== undefined && typeof timezone !== "string")
    throw refuse("timezone", "timezone is not a text", "a text");
  if (from !== undefined && typeof from !== "string") throw refuse("from", "from is not a text", "ISO 8601");
  if (count !== undefined && typeof count !== "number")
    throw refuse("count", "count is not a number", "a number");
  return {
    expression,
    ...(dialect === undefined ? {} : { dialect }),
    ...(timezone === undefined ? {} : { timezone }),
    ...(from === undefined ? {} : { from }),
    ...(count === undefined ? {} : { count }),
  };
};

const readJson = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
};

/**
 * One line of `next --stdin`: a JSON object `{id?, expression, dialect?, timezone?, from?, count?}` in, one JSON
 * line without its line end out: a Preview or a PreviewError, with the same `id` if there was one. Never throws
 * for what the line says.
 */
export const previewLine = (line: string, nowMs: number): string => {
  const value = readJson(line);
  const id = isRecord(value) && value["id"] !== undefined ? { id: value["id"] } : {};
  try {
    if (!isRecord(value))
      throw refuse("line", "the line is not a JSON object", '{"expression": "0 9 * * 1-5"}');
    return JSON.stringify({ ...id, ...preview(parseRequest(value), nowMs) });
  } catch (error) {
    if (error instanceof InvalidInput) return JSON.stringify({ ...id, ...previewErrorOf(error) });
    throw error;
  }
};
