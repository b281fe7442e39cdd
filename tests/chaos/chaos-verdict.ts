import { isDeepStrictEqual } from "node:util";
import { type Occurrence, runIdOf } from "../../lib/core/identity.ts";
import { effectRange, lockKey, runKey } from "../../lib/core/items.ts";
import { holdersOf, waitersOf } from "../../lib/core/runs/lock.ts";
import { isTerminal } from "../../lib/core/runs/run.ts";
import type { Key } from "../../lib/core/write.ts";
import { brokenSeries } from "../../lib/simulation/series-invariants.ts";
import { BACKFILLED, LOCKED, LONG, PIECES, SHARDS, SPLIT, splitKeys } from "./chaos-jobs.ts";
import type { ChaosStack } from "./chaos-stack.ts";
import type { Troupe } from "./troupe.ts";
import { besideEachOther, type Execution } from "./witness.ts";

/** What went wrong, each in words; as in the simulation, all empty = every promise holds. */
export interface ChaosVerdict {
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  readonly stuck: readonly string[];
  /** At once, but one of them in a process that stood still: no protocol can stop such a handler. */
  readonly excused: number;
}

/** Runs without an end of their own yet, of all that must end. */
export const openRuns = async ({ table }: ChaosStack, wanted: readonly Occurrence[]): Promise<number> => {
  const runs = await table.getMany(wanted.map(runKey));
  return wanted.length - runs.filter((run) => isTerminal(String(run["st"]))).length;
};

export const lockOf = (stack: ChaosStack) => stack.table.get(lockKey(LOCKED), { consistent: true });

const named = ({ runId, part, attempt, pid }: Execution): string =>
  `${runId} ${part} attempt ${attempt} in ${pid}`;

/** A shard, or what comes before all shards or after them. */
const isShard = ({ part }: Execution): boolean => part.startsWith("customer");

/** Work of a run in shards beside that of another, or beside what its own shards must not meet. */
const besideShards = (executions: readonly Execution[]) =>
  besideEachOther(executions.filter(({ job }) => job === SPLIT)).filter(
    ([one, other]) => one.runId !== other.runId || isShard(one) !== isShard(other),
  );

/** At once where only one may be: of one run or shard, and of a job with a lock. */
const atOnce = (executions: readonly Execution[]) => [
  ...[...Map.groupBy(executions, ({ runId, part }) => `${runId}/${part}`).values()].flatMap(besideEachOther),
  ...besideShards(executions),
  ...[LOCKED, LONG, BACKFILLED].flatMap((locked) =>
    besideEachOther(executions.filter(({ job }) => job === locked)),
  ),
];

const EVERY_PIECE = Array.from({ length: PIECES }, (_, n) => `piece ${String(n).padStart(2, "0")}`);

/** Of a long run: each piece recorded once, the pieces first done in their order, all of them in one run. */
const brokenPieces = async ({ table, witness }: ChaosStack, occurrence: Occurrence): Promise<string[]> => {
  const runId = runIdOf(occurrence);
  const range = effectRange(occurrence);
  const kept = (await table.query(range)).filter(({ done }) => done === true);
  const recorded = kept.map(({ sk }) => String(sk).slice(range.first.length));
  const mine = witness.pieces().filter((key) => key.startsWith(`${runId}:`));
  const order = [...new Set(mine)].map((key) => key.slice(runId.length + 1));
  return [
    ...(isDeepStrictEqual(recorded, EVERY_PIECE) ? [] : [`${runId} has recorded ${recorded.join(", ")}`]),
    ...(isDeepStrictEqual(order, EVERY_PIECE)
      ? []
      : [`${runId} did its pieces in the order ${order.join(", ")}`]),
  ];
};

/** How often a piece was done again: by a run that was killed between the effect and its record. */
export const repeatedPieces = ({ witness }: ChaosStack): number =>
  witness.pieces().length - new Set(witness.pieces()).size;

/** Of a run in shards: each part had its effect, and again only after an attempt that was cut off before its record. */
const brokenShards = ({ witness }: ChaosStack, runId: string): string[] => {
  const keyed = witness.keyed();
  const cutOff = witness.executions().filter((one) => one.runId === runId && one.ended !== "returned");
  const [count, missing] = [splitKeys(runId).length, splitKeys(runId).filter((key) => !keyed.has(key))];
  const mine = [...keyed].filter(([key]) => key.startsWith(runId));
  const repeated = mine.filter(([key, times]) => {
    const interruptions = cutOff.filter(({ part }) => key === keyOf(runId, part));
    return times > 1 + interruptions.length;
  });
  return [
    ...missing.map((key) => `${key} was never done`),
    ...(mine.length > count ? [`${runId} has ${mine.length} effects of ${count}`] : []),
    ...repeated.map(([key, times]) => `${key} was done ${times} times, and recorded before`),
  ];
};

const keyOf = (runId: string, part: string): string =>
  part === "join" ? `${runId}:effect` : `${runId}/${part}:effect`;

/** How often the effect of a shard or a hook was done again: by one that was killed between the effect and its record. */
export const repeatedEffects = ({ witness }: ChaosStack): number =>
  [...witness.keyed()]
    .filter(([key]) => key.startsWith(SPLIT))
    .reduce((sum, [, times]) => sum + times - 1, 0);

const resultOf = (subject: string, last: Execution | undefined): unknown => {
  if (subject === LONG) return PIECES;
  return subject === SPLIT ? { id: last?.id, total: SHARDS, done: SHARDS, failed: 0 } : last?.id;
};

const judgeRun = async (
  stack: ChaosStack,
  occurrence: Occurrence,
  last: Execution | undefined,
): Promise<Pick<ChaosVerdict, "lost" | "doubled">> => {
  const run = await stack.table.get(runKey(occurrence), { consistent: true });
  const runId = runIdOf(occurrence);
  const state = run?.["st"];
  if (state !== "succeeded") return { lost: [`${runId} is ${state}: ${run?.["reason"] ?? ""}`], doubled: [] };
  const { subject } = occurrence;
  if (!isDeepStrictEqual(run?.["result"], resultOf(subject, last)))
    return { lost: [], doubled: [`${runId} has the result of a stale attempt`] };
  if (subject === SPLIT) return { lost: [], doubled: brokenShards(stack, runId) };
  return { lost: [], doubled: subject === LONG ? await brokenPieces(stack, occurrence) : [] };
};

export const chaosVerdict = async (
  stack: ChaosStack,
  troupe: Troupe,
  occurrences: readonly Occurrence[],
): Promise<ChaosVerdict> => {
  const executions = stack.witness.executions();
  const byRun = Map.groupBy(executions, ({ runId }) => runId);
  const judged = await Promise.all(
    occurrences.map((occurrence) => judgeRun(stack, occurrence, byRun.get(runIdOf(occurrence))?.at(-1))),
  );
  const lost = judged.flatMap((one) => one.lost);
  const doubled = judged.flatMap((one) => one.doubled);
  const beside = atOnce(executions);
  const guilty = beside.filter((pair) => pair.every(({ pid }) => !troupe.slept(pid)));
  const short = occurrences.filter(({ subject }) => subject !== LONG && subject !== SPLIT);
  const keyed = [...stack.witness.keyed().keys()].filter((key) => !key.startsWith(SPLIT));
  if (keyed.length !== short.length) doubled.push(`${keyed.length} keyed effects of ${short.length} runs`);
  const lock = await lockOf(stack);
  const entries = [...holdersOf(lock), ...waitersOf(lock)].map(({ slotKey }) => `the lock lists ${slotKey}`);
  const messages = await stack.messagesLeft();
  const read = (key: Key) => stack.table.get(key, { consistent: true });
  const backfill = await brokenSeries(read, { subject: BACKFILLED });
  return {
    lost,
    doubled: [
      ...doubled,
      ...backfill.wrong,
      ...guilty.map(([one, other]) => `${named(one)} beside ${named(other)}`),
    ],
    stuck: [...entries, ...backfill.stuck, ...(messages === 0 ? [] : [`${messages} messages are left`])],
    excused: beside.length - guilty.length,
  };
};
