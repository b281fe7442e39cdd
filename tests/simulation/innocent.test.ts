import { expect, test } from "vitest";
import { slotKeyOf } from "../../lib/core/identity.ts";
import { runKey } from "../../lib/core/items.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { type Handlers, notedExecution } from "../../lib/simulation/attempts.ts";
import { definition } from "../support/definitions.ts";
import { makeWorld } from "./world.ts";

// Who has done nothing wrong pays nothing: no attempt, no crash, no place.

const START_MS = Date.parse("2026-10-08T00:00:30Z");

const job = definition({
  name: "innocent",
  schedules: ["* * * * *"],
  overlap: "allow",
  timeoutMs: 4 * MINUTE_MS,
  endsAtMs: START_MS + 3 * HOUR_MS,
});

const statesOf = async (world: ReturnType<typeof makeWorld>, slots: readonly number[]) => {
  const states = new Map<string, number>();
  for (const slotMs of slots) {
    const occurrence = { subject: job.subject, slotKey: slotKeyOf(slotMs) };
    const run = await world.stored.get(runKey(occurrence), { consistent: true });
    const text = `${String(run?.["st"])}, attempts ${Number(run?.["attempts"] ?? 0)}, crashes ${Number(run?.["crashes"] ?? 0)}`;
    states.set(text, (states.get(text) ?? 0) + 1);
  }
  return Object.fromEntries(states);
};

const slotsFrom = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, n) => Math.ceil(START_MS / MINUTE_MS) * MINUTE_MS + n * MINUTE_MS);

test("a worker that fails at its start for an hour costs its runs neither attempt nor crash", {
  timeout: 120_000,
}, async () => {
  const world = makeWorld({ seed: 1, startMs: START_MS, jobs: [job], faults: {}, watchdog: true });
  const slots = slotsFrom(60);
  world.failWorkersUntil(START_MS + HOUR_MS);
  world.start();
  for (const slotMs of slots) world.schedule(job, slotMs);
  await world.time.playUntil(START_MS + 6 * HOUR_MS);
  expect(world.failedStarts()).toBeGreaterThan(60);
  expect(await statesOf(world, slots)).toEqual({ "succeeded, attempts 0, crashes 0": 60 });
});

test("messages that come back more often than their queue allows, unstarted, are sent again and run", {
  timeout: 120_000,
}, async () => {
  const world = makeWorld({
    seed: 2,
    startMs: START_MS,
    jobs: [job],
    faults: {},
    watchdog: true,
    // Throttled deliveries raise the receive count of whom they throttle.
    queue: { visibilityMs: MINUTE_MS, maxReceives: 3 },
  });
  const slots = slotsFrom(30);
  world.failWorkersUntil(START_MS + HOUR_MS);
  world.start();
  for (const slotMs of slots) world.schedule(job, slotMs);
  let toDeadLetters = 0;
  for (let minute = 0; minute < 120; minute++) {
    await world.time.playUntil(START_MS + minute * MINUTE_MS);
    toDeadLetters += world.queues.get("default")?.dead.size ?? 0;
  }
  await world.time.playUntil(START_MS + 8 * HOUR_MS);
  expect(toDeadLetters).toBeGreaterThan(0);
  expect(await statesOf(world, slots)).toEqual({ "succeeded, attempts 0, crashes 0": 30 });
});

test("five hundred runs at once, two workers and no watchdog: all run, and nobody pays for the wait", {
  timeout: 120_000,
}, async () => {
  const world = makeWorld({
    seed: 3,
    startMs: START_MS,
    jobs: [job],
    faults: {},
    watchdog: false,
    workers: 2,
  });
  world.start();
  const asked = Array.from({ length: 500 }, (_, n) => START_MS + n * 10);
  for (const atMs of asked) world.runByHand(job, atMs);
  await world.time.playUntil(START_MS + 12 * HOUR_MS);
  expect(world.byHand).toHaveLength(500);
  const runs = world.stored.items().filter(({ sk }) => String(sk).startsWith("R#"));
  expect(new Set(runs.map((run) => run["st"]))).toEqual(new Set(["succeeded"]));
  expect(runs.every((run) => run["attempts"] === undefined && run["crashes"] === undefined)).toBe(true);
  expect(world.executions).toHaveLength(500);
});

/** One run that nothing but the kill of its whole function ends; every other takes a second. */
const oneBlocks =
  (isBlocking: (runId: string) => boolean): Handlers =>
  (universe, process, traces) => ({
    start(request) {
      const { number, ended, end } = notedExecution(traces, universe, process, request);
      if (isBlocking(request.runId)) process.timers.after(5 * MINUTE_MS, () => process.kill());
      else process.timers.after(SECOND_MS, () => end({ kind: "returned", result: number }));
      return { ended, stop: () => undefined };
    },
  });

const byHandOnly = { ...job, schedules: [] };

test("a batch of ten of which one blocks its function until the kill: that one ends dead, and the nine pay nothing", {
  timeout: 120_000,
}, async () => {
  const workedOnBefore = new Set<number>();
  for (let seed = 1; seed <= 30; seed++) {
    let blocking: string | undefined;
    const world = makeWorld({
      seed,
      startMs: START_MS,
      jobs: [byHandOnly],
      faults: {},
      watchdog: true,
      workers: 1,
      queue: { visibilityMs: 30 * MINUTE_MS, maxReceives: 28, batch: 10 },
      handlers: oneBlocks((runId) => runId === blocking),
    });
    // The worker fails at its start until all ten are there.
    world.failWorkersUntil(START_MS + 2 * MINUTE_MS);
    world.start();
    for (let n = 0; n < 10; n++) world.runByHand(byHandOnly, START_MS + n * SECOND_MS);
    await world.time.playUntil(START_MS + MINUTE_MS);
    [blocking] = world.byHand;
    await world.time.playUntil(START_MS + 6 * HOUR_MS);
    workedOnBefore.add(world.executions.findIndex(({ runId }) => runId === blocking));
    const runs = world.stored.items().filter(({ sk }) => String(sk).startsWith("R#"));
    const ends = runs.map(
      ({ st, attempts = 0, crashes = 0 }) => `${st}, attempts ${attempts}, crashes ${crashes}`,
    );
    expect([seed, ends.sort()]).toEqual([
      seed,
      ["dead, attempts 0, crashes 4", ...Array(9).fill("succeeded, attempts 0, crashes 0")],
    ]);
    // Nobody was interrupted by it, nor worked on twice for it.
    expect(world.executions.filter(({ died }) => died).map(({ runId }) => runId)).toEqual(
      Array(4).fill(blocking),
    );
    expect(world.executions).toHaveLength(9 + 4);
  }
  // It came first, it came last, and in between.
  expect(Math.min(...workedOnBefore)).toBe(0);
  expect(Math.max(...workedOnBefore)).toBe(9);
});
