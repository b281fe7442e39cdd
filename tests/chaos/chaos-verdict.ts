import { type Occurrence, runIdOf, slotKeyOf } from "../../lib/core/identity.ts";
import { lockKey, runKey } from "../../lib/core/items.ts";
import { holdersOf, waitersOf } from "../../lib/core/lock.ts";
import { isTerminal } from "../../lib/core/run.ts";
import { type ChaosStack, LOCKED, UNLOCKED } from "./chaos-stack.ts";
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

const occurrencesOf = (subject: string, slots: readonly number[]): readonly Occurrence[] =>
  slots.map((slotMs) => ({ subject, slotKey: slotKeyOf(slotMs) }));

/** Runs without an end of their own yet, of all that were delivered. */
export const openRuns = async ({ table }: ChaosStack, slots: readonly number[]): Promise<number> => {
  const wanted = [LOCKED, UNLOCKED].flatMap((subject) => occurrencesOf(subject, slots));
  const runs = await table.getMany(wanted.map(runKey));
  return wanted.length - runs.filter((run) => isTerminal(String(run["st"]))).length;
};

export const lockOf = (stack: ChaosStack) => stack.table.get(lockKey(LOCKED), { consistent: true });

const named = ({ runId, attempt, pid }: Execution): string => `${runId} attempt ${attempt} in ${pid}`;

/** At once where only one may be: of one run, and of the job with a lock. */
const atOnce = (executions: readonly Execution[]) => [
  ...[...Map.groupBy(executions, ({ runId }) => runId).values()].flatMap(besideEachOther),
  ...besideEachOther(executions.filter(({ job }) => job === LOCKED)),
];

export const chaosVerdict = async (
  stack: ChaosStack,
  troupe: Troupe,
  slots: readonly number[],
): Promise<ChaosVerdict> => {
  const executions = stack.witness.executions();
  const byRun = Map.groupBy(executions, ({ runId }) => runId);
  const lost: string[] = [];
  const doubled: string[] = [];
  const occurrences = [LOCKED, UNLOCKED].flatMap((subject) => occurrencesOf(subject, slots));
  for (const occurrence of occurrences) {
    const run = await stack.table.get(runKey(occurrence), { consistent: true });
    const runId = runIdOf(occurrence);
    const last = byRun.get(runId)?.at(-1);
    if (run?.["st"] !== "succeeded") lost.push(`${runId} is ${run?.["st"]}: ${run?.["reason"] ?? ""}`);
    else if (run["result"] !== last?.id) doubled.push(`${runId} has the result of a stale attempt`);
  }
  const beside = atOnce(executions);
  const guilty = beside.filter((pair) => pair.every(({ pid }) => !troupe.slept(pid)));
  if (stack.witness.keyedCount() !== occurrences.length) {
    doubled.push(`${stack.witness.keyedCount()} keyed effects of ${occurrences.length} runs`);
  }
  const lock = await lockOf(stack);
  const entries = [...holdersOf(lock), ...waitersOf(lock)].map(({ slotKey }) => `the lock lists ${slotKey}`);
  const messages = await stack.messagesLeft();
  return {
    lost,
    doubled: [...doubled, ...guilty.map(([one, other]) => `${named(one)} beside ${named(other)}`)],
    stuck: [...entries, ...(messages === 0 ? [] : [`${messages} messages are left`])],
    excused: beside.length - guilty.length,
  };
};
