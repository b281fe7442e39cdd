import { expect, test } from "vitest";
import { EVERY_FAULT } from "./scenario.ts";
import { playShards, playShardsOfPast, type ShardStory } from "./shards.ts";

const COUNT = 150;
const CLEAN = { lost: [], doubled: [], stuck: [] };

/** How many of the shards' effects, and of the hook's, were done by somebody, each counted once. */
const effectsOf = ({ world }: ShardStory) => {
  const all = new Set(world.effects.map(({ runId }) => runId));
  const shards = [...all].filter((id) => id.includes("/")).length;
  return { shards, joins: all.size - shards };
};

test("without any fault each shard's effect is done once, and then the hook's", async () => {
  const story = await playShards(1, {}, { overlap: "allow", count: COUNT });
  expect(story.run).toMatchObject({ st: "succeeded", total: COUNT, result: COUNT, fence: 2 });
  expect(story.verdict).toEqual(CLEAN);
  expect(story.world.effects).toHaveLength(COUNT + 1);
  expect(story.world.effects.at(-1)?.runId).not.toContain("/");
});

test.each([
  ["allow", undefined],
  ["skip", 7],
  ["queue", undefined],
  ["replace", 20],
] as const)(
  "with overlap %s and %s in flight, killed in the list, in shards and in the hook, and under every fault",
  { timeout: 300_000 },
  async (overlap, maxInFlight) => {
    const killed = { list: 0, shard: 0, join: 0 };
    for (let seed = 1; seed <= 6; seed++) {
      const faults = { ...EVERY_FAULT, kill: 0.15, throw: 0.05, "very-late-event": 0, "dropped-event": 0 };
      const limit = maxInFlight === undefined ? {} : { maxInFlight };
      const story = await playShards(seed, faults, { overlap, count: COUNT, ...limit });
      expect({ seed, ...story.verdict }).toEqual({ seed, ...CLEAN });
      expect({ seed, run: story.run }).toMatchObject({ seed, run: { st: "succeeded", total: COUNT } });
      expect({ seed, ...effectsOf(story) }).toEqual({ seed, shards: COUNT, joins: 1 });
      for (const part of ["list", "shard", "join"] as const) killed[part] += story.killed[part];
    }
    // A story in which nobody was killed would prove nothing.
    expect(killed.shard).toBeGreaterThan(10);
    expect(killed.list).toBeGreaterThan(0);
  },
);

test("a run that is cancelled while its shards are listed, sent or at work has none at work when it ends, and is done by a retry", {
  timeout: 300_000,
}, async () => {
  const states: unknown[] = [];
  for (let seed = 1; seed <= 16; seed++) {
    // The cancel is to meet the run, so the run has to come in time.
    const inTime = { "late-event": 0, "very-late-event": 0, "dropped-event": 0 };
    const faults = { ...EVERY_FAULT, ...inTime, kill: 0.1 };
    const overlap = seed % 2 === 0 ? "skip" : "allow";
    const story = await playShards(seed, faults, {
      overlap,
      count: 60,
      cancelAfterMs: 20_000 + seed * 5_000,
    });
    expect({ seed, ...story.verdict }).toEqual({ seed, ...CLEAN });
    states.push(story.run?.["ep"]);
    expect({ seed, ...effectsOf(story) }).toEqual({ seed, shards: 60, joins: 1 });
  }
  // Where nobody could cancel it any more there was nothing to retry.
  expect(states.filter((epoch) => epoch === 2).length).toBeGreaterThan(5);
});

test.each(["skip", "allow"] as const)(
  "past slots of a job in shards, with overlap %s, are backfilled under every fault: each shard's effect once, one join a slot",
  { timeout: 300_000 },
  async (overlap) => {
    for (let seed = 1; seed <= 4; seed++) {
      const faults = { ...EVERY_FAULT, kill: 0.1, throw: 0.05 };
      const { world, slots, verdict } = await playShardsOfPast(seed, faults, 20, overlap);
      expect({ seed, ...verdict }).toEqual({ seed, ...CLEAN });
      const runs = world.stored.items().filter(({ trigger }) => trigger === "backfill");
      expect(runs.map(({ st, total }) => [st, total])).toEqual(slots.map(() => ["succeeded", 20]));
      const done = new Set(world.effects.map(({ runId }) => runId));
      expect({ seed, effects: done.size }).toEqual({ seed, effects: slots.length * 21 });
    }
  },
);

test("at most as many shards are at work as may be in flight", async () => {
  const { world, run } = await playShards(3, {}, { overlap: "allow", count: COUNT, maxInFlight: 3 });
  expect(run).toMatchObject({ st: "succeeded" });
  const shards = world.executions.filter(({ part }) => part?.kind === "shard");
  const beside = shards.map(
    (one) =>
      shards.filter(
        ({ startedAtMs, endedAtMs = 0 }) => startedAtMs <= one.startedAtMs && endedAtMs > one.startedAtMs,
      ).length,
  );
  expect(Math.max(...beside)).toBe(3);
});
