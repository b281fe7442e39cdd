import { slotKeyOf } from "../../lib/core/identity.ts";
import { effectRange, runKey } from "../../lib/core/items.ts";
import type { Overlap } from "../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS } from "../../lib/core/time.ts";
import type { Item } from "../../lib/core/write.ts";
import type { AttemptEnd, AttemptServices } from "../../lib/ports/attempts.ts";
import { type Handlers, notedExecution } from "../../lib/simulation/attempts.ts";
import type { Faults, Process, Universe } from "../../lib/simulation/process.ts";
import { definition } from "../support/definitions.ts";
import { FAILURE } from "./handlers.ts";
import { makeWorld, type World } from "./world.ts";

const SLOT_MS = Date.parse("2026-10-08T02:00:00Z");
const PIECES = 40;
const PIECES_PER_INVOCATION = 2;
/** What the work leaves to a next invocation, when nothing goes wrong. */
export const CONTINUATIONS = PIECES / PIECES_PER_INVOCATION;

const keyOf = (piece: number): string => `piece ${String(piece).padStart(2, "0")}`;

const waited = (process: Process, waitMs: number): Promise<void> =>
  new Promise((resolve) => {
    process.timers.after(waitMs, resolve);
  });

/** Two pieces of the work, each an effect of its own; then the next invocation goes on. */
const workOn = async (
  { random }: Universe,
  process: Process,
  services: AttemptServices,
  once: (key: string) => Promise<void>,
): Promise<AttemptEnd> => {
  let next = Number((await services.loadState()) ?? 0);
  if (next === PIECES) return { kind: "returned", result: next };
  const until = next - (next % PIECES_PER_INVOCATION) + PIECES_PER_INVOCATION;
  while (next < until) {
    await waited(process, random.whole(100, 20_000));
    await once(keyOf(next));
    next += 1;
    services.progress({ done: next, total: PIECES });
    if (random.chance(0.5)) await services.saveState(next);
  }
  return { kind: "continue", state: next };
};

/** A worker that is killed, by its share of `faults().kill`, at any moment of an attempt; and after an effect. */
const longHandlers: Handlers = (universe, process, traces) => ({
  start(request, services) {
    const { random } = universe;
    const { ended, end } = notedExecution(traces, universe, process, request);
    const failed = (): void => end({ kind: "threw", error: FAILURE, permanent: false });
    if (random.chance(universe.faults()["kill"] ?? 0)) {
      process.timers.after(random.whole(0, 45_000), process.kill);
    }
    const between = (): void => {
      if (random.chance((universe.faults()["kill"] ?? 0) / 10)) process.kill();
    };
    const once = (key: string) => traces.effects.once(request, services, process, { key, between });
    if (random.chance(universe.faults()["throw"] ?? 0)) process.timers.after(random.whole(1, 30_000), failed);
    void workOn(universe, process, services, once).then(end, failed);
    process.timers.after(request.timeoutMs, () => end({ kind: "timed-out", error: FAILURE }));
    return { ended, stop: () => end({ kind: "stopped", error: FAILURE }) };
  },
});

export interface LongStory {
  readonly world: World;
  readonly run: Item | undefined;
  /** Pieces in the order in which somebody first did them. */
  readonly order: readonly string[];
  /** What is recorded: one result for each piece. */
  readonly recorded: readonly string[];
  readonly runs: number;
}

export const EVERY_PIECE: readonly string[] = Array.from({ length: PIECES }, (_, piece) => keyOf(piece));

/** One occurrence of a job of 40 pieces that continues 20 times. */
export const playLongWork = async (seed: number, faults: Faults, overlap: Overlap): Promise<LongStory> => {
  const job = definition({
    name: "long",
    schedules: ["0 2 8 10 *"],
    overlap,
    timeoutMs: 2 * MINUTE_MS,
    retry: { ...definition({ name: "x" }).retry, retries: 8, ladderMs: [MINUTE_MS], crashes: 20 },
  });
  const startMs = SLOT_MS - 2 * MINUTE_MS;
  const world = makeWorld({ seed, startMs, jobs: [job], faults, watchdog: true, handlers: longHandlers });
  world.start();
  world.schedule(job, SLOT_MS);
  await world.time.playUntil(SLOT_MS + 12 * HOUR_MS);
  world.endFaults();
  await world.time.playUntil(SLOT_MS + 24 * HOUR_MS);
  const occurrence = { subject: job.subject, slotKey: slotKeyOf(SLOT_MS) };
  const range = effectRange(occurrence);
  const kept = await world.stored.query(range);
  return {
    world,
    run: await world.stored.get(runKey(occurrence), { consistent: true }),
    order: [...new Set(world.effects.map(({ key }) => key))],
    recorded: kept.filter(({ done }) => done === true).map(({ sk }) => String(sk).slice(range.first.length)),
    runs: world.stored.items().filter(({ sk }) => String(sk).startsWith("R#")).length,
  };
};
