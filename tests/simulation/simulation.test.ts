import { expect, test } from "vitest";
import { FAULT_KINDS } from "../../lib/simulation/process.ts";
import { ANSWERS_AND_DUPLICATES, EVERY_FAULT, POLICIES, play } from "./scenario.ts";

/** A slice of what `npm run simulate` plays. */
const SEEDS = Array.from({ length: 10 }, (_, index) => index + 1);
const CLEAN = { lost: [], doubled: [], stuck: [] };

test.each(POLICIES)(
  "with overlap $name, under every fault and with people in between, each occurrence ends once",
  { timeout: 300_000 },
  async (policy) => {
    const hits = new Set<string>();
    for (const seed of SEEDS) {
      const series = seed % 2 === 0;
      const scenario = {
        seed,
        policy,
        faults: EVERY_FAULT,
        watchdog: true,
        slots: 20,
        operators: true,
        series,
      };
      const { world, verdict } = await play(scenario);
      expect({ seed, ...verdict }).toEqual({ seed, ...CLEAN });
      expect(world.executions.length).toBeGreaterThan(0);
      const backfilled = world.stored.items().filter((item) => item["trigger"] === "backfill");
      expect(backfilled.length > 0).toBe(series);
      for (const name of world.hits.keys()) hits.add(name);
    }
    // A simulation that hit nothing would prove nothing.
    const wanted = FAULT_KINDS.flatMap((kind) =>
      ["table.write", "table.get"].map((port) => `${kind} ${port}`),
    );
    expect(wanted.filter((name) => !hits.has(name))).toEqual([]);
  },
);

test.each(POLICIES)(
  "with overlap $name and no watchdog, repeated answers and duplicates lose nothing",
  { timeout: 300_000 },
  async (policy) => {
    for (const seed of SEEDS) {
      const scenario = {
        seed,
        policy,
        faults: ANSWERS_AND_DUPLICATES,
        watchdog: false,
        slots: 20,
        operators: false,
        series: seed % 2 === 0,
      };
      expect({ seed, ...(await play(scenario)).verdict }).toEqual({ seed, ...CLEAN });
    }
  },
);

test.each(POLICIES)(
  "with overlap $name, a deploy that changes or removes the job while its runs are active loses and doubles nothing",
  { timeout: 300_000 },
  async (policy) => {
    let inFlight = 0;
    for (const seed of SEEDS.slice(0, 5)) {
      const scenario = { seed, policy, faults: EVERY_FAULT, watchdog: true, slots: 20, operators: true };
      const { world, verdict } = await play({ ...scenario, deploys: true });
      expect({ seed, ...verdict }).toEqual({ seed, ...CLEAN });
      inFlight += world.deploysInFlight();
    }
    expect(inFlight).toBeGreaterThan(0);
  },
);

test.each(POLICIES)(
  "with overlap $name, whatever the clocks do, each occurrence ends once with the result of its last attempt",
  { timeout: 300_000 },
  async (policy) => {
    for (const seed of SEEDS.slice(0, 5)) {
      const scenario = { seed, policy, faults: EVERY_FAULT, watchdog: true, slots: 20, operators: true };
      const { verdict } = await play({ ...scenario, skewed: true });
      expect({ seed, ...verdict }).toEqual({ seed, ...CLEAN });
    }
  },
);

test("the same seed plays the same story", async () => {
  const [policy] = POLICIES;
  if (policy === undefined) throw new Error("no policy");
  const scenario = { seed: 7, policy, faults: EVERY_FAULT, watchdog: true, slots: 20, operators: true };
  const story = async () => (await play(scenario)).world.stored.items();
  expect(await story()).toEqual(await story());
});
