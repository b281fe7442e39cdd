import { isRecord } from "../../lib/core/json.ts";

const readJson = (line: string): Record<string, unknown> | undefined => {
  if (!line.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const errorText = (error: unknown): string | undefined =>
  isRecord(error) ? `${String(error["name"])}: ${String(error["message"])}` : undefined;

const whyOf = (event: Record<string, unknown>): string => {
  const why = errorText(event["error"]) ?? event["reason"] ?? event["why"];
  return isText(why) ? `  ${why.split("\n", 1)[0]}` : "";
};

/** Slots that share a notice (missed while nothing ran), or the health before and after. */
const spanOf = ({ count, from, to }: Record<string, unknown>): string => {
  if (!isText(from) || !isText(to)) return "";
  if (from === to) return ` ${from}`;
  return `${count === undefined ? "" : ` ${count} slots,`} ${from} to ${to}`;
};

/** The wide event of an attempt that is over. */
const attemptLine = (event: Record<string, unknown>): string => {
  const { attempt, durationMs, runId, shard, state } = event;
  const which = Number(attempt) > 1 ? ` (attempt ${attempt})` : "";
  const part = isText(shard) ? ` shard ${shard}` : "";
  return `${runId}${part}  ${state}${which} after ${durationMs} ms${whyOf(event)}`;
};

const eventLine = (event: Record<string, unknown>): string | undefined => {
  const { job, level, message, runId } = event;
  if (!isText(message)) return undefined;
  if (message === "run" && isText(runId)) return attemptLine(event);
  const isLoud = /^(warn|error)/i.test(String(level));
  // What is only counted (a duplicate delivery, a watchdog's pass) is ordinary life.
  if (!isLoud && ("_aws" in event || !isText(runId))) return undefined;
  const subject = [runId, job, event["channel"]].find(isText);
  const mark = isLoud ? `${String(level).toLowerCase()}: ` : "";
  return `${subject === undefined ? "" : `${subject}  `}${mark}${message}${spanOf(event)}${whyOf(event)}`;
};

/** More of one line says no more to a person, and hides the lines before it. */
const LONGEST_LINE = 2_000;

const shortened = (line: string): string =>
  line.length > LONGEST_LINE
    ? `${line.slice(0, LONGEST_LINE)}... (${line.length - LONGEST_LINE} more characters are in the log file)`
    : line;

/**
 * What the person in front of `dev` sees of a line that a child has printed: one short line for an attempt that is
 * over, warnings and errors, a handler's own log lines, and whatever a job's code prints. All else stays in the
 * log file, as does the whole of these.
 */
export const lineForPeople = (child: string, line: string): string | undefined => {
  const event = readJson(line);
  if (event === undefined)
    return child.startsWith("worker-") && line.trim() !== "" ? shortened(line) : undefined;
  const shown = eventLine(event);
  return shown === undefined ? undefined : shortened(shown);
};
