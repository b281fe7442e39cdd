import { expect, test } from "vitest";
import { CONTINUATIONS, EVERY_PIECE, playLongWork } from "./long-work.ts";
import { EVERY_FAULT } from "./scenario.ts";

const SEEDS = Array.from({ length: Number(process.env["LONG_WORK_SEEDS"] ?? 6) }, (_, index) => index + 1);

test("a job of 40 pieces continues 20 times: one run, each piece once, in order, and no attempt used", async () => {
  const { run, order, recorded, runs, world } = await playLongWork(1, {}, "allow");
  expect(run).toMatchObject({ st: "succeeded", result: 40, cont: CONTINUATIONS, attempts: 0, crashes: 0 });
  expect(run).toMatchObject({ fence: CONTINUATIONS + 1, progress: { done: 40, total: 40 } });
  expect(order).toEqual(EVERY_PIECE);
  expect(recorded).toEqual(EVERY_PIECE);
  expect(world.effects).toHaveLength(EVERY_PIECE.length);
  expect(runs).toBe(1);
});

test.each(["allow", "skip", "queue"] as const)(
  "with overlap %s, killed at random and under every fault, each piece has its result once, in order, in one run",
  { timeout: 300_000 },
  async (overlap) => {
    let interrupted = 0;
    let repeated = 0;
    for (const seed of SEEDS) {
      const faults = { ...EVERY_FAULT, kill: 0.3, throw: 0.1, "very-late-event": 0 };
      const { run, order, recorded, runs, world } = await playLongWork(seed, faults, overlap);
      expect({ seed, violations: world.violations }).toEqual({ seed, violations: [] });
      expect({ seed, state: run?.["st"], result: run?.["result"], runs }).toEqual({
        seed,
        state: "succeeded",
        result: 40,
        runs: 1,
      });
      expect({ seed, recorded, order }).toEqual({ seed, recorded: EVERY_PIECE, order: EVERY_PIECE });
      // What was recorded is never done again, by whoever did not sleep in between.
      expect({ seed, again: world.effects.filter(({ awake, again }) => awake && again) }).toEqual({
        seed,
        again: [],
      });
      interrupted += world.interrupted();
      repeated += world.effects.length - EVERY_PIECE.length;
    }
    // A story in which nothing was killed between effect and record would prove nothing.
    expect(interrupted).toBeGreaterThan(SEEDS.length);
    expect(repeated).toBeGreaterThan(0);
  },
);
