import { maxHolders } from "../app/lock-keeper.ts";
import { type Occurrence, readRunId, runIdOf, slotKeyOf } from "../core/identity.ts";
import { lockKey, runKey } from "../core/items.ts";
import type { JobDefinition } from "../core/job.ts";
import { holdersOf, waitersOf } from "../core/lock.ts";
import { isTerminal } from "../core/run.ts";
import type { Execution } from "./attempts.ts";
import type { World } from "./world.ts";

export interface Expected {
  readonly job: JobDefinition;
  readonly slots: readonly number[];
}

/** What went wrong, each in words; all empty = every promise holds. */
export interface Verdict {
  /** Occurrences without an end. */
  readonly lost: readonly string[];
  /** Effects or results that should not be: two at once, a stale one, one of a run that counts as not run. */
  readonly doubled: readonly string[];
  /** What still holds, waits or hides when all is quiet. */
  readonly stuck: readonly string[];
}

/** Handlers whose process never slept, and that ran at one instant with more others than may be. */
const tooManyAtOnce = (executions: readonly Execution[], most: number): readonly string[] => {
  const awake = executions
    .filter((execution) => !execution.slept())
    .sort((left, right) => left.startedAtMs - right.startedAtMs);
  return awake.flatMap((execution) => {
    const beside = awake.filter(
      (other) =>
        other.startedAtMs <= execution.startedAtMs &&
        (other.endedAtMs ?? Number.POSITIVE_INFINITY) > execution.startedAtMs,
    );
    return beside.length > most
      ? [beside.map(({ runId, attempt }) => `${runId} attempt ${attempt}`).join(" beside ")]
      : [];
  });
};

const verdictOnRun = async (world: World, occurrence: Occurrence) => {
  const run = await world.stored.get(runKey(occurrence), { consistent: true });
  const runId = runIdOf(occurrence);
  const state = String(run?.["st"]);
  // Each handler returns its own number: the recorded result must be that of the attempt that started last.
  const last = world.executions.findLastIndex((execution) => execution.runId === runId) + 1;
  const ran = last > 0;
  const neverRan = ["skipped", "missed", "expired"].includes(state);
  const [byHand] = world.byHand.filter((id) => id === runId);
  return {
    lost: [
      ...(isTerminal(state) ? [] : [`${runId} is not over, but ${state}`]),
      ...(byHand !== undefined && state === "skipped" ? [`${runId}, asked for by hand, was skipped`] : []),
    ],
    doubled: [
      ...(state === "succeeded" && run?.["result"] !== last
        ? [`${runId} has the result of a stale attempt`]
        : []),
      ...(neverRan && ran && run?.["ep"] === 1 ? [`${runId} ran, but is ${state}`] : []),
    ],
  };
};

/** Promises 1 to 4, as far as they can be seen when nothing is left to happen. */
export const brokenPromises = async (world: World, { job, slots }: Expected): Promise<Verdict> => {
  const { subject } = job;
  const byHand = world.byHand.map((runId) => readRunId(runId)).filter((read) => read !== undefined);
  const occurrences = [...slots.map((slotMs) => ({ subject, slotKey: slotKeyOf(slotMs) })), ...byHand];
  const verdicts = await Promise.all(occurrences.map((occurrence) => verdictOnRun(world, occurrence)));
  const lock = await world.stored.get(lockKey(subject), { consistent: true });
  const listed = [...holdersOf(lock), ...waitersOf(lock)].map(({ slotKey }) => slotKey);
  const over = new Set(
    world.stored
      .items()
      .filter((item) => String(item["sk"]).startsWith("R#") && isTerminal(String(item["st"])))
      .map((item) => String(item["sk"]).slice(2)),
  );
  const most = job.overlap === "allow" ? Number.POSITIVE_INFINITY : maxHolders(job);
  const byRun = [...Map.groupBy(world.executions, ({ runId }) => runId).values()];
  return {
    lost: verdicts.flatMap(({ lost }) => lost),
    doubled: [
      ...world.violations,
      ...verdicts.flatMap(({ doubled }) => doubled),
      ...byRun.flatMap((executions) => tooManyAtOnce(executions, 1)),
      ...tooManyAtOnce(world.executions, most),
      ...world.effects
        .filter(({ awake, again }) => awake && again)
        .map(({ runId, key }) => `${runId} repeated what it had recorded: ${key}`),
    ],
    stuck: [
      // An entry whose run is over is removed by whoever looks next; when all is quiet, nobody does.
      ...listed.filter((slotKey) => !over.has(slotKey)).map((slotKey) => `the lock lists ${slotKey}`),
      ...[...world.queues.values()].flatMap(({ messages, dead }) => [
        ...[...messages].filter(({ receives }) => receives > 20).map(({ body }) => `comes back: ${body}`),
        ...[...dead].map(({ body }) => `in the dead-letter queue: ${body}`),
      ]),
    ],
  };
};
