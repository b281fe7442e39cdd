import { slotKeyOf } from "../../lib/core/identity.ts";
import { runKey } from "../../lib/core/items.ts";
import type { JobDefinition, Overlap, ShardsDefinition } from "../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS } from "../../lib/core/time.ts";
import type { Item } from "../../lib/core/write.ts";
import type { AttemptEnd, AttemptRequest, AttemptServices } from "../../lib/ports/attempts.ts";
import { type Handlers, notedExecution } from "../../lib/simulation/attempts.ts";
import { brokenPromises, type Verdict } from "../../lib/simulation/invariants.ts";
import type { Faults, Process, Universe } from "../../lib/simulation/process.ts";
import { definition } from "../support/definitions.ts";
import { FAILURE } from "./handlers.ts";
import { makeWorld, type World } from "./world.ts";

const SLOT_MS = Date.parse("2026-10-08T02:00:00Z");

const waited = (process: Process, waitMs: number): Promise<void> =>
  new Promise((resolve) => {
    process.timers.after(waitMs, resolve);
  });

const list = async (
  { random }: Universe,
  process: Process,
  services: AttemptServices,
  count: number,
): Promise<AttemptEnd> => {
  for (let first = 0; first < count; first += 50) {
    await waited(process, random.whole(10, 2_000));
    const keys = Array.from({ length: Math.min(50, count - first) }, (_, n) => `customer ${first + n}`);
    await services.addShards(keys.map((key) => ({ key, input: { key } })));
  }
  return { kind: "returned", result: count };
};

/** A worker that is killed, by its share of `faults().kill`, while it lists, in a shard, or in the hook. */
const shardHandlers =
  (count: number): Handlers =>
  (universe, process, traces) => ({
    start(request, services) {
      const { random } = universe;
      const { ended, end } = notedExecution(traces, universe, process, request);
      const kill = universe.faults()["kill"] ?? 0;
      const failed = (): void => end({ kind: "threw", error: FAILURE, permanent: false });
      if (random.chance(kill)) process.timers.after(random.whole(0, 5_000), process.kill);
      const between = (): void => {
        if (random.chance(kill / 4)) process.kill();
      };
      const effect = async (): Promise<AttemptEnd> => {
        await waited(process, random.whole(10, 5_000));
        if (random.chance(universe.faults()["throw"] ?? 0)) throw new Error("the handler failed");
        await traces.effects.once(request, services, process, { key: "effect", between });
        return {
          kind: "returned",
          ...(request.part?.kind === "join" ? { result: request.part.shards.total } : {}),
        };
      };
      const work = request.part?.kind === "list" ? list(universe, process, services, count) : effect();
      void work.then(end, failed);
      process.timers.after(request.timeoutMs, () => end({ kind: "timed-out", error: FAILURE }));
      return { ended, stop: () => end({ kind: "stopped", error: FAILURE }) };
    },
  });

const wideJob = (schedule: string, changes: Partial<JobDefinition>): JobDefinition =>
  definition({
    name: "wide",
    schedules: [schedule],
    timeoutMs: 2 * MINUTE_MS,
    retry: { ...definition({ name: "x" }).retry, retries: 10, ladderMs: [MINUTE_MS], crashes: 20 },
    ...changes,
  });

export interface ShardStory {
  readonly world: World;
  readonly run: Item | undefined;
  readonly verdict: Verdict;
  /** How often each part's worker was killed. */
  readonly killed: { readonly [part in NonNullable<AttemptRequest["part"]>["kind"]]: number };
}

/** One occurrence of a job with so many shards, which it lists. */
export const playShards = async (
  seed: number,
  faults: Faults,
  {
    overlap,
    count,
    cancelAfterMs,
    ...shards
  }: {
    readonly overlap: Overlap;
    readonly count: number;
    /** Somebody cancels the run, so long after its slot; and retries it an hour later. */
    readonly cancelAfterMs?: number;
  } & Partial<ShardsDefinition>,
): Promise<ShardStory> => {
  const job = wideJob("0 2 8 10 *", { overlap, shards: { joins: true, ...shards } });
  const handlers = shardHandlers(count);
  const startMs = SLOT_MS - 2 * MINUTE_MS;
  const world = makeWorld({ seed, startMs, jobs: [job], faults, watchdog: true, handlers, workers: 8 });
  world.start();
  world.schedule(job, SLOT_MS);
  if (cancelAfterMs !== undefined) {
    const pointed = { job, occurrence: { subject: job.subject, slotKey: slotKeyOf(SLOT_MS) } };
    world.cancel(pointed, SLOT_MS + cancelAfterMs);
    world.retry(pointed, SLOT_MS + cancelAfterMs + HOUR_MS);
    // The first may have met a fault.
    world.retry(pointed, SLOT_MS + 9 * HOUR_MS);
  }
  await world.time.playUntil(SLOT_MS + 8 * HOUR_MS);
  world.endFaults();
  await world.time.playUntil(SLOT_MS + 16 * HOUR_MS);
  const died = (kind: string): number =>
    world.executions.filter((execution) => execution.died && execution.part?.kind === kind).length;
  return {
    world,
    run: await world.stored.get(runKey({ subject: job.subject, slotKey: slotKeyOf(SLOT_MS) }), {
      consistent: true,
    }),
    verdict: await brokenPromises(world, [{ job, slots: [SLOT_MS] }]),
    killed: { list: died("list"), shard: died("shard"), join: died("join") },
  };
};

const DAYS = 7;
const DAY_MS = 24 * HOUR_MS;

/** The last week of a daily job, in so many shards each, is backfilled. */
export const playShardsOfPast = async (seed: number, faults: Faults, count: number, overlap: Overlap) => {
  const job = wideJob("0 2 * * *", { overlap, shards: { joins: true }, endsAtMs: SLOT_MS });
  const startMs = SLOT_MS + HOUR_MS;
  const handlers = shardHandlers(count);
  const world = makeWorld({ seed, startMs, jobs: [job], faults, watchdog: true, handlers, workers: 8 });
  world.start();
  const range = { job, fromMs: SLOT_MS - DAYS * DAY_MS, toMs: SLOT_MS };
  const parallel = overlap === "allow" ? 2 : 1;
  world.backfill({ ...range, parallel }, startMs + 2 * MINUTE_MS);
  await world.time.playUntil(startMs + 8 * HOUR_MS);
  world.endFaults();
  // The request itself may have met a fault; it is taken up, or begins now.
  world.backfill({ ...range, parallel }, world.time.now());
  await world.time.playUntil(startMs + 20 * HOUR_MS);
  const slots = Array.from({ length: DAYS }, (_, day) => SLOT_MS - (DAYS - day) * DAY_MS);
  return { world, slots, verdict: await brokenPromises(world, [{ job, slots }]) };
};
