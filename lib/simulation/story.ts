import type { JobDefinition, Manifest } from "../core/jobs/job.ts";
import { scheduleOfJob } from "../core/jobs/job-list.ts";
import { functionTimeoutMs } from "../core/jobs/pool.ts";
import { maxReceiveCount } from "../core/jobs/retry.ts";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../core/time.ts";
import type { Journal } from "../ports/journal.ts";
import type { Handlers } from "./attempts.ts";
import { GENTLE_FAULTS } from "./faults.ts";
import { brokenPromises, type Expected, openRuns, type Verdict } from "./invariants.ts";
import { makeWorld, type SimulatedPool, type World } from "./world.ts";

export interface StoryOptions {
  readonly manifest: Pick<Manifest, "jobs" | "pools">;
  /** Slots in [fromMs, toMs) are played. */
  readonly fromMs: number;
  readonly toMs: number;
  /** None = nothing goes wrong. */
  readonly faultSeed?: number;
  readonly handlers: Handlers;
  readonly journal?: Journal;
  /** Called before the clock moves to an instant. */
  readonly pace?: (atMs: number) => Promise<void> | undefined;
}

export interface Story {
  readonly world: World;
  readonly expected: readonly Expected[];
  readonly verdict: Verdict;
  /** When everything was over. */
  readonly endedAtMs: number;
}

/** Before the first slot the watchdog stores the definitions; not so early that it expects a slot before that. */
const WARM_UP_MS = 30 * SECOND_MS;

/** After the last slot so long is played for what still waits. */
const LONGEST_END_MS = 7 * DAY_MS;

/** A deployment's pools, as the template has them. */
const poolsOf = ({ jobs, pools }: StoryOptions["manifest"]): { readonly [pool: string]: SimulatedPool } =>
  Object.fromEntries(
    Object.entries(pools).map(([pool, { concurrency }]): [string, SimulatedPool] => [
      pool,
      {
        visibilityMs: 6 * functionTimeoutMs(jobs, pool),
        maxReceives: maxReceiveCount(jobs.filter((job) => job.pool === pool)),
        workers: concurrency,
      },
    ]),
  );

/** Its schedule ends with the story: nobody expects a slot after that. */
const endingAt = (job: JobDefinition, toMs: number): JobDefinition => ({
  ...job,
  endsAtMs: Math.min(job.endsAtMs ?? toMs, toMs),
});

/** Schedules one slot after the other: all at once would be as many events as slots. */
const scheduleAll = (world: World, { job, slots }: Expected): void => {
  const strike = (index: number): void => {
    const slotMs = slots[index];
    if (slotMs === undefined) return;
    world.time.at(slotMs, () => {
      world.schedule(job, slotMs);
      strike(index + 1);
    });
  };
  strike(0);
};

const playUntil = async ({ time }: World, untilMs: number, pace: StoryOptions["pace"]): Promise<void> => {
  for (let atMs = time.nextMs(); atMs !== undefined && atMs <= untilMs; atMs = time.nextMs()) {
    await pace?.(atMs);
    await time.step(untilMs);
  }
  await time.playUntil(untilMs);
};

/** Hour by hour, until nothing is open and no message is left. */
const playToEnd = async (
  world: World,
  expected: readonly Expected[],
  options: StoryOptions,
): Promise<void> => {
  const { toMs, pace } = options;
  for (let untilMs = toMs + HOUR_MS; untilMs <= toMs + LONGEST_END_MS; untilMs += HOUR_MS) {
    await playUntil(world, untilMs, pace);
    const messages = [...world.queues.values()].some((queue) => queue.messages.size + queue.dead.size > 0);
    if (!messages && (await openRuns(world, expected)).length === 0) return;
  }
};

/** Plays every slot of the jobs through the real use cases; then the faults end, and what is open may end too. */
export const playStory = async (options: StoryOptions): Promise<Story> => {
  const { manifest, fromMs, toMs, faultSeed, handlers, journal, pace } = options;
  const jobs = manifest.jobs.map((job) => endingAt(job, toMs));
  const world = makeWorld({
    seed: faultSeed ?? 1,
    startMs: fromMs - WARM_UP_MS,
    jobs,
    faults: faultSeed === undefined ? {} : GENTLE_FAULTS,
    ideal: faultSeed === undefined,
    watchdog: true,
    pools: poolsOf({ ...manifest, jobs }),
    handlers,
    ...(journal === undefined ? {} : { journal }),
  });
  const expected = jobs.map((job): Expected => {
    const slots = [...(scheduleOfJob(job)?.slots(fromMs, toMs) ?? [])];
    return { job, slots, mayWait: true };
  });
  world.start();
  for (const one of expected) scheduleAll(world, one);
  await playUntil(world, toMs, pace);
  world.endFaults();
  await playToEnd(world, expected, options);
  const verdict = await brokenPromises(world, expected);
  return { world, expected, verdict, endedAtMs: world.time.now() };
};
