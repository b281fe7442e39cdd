import type { RunView, ShardsView } from "../lib/core/runs/run.ts";
import { pairLines } from "./output.ts";
import { bothTexts, spanText } from "./times.ts";

type Pair = readonly [name: string, value: string];

const optional = (name: string, value: string | undefined): readonly Pair[] =>
  value === undefined ? [] : [[name, value]];

const compact = (value: unknown): string => JSON.stringify(value);

const attemptText = ({
  n,
  set,
  piece,
  part,
  startedAt,
  endedAt,
  outcome,
  error,
}: RunView["attempts"][number]): string => {
  const took = endedAt === undefined ? "" : ` after ${spanText(Date.parse(endedAt) - Date.parse(startedAt))}`;
  const of = piece === undefined ? "" : ` of piece ${piece}`;
  const again = set === undefined ? "" : ` of set ${set}`;
  const at = part === undefined ? "" : ` at the ${part}`;
  return `${n}${of}${at}${again}: ${outcome}${took}, started ${startedAt}${error === undefined ? "" : ` (${error})`}`;
};

const timePairs = (run: RunView, zone: string): readonly Pair[] => [
  ["slot", bothTexts(run.slot, zone)],
  ["queued", bothTexts(run.queuedAt, zone)],
  ["started", bothTexts(run.startedAt, zone)],
  ...optional("next try", run.nextAttemptAt === undefined ? undefined : bothTexts(run.nextAttemptAt, zone)),
  ["finished", bothTexts(run.finishedAt, zone)],
  ...optional("took", run.durationMs === null ? undefined : spanText(run.durationMs)),
  ...optional(
    "late by",
    run.latenessMs === null || run.latenessMs < 0 ? undefined : spanText(run.latenessMs),
  ),
];

/** `2000 of 40000 (5 %)`; without a total, the count alone. */
const progressText = (progress: RunView["progress"]): string | undefined => {
  if (progress === undefined) return undefined;
  const { done, total } = progress;
  if (total === undefined) return String(done);
  return `${done} of ${total}${total === 0 ? "" : ` (${Math.floor((100 * done) / total)} %)`}`;
};

/** `980 of 1000 done (98 %), 3 failed, 17 running`. */
const shardsText = ({ total, done, failed, running, waiting }: ShardsView): string =>
  [
    `${done} of ${total} done${total === 0 ? "" : ` (${Math.floor((100 * done) / total)} %)`}`,
    ...(failed === 0 ? [] : [`${failed} failed`]),
    ...(running === 0 ? [] : [`${running} running`]),
    ...(waiting === 0 ? [] : [`${waiting} waiting`]),
  ].join(", ");

const deadShardText = ({ key, input, attempts, error }: ShardsView["dead"][number]): string => {
  const of = input === null ? "" : ` ${compact(input)}`;
  return `${key}${of}: ${error.name}: ${error.message}, after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
};

const shardPairs = ({ shards }: RunView): readonly Pair[] =>
  shards === undefined
    ? []
    : [["shards", shardsText(shards)], ...shards.dead.map((dead): Pair => ["failed", deadShardText(dead)])];

const stackLines = ({ error }: RunView): readonly string[] =>
  error?.stack === undefined ? [] : ["", ...error.stack.split("\n")];

/** A run for people: one fact a line, the stack at the end. */
export const runLines = (run: RunView, zone: string): readonly string[] => [
  ...pairLines([
    ["run", run.runId],
    ["job", run.job],
    ["state", run.state],
    ...optional("reason", run.reason),
    ...optional("blocked by", run.blockedBy),
    ...optional(
      "covers",
      run.range === undefined
        ? undefined
        : `${run.range.count} slots from ${bothTexts(run.range.from, zone)}`,
    ),
    ["trigger", run.trigger],
    ...optional("schedules", run.schedules?.join(" | ")),
    ...timePairs(run, zone),
    ...optional("pieces", run.pieces === undefined ? undefined : String(run.pieces)),
    ...optional("progress", progressText(run.progress)),
    ...shardPairs(run),
    ...run.attempts.map((attempt): Pair => ["attempt", attemptText(attempt)]),
    ["duplicates", String(run.duplicates)],
    ["input", compact(run.input)],
    ["result", compact(run.result)],
    ...optional("error", run.error === undefined ? undefined : `${run.error.name}: ${run.error.message}`),
  ]),
  ...stackLines(run),
];

/** Why it is not simply done, in a line. */
export const whyText = ({ reason, error, result, state }: RunView): string => {
  if (state === "succeeded") return result === null ? "" : compact(result);
  return (reason ?? (error === undefined ? "" : `${error.name}: ${error.message}`)).split("\n")[0] ?? "";
};
