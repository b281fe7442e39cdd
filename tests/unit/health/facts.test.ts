import { expect, test } from "vitest";
import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { unknownHealth } from "../../../lib/core/health/health.ts";
import { factOf, merged, troublesOf } from "../../../lib/core/health/health-facts.ts";
import { writeHealth } from "../../../lib/core/health/health-items.ts";
import { judgeHealth } from "../../../lib/core/health/judge-health.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/core/time.ts";
import type { Item } from "../../../lib/core/write.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf } from "../../support/path.ts";

const SLOT = "2027-03-01T01:00:00Z";
const SLOT_MS = msOf(SLOT);
const job = definition({ name: "report", schedules: ["0 * * * *"] });

const fact = (run: Item | undefined) =>
  factOf(at("report", SLOT), run, { fires: true, clockBoundMs: 30_000 });

test("of two looks at a run the later one counts: its end, or a newer attempt set, in whatever order they come", () => {
  const running = fact({ st: "running", ep: 1, fence: 1 });
  const dead = fact({ st: "dead", ep: 1, fence: 1 });
  const again = fact({ st: "queued", ep: 2, fence: 1 });
  for (const looks of [
    [dead, running],
    [running, dead],
  ])
    expect(merged(looks).map(({ state }) => state)).toEqual(["dead"]);
  for (const looks of [
    [dead, again],
    [again, dead],
  ])
    expect(merged(looks).map(({ state }) => state)).toEqual(["queued"]);
});

test("a run of a backfill is never late, and what somebody asks for is late from then on", () => {
  const laterMs = SLOT_MS + 24 * HOUR_MS;
  const queued = { st: "queued", ep: 1, claimedAtMs: laterMs };
  expect(troublesOf(job, fact({ ...queued, trigger: "backfill" }), laterMs + HOUR_MS)).toEqual([]);
  const byHand = fact({ ...queued, trigger: "manual" });
  expect(troublesOf(job, byHand, laterMs + 5 * MINUTE_MS - 1)).toEqual([]);
  expect(troublesOf(job, byHand, laterMs + 5 * MINUTE_MS)).toEqual(["late"]);
});

test("what the schedule asks for is late from its slot on, however late it was claimed", () => {
  const queued = { st: "queued", ep: 1, claimedAtMs: SLOT_MS + 9 * MINUTE_MS };
  for (const trigger of ["schedule", "watchdog"])
    expect(troublesOf(job, fact({ ...queued, trigger }), SLOT_MS + 5 * MINUTE_MS)).toEqual(["late"]);
  expect(troublesOf(job, fact(undefined), SLOT_MS + 5 * MINUTE_MS)).toEqual(["late"]);
});

test("a lost worker is told of, though the run was sent again and is over by the time it is judged", () => {
  const nowMs = SLOT_MS + 5 * MINUTE_MS;
  const lost = fact({ st: "running", ep: 1, startedAtMs: SLOT_MS, leaseUntilMs: SLOT_MS + MINUTE_MS });
  const over = fact({ st: "succeeded", ep: 1, startedAtMs: SLOT_MS, endedAtMs: nowMs });
  const judged = judgeHealth(job, unknownHealth(SLOT_MS), { nowMs, fresh: [lost], runs: [over] });
  expect(judged.flips.map(({ alert }) => alert)).toEqual([
    expect.objectContaining({
      kind: "stuck",
      topic: "notify",
      runId: "report~20270301T010000Z",
      reason:
        "its worker gave no sign of life for longer than its lease; the run was sent again, and is over",
    }),
  ]);
  expect(judged.stuck.map(({ slotKey }) => slotKey)).toEqual([over.slotKey]);
  expect(judged.after.state).toBe("up");
  const again = judgeHealth(job, judged.after, { nowMs, fresh: [lost, over], runs: [over] });
  expect([again.flips, again.stuck]).toEqual([[], []]);
});

test("health that was decided by an older one is refused", async () => {
  const table = memoryTable();
  const health = unknownHealth(0);
  const write = (seenRevision: number | undefined) =>
    table.write(writeHealth("report", { seenRevision, health, flips: [] }));
  expect(await write(undefined)).toMatchObject({ written: true, item: { rev: 1 } });
  expect((await write(undefined)).written).toBe(false);
  expect(await write(1)).toMatchObject({ written: true, item: { rev: 2 } });
  expect((await write(1)).written).toBe(false);
});
