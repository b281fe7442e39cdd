import { runIdOf, slotKeyOf } from "../../lib/core/identity.ts";
import { lockKey, runKey } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/job.ts";
import { holdersOf, waitersOf } from "../../lib/core/lock.ts";
import { isTerminal } from "../../lib/core/run.ts";
import type { Execution } from "./handlers.ts";
import type { World } from "./world.ts";

export interface Expected {
  readonly job: JobDefinition;
  readonly slots: readonly number[];
}

const overlapping = (executions: readonly Execution[]): readonly string[] => {
  const byStart = executions
    .filter((execution) => !execution.slept())
    .sort((left, right) => left.startedAtMs - right.startedAtMs);
  return byStart.flatMap((execution, index) => {
    const next = byStart[index + 1];
    const endMs = execution.endedAtMs ?? Number.POSITIVE_INFINITY;
    return next !== undefined && next.startedAtMs < endMs
      ? [`${execution.runId} attempt ${execution.attempt} overlaps ${next.runId} attempt ${next.attempt}`]
      : [];
  });
};

const grouped = (executions: readonly Execution[], by: (execution: Execution) => string) =>
  [...Map.groupBy(executions, by).values()].flatMap(overlapping);

const brokenByRun = async (world: World, { job }: Expected, slotMs: number): Promise<readonly string[]> => {
  const occurrence = { subject: job.subject, slotKey: slotKeyOf(slotMs) };
  const run = await world.stored.get(runKey(occurrence), { consistent: true });
  const runId = runIdOf(occurrence);
  const state = String(run?.["st"]);
  const own = world.executions.filter((execution) => execution.runId === runId);
  // Each handler returns its own number: the recorded result must be that of the attempt that started last.
  const last = world.executions.findLastIndex((execution) => execution.runId === runId) + 1;
  const marked = ["skipped", "missed", "expired"].includes(state);
  return [
    ...(isTerminal(state) ? [] : [`${runId}: not over, but ${state}`]),
    ...(state === "succeeded" && run?.["result"] !== last ? [`${runId}: the result of a stale attempt`] : []),
    ...(marked && own.length > 0 ? [`${runId}: ran, but is ${state}`] : []),
  ];
};

const brokenByLock = async (world: World, { job }: Expected): Promise<readonly string[]> => {
  const lock = await world.stored.get(lockKey(job.subject), { consistent: true });
  return [...holdersOf(lock), ...waitersOf(lock)].map(({ slotKey }) => `${job.name}: locked by ${slotKey}`);
};

/** Promises 1 to 4, as far as they can be seen when nothing is left to happen. Empty = all hold. */
export const brokenPromises = async (world: World, expected: readonly Expected[]): Promise<string[]> => {
  const broken = [...world.violations];
  for (const each of expected) {
    for (const slotMs of each.slots) broken.push(...(await brokenByRun(world, each, slotMs)));
    broken.push(...(await brokenByLock(world, each)));
  }
  const locked = new Set(expected.filter(({ job }) => job.overlap !== "allow").map(({ job }) => job.name));
  broken.push(...grouped(world.executions, ({ runId }) => runId));
  broken.push(
    ...grouped(
      world.executions.filter(({ job }) => locked.has(job)),
      ({ job }) => job,
    ),
  );
  return broken;
};
