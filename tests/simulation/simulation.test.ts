import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/core/time.ts";
import { definition } from "../support/definitions.ts";
import { brokenPromises } from "./invariants.ts";
import { FAULT_KINDS, type Faults } from "./process.ts";
import { makeWorld } from "./world.ts";

/** `SIMULATION_SEEDS=2000 npx vitest run tests/simulation` plays more of them. */
const SEEDS = Number(process.env["SIMULATION_SEEDS"] ?? 40);
const FIRST_SEED = Number(process.env["SIMULATION_FIRST_SEED"] ?? 1);

const START_MS = Date.parse("2026-03-29T00:58:30Z");
const SLOTS = 8;

const EVERY_FAULT: Faults = {
  "crash-before": 0.01,
  "crash-after": 0.01,
  throttled: 0.02,
  "lost-answer": 0.02,
  repeated: 0.02,
  pause: 0.01,
  duplicate: 0.1,
  "duplicate-event": 0.2,
  "late-event": 0.1,
  "dropped-event": 0.05,
  "early-visibility": 0.1,
  throw: 0.2,
  hang: 0.03,
};

/** What must lose nothing even when no watchdog repairs it. */
const ANSWERS_AND_DUPLICATES: Faults = {
  repeated: 0.05,
  duplicate: 0.2,
  "duplicate-event": 0.3,
  throw: 0.1,
};

const jobs = [
  definition({
    name: "one-at-a-time",
    schedules: ["*/10 * * * *"],
    timeoutMs: 4 * MINUTE_MS,
    retry: {
      retries: 2,
      firstWaitMs: MINUTE_MS,
      factor: 2,
      maxWaitMs: 4 * MINUTE_MS,
      jitter: 0.5,
      crashes: 3,
    },
  }),
  definition({
    name: "side-by-side",
    schedules: ["*/10 * * * *"],
    overlap: "allow",
    timeoutMs: 4 * MINUTE_MS,
    retry: {
      retries: 2,
      firstWaitMs: MINUTE_MS,
      factor: 2,
      maxWaitMs: 4 * MINUTE_MS,
      jitter: 0.5,
      crashes: 3,
    },
  }),
];

const play = async (seed: number, faults: Faults, watchdog: boolean) => {
  const world = makeWorld({ seed, startMs: START_MS, jobs, faults, watchdog });
  const firstSlotMs = Math.ceil(START_MS / (10 * MINUTE_MS)) * 10 * MINUTE_MS;
  const slots = Array.from({ length: SLOTS }, (_, index) => firstSlotMs + index * 10 * MINUTE_MS);
  world.start();
  for (const job of jobs) for (const slotMs of slots) world.schedule(job, slotMs);
  const faultsEndMs = START_MS + (SLOTS + 1) * 10 * MINUTE_MS;
  await world.time.playUntil(faultsEndMs);
  world.endFaults();
  // Long enough for the longest wait of all: the visibility of a message whose worker died, several times over.
  await world.time.playUntil(faultsEndMs + 4 * HOUR_MS);
  const expected = jobs.map((job) => ({ job, slots }));
  return { world, broken: await brokenPromises(world, expected) };
};

const seeds = Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index);

test("under every fault each occurrence ends once, and no two attempts run at once", {
  timeout: 300_000,
}, async () => {
  const hits = new Map<string, number>();
  let executions = 0;
  for (const seed of seeds) {
    const { world, broken } = await play(seed, EVERY_FAULT, true);
    expect({ seed, broken }).toEqual({ seed, broken: [] });
    executions += world.executions.length;
    for (const [name, times] of world.hits) hits.set(name, (hits.get(name) ?? 0) + times);
  }
  // A simulation that hit nothing would prove nothing.
  expect(executions).toBeGreaterThan(SEEDS * SLOTS);
  const mustBeHit = FAULT_KINDS.flatMap((kind) =>
    ["table.write", "queue.send", "table.get"].map((port) => `${kind} ${port}`),
  );
  expect(mustBeHit.filter((name) => !hits.has(name))).toEqual([]);
});

test("without a watchdog, repeated answers and duplicates lose nothing", { timeout: 300_000 }, async () => {
  for (const seed of seeds) {
    const { broken } = await play(seed, ANSWERS_AND_DUPLICATES, false);
    expect({ seed, broken }).toEqual({ seed, broken: [] });
  }
});

test("the same seed plays the same story", async () => {
  const story = async () => (await play(7, EVERY_FAULT, true)).world.stored.items();
  expect(await story()).toEqual(await story());
  expect(START_MS % DAY_MS).toBeGreaterThan(0);
});
