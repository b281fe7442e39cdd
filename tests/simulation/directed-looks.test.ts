import { expect, test } from "vitest";
import { look } from "../../lib/app/watchdog/looks.ts";
import { endOrphan } from "../../lib/app/watchdog/removed-jobs.ts";
import { definitionKey, lockKey, runKey } from "../../lib/core/items.ts";
import { definition } from "../support/definitions.ts";
import { at, msOf, onRun, setup } from "../support/path.ts";

/** Scripted looks of the watchdog: what it mends, what it leaves alone, and when it looks again. */

const SLOT = "2026-10-25T01:00:00Z";
const NOW = "2026-10-25T01:10:00Z";
const NOW_MS = msOf(NOW);
const side = definition({ name: "side", schedules: ["0 * * * *"], overlap: "allow" });
const single = definition({ name: "single", schedules: ["0 * * * *"] });
const occurrence = at("single", SLOT);
const holder = { [`h#${occurrence.slotKey}`]: { epoch: 1, owner: "x", sentAtMs: NOW_MS - 60_000, class: 0 } };

const make = () => {
  const env = setup({ now: NOW, jobs: [side, single] });
  return {
    env,
    notes: () => env.table.items().filter(({ pk }) => String(pk).startsWith("O#")).length,
  };
};

test.each([
  ["waits and is not due", { st: "waiting", ep: 1, fence: 1, nextAttemptAtMs: NOW_MS }],
  ["waits and is due", { st: "waiting", ep: 1, fence: 1, nextAttemptAtMs: NOW_MS - 120_000 }],
  ["runs", { st: "running", ep: 1, fence: 1, leaseUntilMs: NOW_MS }],
  ["is queued", { st: "queued", ep: 1 }],
])("a run that %s is looked at again", async (_what, run) => {
  const { env, notes } = make();
  const pointed = { job: side, occurrence: at("side", SLOT) };
  await env.put(runKey(pointed.occurrence), run);
  await look(env.deps, { ...pointed, run: await env.run(pointed.occurrence) });
  expect(notes()).toBe(1);
});

test.each([
  ["holds the lock", { held: 1, ...holder }],
  [
    "waits for the lock",
    {
      held: 1,
      "h#x": { epoch: 1, owner: "x", sentAtMs: 1, class: 0 },
      w: new Set([`0~${occurrence.slotKey}~1`]),
    },
  ],
])("a run that %s and has not started is looked at again", async (_what, lock) => {
  const { env, notes } = make();
  await env.put(lockKey("single"), lock);
  await look(env.deps, { job: single, occurrence, run: undefined });
  expect(notes()).toBe(1);
});

test("a retried run whose lock still lists the set before claims it for its own", async () => {
  const { env } = make();
  await env.put(lockKey("single"), { held: 1, ...holder });
  await env.put(runKey(occurrence), { st: "queued", ep: 2, trigger: "schedule" });
  await look(env.deps, { job: single, occurrence, run: await env.run(occurrence) });
  expect(await env.lock("single")).toMatchObject({ held: 1, [`h#${occurrence.slotKey}`]: { epoch: 2 } });
  expect(env.lastSent()).toMatchObject({ epoch: 2 });
});

const removed = async () => {
  const { env, notes } = make();
  await env.put(definitionKey("single"), {
    removedAtMs: NOW_MS - 3_600_000,
    definition: JSON.stringify(single),
  });
  await env.put(lockKey("single"), { held: 1, ...holder });
  const given = async (run: Parameters<typeof env.put>[1]) => {
    await env.put(runKey(occurrence), { ep: 1, fence: 1, ...run });
    return { occurrence, run: await env.run(occurrence) };
  };
  return { env, notes, given };
};

test("a removed job's parked run keeps its lock, and nobody looks at it again", async () => {
  const { env, notes, given } = await removed();
  await endOrphan(env.deps, await given({ st: "parked" }));
  expect(await env.lock("single")).toMatchObject({ held: 1 });
  expect(notes()).toBe(0);
});

test("a removed job's run that its worker renews while it is being ended keeps its lock", async () => {
  const { env, notes, given } = await removed();
  const orphan = await given({ st: "running", leaseUntilMs: NOW_MS - 60_000 });
  env.meanwhile("write", onRun, () => env.put(runKey(occurrence), { leaseUntilMs: NOW_MS + 60_000 }));
  await endOrphan(env.deps, orphan);
  expect(await env.run(occurrence)).toMatchObject({ st: "running" });
  expect(await env.lock("single")).toMatchObject({ held: 1 });
  expect(notes()).toBe(1);
});
