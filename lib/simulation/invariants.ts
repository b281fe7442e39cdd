import { isDeepStrictEqual } from "node:util";
import { maxHolders } from "../app/path/lock-keeper.ts";
import { type Occurrence, readRunId, runIdOf, slotKeyOf } from "../core/identity.ts";
import { lockKey, runKey } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { holdersOf, waitersOf } from "../core/runs/lock.ts";
import { isTerminal } from "../core/runs/run.ts";
import type { Item, Key } from "../core/write.ts";
import { type Execution, workOf } from "./attempts.ts";
import { brokenSeries, skippedForBackfill } from "./series-invariants.ts";
import type { World } from "./world.ts";

export interface Expected {
  readonly job: JobDefinition;
  readonly slots: readonly number[];
  /** Runs that are parked, or wait for a later instant, are no loss. Default: false. */
  readonly mayWait?: boolean;
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

/**
 * Handlers whose process never slept, and that ran at one instant with more others than may be.
 * @param of what counts once, however many of its handlers run; default: each by itself
 */
const tooManyAtOnce = (
  executions: readonly Execution[],
  most: number,
  of: (execution: Execution) => unknown = (execution) => execution,
): readonly string[] => {
  const awake = executions
    .filter((execution) => !execution.slept())
    .sort((left, right) => left.startedAtMs - right.startedAtMs);
  const broken: string[] = [];
  let running: readonly Execution[] = [];
  for (const execution of awake) {
    const isOn = ({ endedAtMs = Number.POSITIVE_INFINITY }: Execution) => endedAtMs > execution.startedAtMs;
    running = [...running, execution].filter(isOn);
    if (new Set(running.map(of)).size > most) broken.push(running.map(attemptText).join(" beside "));
  }
  return broken;
};

const attemptText = (execution: Execution): string => `${workOf(execution)} attempt ${execution.attempt}`;

interface Judged {
  readonly byHand: boolean;
  readonly settled: boolean;
  /** What ran, in the order of the starts. */
  readonly executions: readonly Execution[];
}

/** The recorded result must be that of the attempt that started last. */
const isStale = (run: Item | undefined, executions: readonly Execution[]): boolean => {
  if (run?.["st"] !== "succeeded" || run["sideResult"] !== undefined) return false;
  const hasShards = run["plan"] !== undefined;
  const last = executions.findLast(({ part }) => (hasShards ? part?.kind === "join" : true));
  // Its job has no hook.
  if (hasShards && last === undefined) return run["result"] !== undefined;
  const { answer } = last ?? {};
  return answer?.kind !== "returned" || !isDeepStrictEqual(answer.result, run["result"]);
};

/** Over, or left to a person or to a later instant where that may be. */
const isSettled = ({ mayWait = false }: Expected, run: Item | undefined, nowMs: number): boolean => {
  const state = String(run?.["st"]);
  if (isTerminal(state)) return true;
  return mayWait && (state === "parked" || (state === "waiting" && Number(run?.["nextAttemptAtMs"]) > nowMs));
};

/** Ids of runs that are not over, nor left to a person. */
export const openRuns = async (world: World, expected: readonly Expected[]): Promise<readonly string[]> => {
  const open = await Promise.all(
    expected.flatMap(({ job: { subject }, slots }) =>
      slots.map(async (slotMs) => {
        const occurrence = { subject, slotKey: slotKeyOf(slotMs) };
        const run = await world.stored.get(runKey(occurrence), { consistent: true });
        const state = String(run?.["st"]);
        return isTerminal(state) || state === "parked" ? [] : [runIdOf(occurrence)];
      }),
    ),
  );
  return open.flat();
};

const verdictOnRun = (runId: string, run: Item | undefined, { byHand, settled, executions }: Judged) => {
  const state = String(run?.["st"]);
  const last = executions.at(-1);
  // A handler may say that it skips; whatever else is skipped has never run.
  const neverRan = ["skipped", "missed", "expired"].includes(state) && last?.answer?.kind !== "skip";
  return {
    lost: [
      ...(settled ? [] : [`${runId} is not over, but ${state}`]),
      ...(byHand && state === "skipped" ? [`${runId}, asked for by hand, was skipped`] : []),
    ],
    doubled: [
      ...(isStale(run, executions) ? [`${runId} has the result of a stale attempt`] : []),
      ...(neverRan && last !== undefined && run?.["ep"] === 1 ? [`${runId} ran, but is ${state}`] : []),
    ],
  };
};

type ByRun = ReadonlyMap<string, readonly Execution[]>;

const verdictOnJob = async (world: World, expected: Expected, byRun: ByRun): Promise<Verdict> => {
  const { job, slots } = expected;
  const { subject } = job;
  const read = (key: Key): Promise<Item | undefined> => world.stored.get(key, { consistent: true });
  const byHand = world.byHand.map((runId) => readRunId(runId)).filter((one) => one?.subject === subject);
  const occurrences: readonly Occurrence[] = [
    ...slots.map((slotMs) => ({ subject, slotKey: slotKeyOf(slotMs) })),
    ...byHand.filter((one) => one !== undefined),
  ];
  const verdicts = await Promise.all(
    occurrences.map(async (occurrence) => {
      const runId = runIdOf(occurrence);
      const run = await read(runKey(occurrence));
      const settled = isSettled(expected, run, world.time.now());
      const byHand = world.byHand.includes(runId);
      return verdictOnRun(runId, run, { byHand, settled, executions: byRun.get(runId) ?? [] });
    }),
  );
  const lock = await read(lockKey(subject));
  const entries = [...holdersOf(lock), ...waitersOf(lock)];
  const listed = await Promise.all(
    entries.map(async ({ slotKey }) => ({ slotKey, run: await read(runKey({ subject, slotKey })) })),
  );
  const series = await brokenSeries(read, job);
  const most = job.overlap === "allow" ? Number.POSITIVE_INFINITY : maxHolders(job);
  return {
    lost: verdicts.flatMap(({ lost }) => lost),
    doubled: [
      ...verdicts.flatMap(({ doubled }) => doubled),
      ...series.wrong,
      ...tooManyAtOnce(
        world.executions.filter(({ runId }) => readRunId(runId)?.subject === subject),
        most,
        ({ runId }) => runId,
      ),
    ],
    stuck: [
      ...series.stuck,
      // An entry whose run is over is removed by whoever looks next; when all is quiet, nobody does.
      ...listed
        .filter(({ run }) => !isSettled(expected, run, world.time.now()))
        .map(({ slotKey }) => `the lock of ${job.name} lists ${slotKey}`),
    ],
  };
};

/** So often a message may have come back, where all is quiet. */
const MANY_RECEIVES = 20;

/** A hook that was called before the last shard had come to an end of its own, or while a shard was at work. */
const joinedEarly = (executions: readonly Execution[]): readonly string[] =>
  executions
    .filter(({ part }) => part?.kind === "join")
    .flatMap((hook) =>
      executions
        .filter(({ part, startedAtMs, endedAtMs = Number.POSITIVE_INFINITY, slept }) => {
          const isShard = part?.kind === "shard" && !slept();
          return isShard && startedAtMs < hook.startedAtMs && endedAtMs > hook.startedAtMs;
        })
        .map((shard) => `${workOf(shard)} was at work when its run was joined`),
    );

/** Promises 1 to 4, as far as they can be seen when nothing is left to happen. */
export const brokenPromises = async (world: World, expected: readonly Expected[]): Promise<Verdict> => {
  const byRun: ByRun = Map.groupBy(world.executions, ({ runId }) => runId);
  const verdicts = await Promise.all(expected.map((one) => verdictOnJob(world, one, byRun)));
  return {
    lost: verdicts.flatMap(({ lost }) => lost),
    doubled: [
      ...world.violations,
      ...skippedForBackfill(world.stored.items()),
      ...verdicts.flatMap(({ doubled }) => doubled),
      ...[...Map.groupBy(world.executions, workOf).values()].flatMap((executions) =>
        tooManyAtOnce(executions, 1),
      ),
      ...[...byRun.values()].flatMap(joinedEarly),
      ...world.effects
        .filter(({ awake, again }) => awake && again)
        .map(({ runId, key }) => `${runId} repeated what it had recorded: ${key}`),
    ],
    stuck: [
      ...verdicts.flatMap(({ stuck }) => stuck),
      ...[...world.queues.values()].flatMap(({ messages, dead }) => [
        ...[...messages]
          .filter(({ receives }) => receives > MANY_RECEIVES)
          .map(({ body }) => `comes back: ${body}`),
        ...[...dead].map(({ body }) => `in the dead-letter queue: ${body}`),
      ]),
    ],
  };
};
