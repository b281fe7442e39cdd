import { expect, test } from "vitest";
import { playAutomations } from "./automations.ts";
import { EVERY_FAULT, POLICIES } from "./scenario.ts";

const CLEAN = { lost: [], doubled: [], stuck: [] };

test.each(POLICIES)(
  "with overlap $name, run-time schedules that are made, changed, paused and deleted under every fault lose and double no slot",
  { timeout: 300_000 },
  async (policy) => {
    const totals = { occurrences: 0, caughtUp: 0, planned: 0 };
    for (const seed of [1, 2, 3]) {
      const played = await playAutomations({ seed, policy, faults: EVERY_FAULT, hours: 60 });
      expect({ seed, ...played.verdict }).toEqual({ seed, ...CLEAN });
      for (const name of ["occurrences", "caughtUp", "planned"] as const) totals[name] += played[name];
    }
    // A story in which nothing was due, or nothing was left to the watchdog, or no walk planned, would prove nothing.
    expect(totals.occurrences).toBeGreaterThan(60);
    expect(totals.caughtUp).toBeGreaterThan(20);
    expect(totals.planned).toBeGreaterThan(20);
  },
);
