import { InvalidInput } from "../errors.ts";
import { DAY_MS, HOUR_MS, LAST_INSTANT_MS, MINUTE_MS } from "../time.ts";
import { awsPatterns } from "./aws-patterns.ts";
import { daysInMonth, wallMsOf } from "./calendar.ts";
import { fieldsOf, parseAwsCron, parseQuartzCron, parseUnixCron } from "./cron.ts";
import { quote } from "./fields.ts";
import type { Pattern } from "./pattern.ts";
import { awsCronText, plainText } from "./pattern-text.ts";

/**
 * How an expression is written. `unix`: five fields and `@daily`...; `aws`: `cron(...)`, `rate(...)`, `at(...)` as
 * EventBridge Scheduler takes them; `quartz`: six or seven fields, seconds first; `belfry`: our own `every(...)`,
 * and `at(...)` without seconds.
 */
export type Dialect = "unix" | "aws" | "quartz" | "belfry";

/** What an expression means, in any dialect. */
export type Rule =
  | { readonly kind: "cron"; readonly pattern: Pattern }
  | { readonly kind: "interval"; readonly everyMs: number }
  /** One local time. */
  | { readonly kind: "once"; readonly wallMs: number };

export interface ReadExpression {
  readonly dialect: Dialect;
  readonly rule: Rule;
}

const refuse = (message: string, hint: string, code = "invalid_schedule"): InvalidInput =>
  new InvalidInput(code, message, { field: "expression", hint });

/** AWS takes at most 256 characters; five fields that list every value need some 350. */
const LONGEST = { aws: 256, other: 1_000 };

const FORMS = "five fields ('0 9 * * 1-5'), cron(...), rate(...), every(...) or at(...)";

/** `15 minutes` -> milliseconds; undefined if it is not a whole number of the units. */
const readDuration = (text: string, units: Readonly<Record<string, number>>): number | undefined => {
  const [, amount = "", unit = ""] = /^(\d{1,9}) +([a-z]+?)s?$/.exec(text) ?? [];
  const unitMs = Object.hasOwn(units, unit) ? units[unit] : undefined;
  const everyMs = Number(amount) * (unitMs ?? 0);
  return everyMs > 0 ? everyMs : undefined;
};

const RATE_UNITS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS };
const EVERY_UNITS = { ...RATE_UNITS, week: 7 * DAY_MS };

const parseInterval = (call: string, inside: string, units: Readonly<Record<string, number>>): Rule => {
  const everyMs = readDuration(inside, units);
  if (everyMs === undefined) {
    const names = Object.keys(units).map((unit) => `${unit}s`);
    throw refuse(
      `${call}(${quote(inside).slice(1, -1)}): expected '<positive whole number> ${names.join("|")}'`,
      `for example ${call}(15 minutes)`,
    );
  }
  if (everyMs > LAST_INSTANT_MS)
    throw refuse(`${call}(${inside}) has no second slot in the calendar`, "a shorter interval");
  return { kind: "interval", everyMs };
};

const AT = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?$/;

const parseAt = (inside: string): Rule => {
  const parts = AT.exec(inside)
    ?.slice(1)
    .map((part) => Number(part ?? 0));
  if (parts === undefined) {
    throw refuse(
      `at(${quote(inside).slice(1, -1)}): expected yyyy-mm-ddThh:mm:ss`,
      "a local time without a zone, for example at(2027-01-01T00:00:00); the time zone is an option of its own",
    );
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts;
  const limits: readonly (readonly [string, number, number, number])[] = [
    ["year", year, 1970, 9999],
    ["month", month, 1, 12],
    ["day", day, 1, daysInMonth(year, month)],
    ["hour", hour, 0, 23],
    ["minute", minute, 0, 59],
    ["second", second, 0, 59],
  ];
  for (const [name, value, min, max] of limits) {
    if (value < min || value > max) {
      throw refuse(`at(${inside}): ${name} ${value} is outside ${min}-${max}`, "a date and time that exist");
    }
  }
  return { kind: "once", wallMs: wallMsOf({ year, month, day, hour, minute, second }) };
};

/** `name(inside)`; the last bracket ends it. */
const readCall = (text: string): { readonly call: string; readonly inside: string } | undefined => {
  const [, call, inside] = /^([a-z]+)\((.*)\)$/.exec(text) ?? [];
  return call === undefined || inside === undefined ? undefined : { call, inside };
};

const readCallExpression = (text: string): ReadExpression | undefined => {
  const found = readCall(text);
  if (found === undefined) return undefined;
  const { call, inside } = found;
  if (call === "cron") return { dialect: "aws", rule: { kind: "cron", pattern: parseAwsCron(inside) } };
  if (call === "rate") return { dialect: "aws", rule: parseInterval(call, inside, RATE_UNITS) };
  if (call === "every") return { dialect: "belfry", rule: parseInterval(call, inside, EVERY_UNITS) };
  if (call === "at") return { dialect: inside.length < 19 ? "belfry" : "aws", rule: parseAt(inside) };
  return undefined;
};

const cron = (dialect: Dialect, pattern: Pattern): ReadExpression => ({
  dialect,
  rule: { kind: "cron", pattern },
});

/** What a text means to one parser, in five fields or AWS's form; or why it means nothing. */
const readingOf = (
  parse: (text: string) => Pattern,
  text: string,
): { readonly ok: boolean; readonly text: string } => {
  try {
    return { ok: true, text: `'${plainText(parse(text))}'` };
  } catch (error) {
    if (error instanceof InvalidInput) return { ok: false, text: `nothing (${error.message})` };
    throw error;
  }
};

/** Fields 2 to 5 of AWS's six without a `?`, with one put where AWS wants it. */
const withQuestionMark = (fields: readonly string[]): string => {
  const at = fields[4] === "*" ? 4 : 2;
  return fields.map((text, index) => (index === at ? "?" : text)).join(" ");
};

/**
 * Six fields have seconds first (Quartz, Spring, many libraries) or a year last (AWS). The place of `?` tells;
 * without one, only a reading that has no rival is taken.
 */
const readSixFields = (text: string): ReadExpression => {
  const fields = fieldsOf(text);
  if (fields[2] === "?" || fields[4] === "?") return cron("aws", parseAwsCron(text));
  if (fields[3] === "?" || fields[5] === "?") return cron("quartz", parseQuartzCron(text));
  const aws = withQuestionMark(fields);
  if (!readingOf(parseAwsCron, aws).ok) return cron("quartz", parseQuartzCron(text));
  throw refuse(
    `six fields can be read in two ways: ${quote(text)}`,
    `with seconds first it is ${readingOf(parseQuartzCron, text).text}; with a year last it is cron(${aws}). ` +
      "Write the one that is meant, or tell the dialect",
    "ambiguous_schedule",
  );
};

const recognise = (text: string): ReadExpression => {
  const called = readCallExpression(text);
  if (called !== undefined) return called;
  if (/^[A-Za-z]+ *\(/.test(text)) throw refuse(`cannot read ${quote(text)}`, FORMS);
  const count = text.startsWith("@") ? 1 : fieldsOf(text).length;
  if (count === 6) return readSixFields(text);
  if (count === 7) return cron("quartz", parseQuartzCron(text));
  if (count === 1 && !text.startsWith("@")) throw refuse(`cannot read ${quote(text)}`, FORMS);
  return cron("unix", parseUnixCron(text));
};

const textIn = (told: Dialect, pattern: Pattern): string =>
  told === "aws" ? awsPatterns(pattern).patterns.map(awsCronText).join(" and ") : `'${plainText(pattern)}'`;

/** How to write in the told dialect what the text means in its own. */
const corrected = (text: string, told: Dialect): string => {
  try {
    const { dialect, rule } = recognise(text);
    if (rule.kind !== "cron") return `it is ${dialect}: leave the dialect out`;
    return `if it is ${dialect}, write ${textIn(told, rule.pattern)}, or leave the dialect out`;
  } catch (error) {
    if (error instanceof InvalidInput)
      return error.code === "ambiguous_schedule" ? (error.hint ?? FORMS) : FORMS;
    throw error;
  }
};

const readTold = (text: string, told: Dialect): ReadExpression => {
  if (told === "quartz") return cron("quartz", parseQuartzCron(text));
  if (told === "unix") {
    const count = fieldsOf(text).length;
    if (readCall(text) === undefined && count !== 6 && count !== 7) return cron("unix", parseUnixCron(text));
    const what = readCall(text) === undefined ? `expected 5 fields, this has ${count}` : "expected 5 fields";
    throw refuse(`${what}: ${quote(text)}`, corrected(text, told));
  }
  const called = readCallExpression(text);
  if (called !== undefined && (called.dialect === told || told === "belfry")) return called;
  const forms = told === "aws" ? "cron(...), rate(...) or at(yyyy-mm-ddThh:mm:ss)" : "every(...) or at(...)";
  throw refuse(`expected ${forms}, not ${quote(text)}`, corrected(text, told));
};

/**
 * Reads an expression in the dialect that is told, else in the only one it can be.
 * @throws InvalidInput `invalid_schedule`, `never_fires`, or `ambiguous_schedule` with both readings in its hint.
 */
export const readExpression = (expression: string, told?: Dialect): ReadExpression => {
  const longest = told === "aws" || expression.startsWith("cron(") ? LONGEST.aws : LONGEST.other;
  if (expression.length > longest) {
    throw refuse(`the expression is longer than ${longest} characters`, "lists shrink as ranges and steps");
  }
  if (!/^[\x20-\x7e\t]*$/.test(expression)) {
    throw refuse(
      `the expression has a character that is not printable ASCII: ${quote(expression)}`,
      "one line of plain letters, digits, spaces and signs; web pages sometimes give no-break spaces",
    );
  }
  const text = expression.replace(/^[ \t]+|[ \t]+$/g, "");
  if (text === "") throw refuse("the expression is empty", FORMS);
  return told === undefined ? recognise(text) : readTold(text, told);
};
