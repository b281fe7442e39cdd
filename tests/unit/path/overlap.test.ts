import { expect, test } from "vitest";
import { claimAndSend } from "../../../lib/app/path/claims.ts";
import { release } from "../../../lib/app/path/lock-keeper.ts";
import type { Occurrence } from "../../../lib/core/identity.ts";
import { lockKey, runKey } from "../../../lib/core/items.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { handOver, releaseHolder } from "../../../lib/core/runs/lock.ts";
import type { Trigger } from "../../../lib/core/runs/message.ts";
import { claim } from "../../../lib/core/runs/transitions.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, onLock, onRun, type Setup, setup } from "../../support/path.ts";

const NOW = "2026-10-25T00:59:59.999Z";
const NOW_MS = msOf(NOW);
const jobWith = (overlap: JobDefinition["overlap"]) =>
  definition({ name: "job", schedules: ["* * * * *"], overlap });
const queueing = jobWith("queue");
const replacing = jobWith("replace");
const slot = (minute: number): Occurrence =>
  at("job", `2026-10-25T00:${String(minute).padStart(2, "0")}:00Z`);

/** One job under test, and the steps of its slots. */
const make = (job: JobDefinition) => {
  const env = setup({ now: NOW, jobs: [job] });
  const ask = (occurrence: Occurrence, changes: { trigger?: Trigger; recorded?: boolean } = {}) =>
    claimAndSend(
      env.deps,
      { job, occurrence, epoch: 1, trigger: "schedule", queuedAtMs: NOW_MS, recorded: false, ...changes },
      `claimant of ${occurrence.slotKey}`,
    );
  return {
    env,
    live: (minute: number) => ask(slot(minute)),
    byHand: async (minute: number) => {
      const occurrence = slot(minute);
      await env.table.write(claim({ occurrence, token: "person", nowMs: NOW_MS, trigger: "manual" }));
      return ask(occurrence, { trigger: "manual", recorded: true });
    },
    set: (minute: number, st: string) =>
      env.put(runKey(slot(minute)), { st, ep: 1, fence: 1, trigger: "schedule", leaseUntilMs: NOW_MS + 1 }),
    end: async (minute: number, st = "succeeded") => {
      await env.put(runKey(slot(minute)), { st, ep: 1 });
      await release(env.deps, { job, occurrence: slot(minute), epoch: 1 });
    },
    state: async (minute: number) => (await env.run(slot(minute)))?.["st"],
  };
};

const minutesOf = (slotKeys: readonly string[]) => slotKeys.map((slotKey) => Number(slotKey.slice(14, 16)));
const sent = (env: Setup) => minutesOf(env.sent.map(({ message }) => message.slotKey));
const holding = async (env: Setup) =>
  minutesOf(
    Object.keys((await env.lock("job")) ?? {})
      .filter((name) => name.startsWith("h#"))
      .map((name) => name.slice(2)),
  ).sort((a, b) => a - b);
const waiting = async (env: Setup) => {
  const texts = (await env.lock("job"))?.["w"];
  return minutesOf(texts instanceof Set ? [...texts].map((text) => text.slice(2)) : []).sort((a, b) => a - b);
};

// queue

test("with queue, slots run one after another in their order, whatever order they come in", async () => {
  const { env, live, end } = make(queueing);
  for (const minute of [1, 4, 2, 3]) await live(minute);
  expect(await holding(env)).toEqual([1]);
  for (const minute of [1, 2, 3]) await end(minute);
  expect(sent(env)).toEqual([1, 2, 3, 4]);
});

test("with queue, sixteen live slots wait, and the next is skipped as queue full", async () => {
  const { env, live, state } = make(queueing);
  expect(await live(0)).toBe("claimed");
  for (let minute = 1; minute <= 16; minute++) expect(await live(minute)).toBe("waiting");
  expect(await live(17)).toBe("skipped");
  expect(await env.run(slot(17))).toMatchObject({ reason: "queue full", blockedBy: "job~20261025T000000Z" });
  expect(await state(16)).toBeUndefined();
  expect(await waiting(env)).toHaveLength(16);
});

test("with queue, runs by hand are neither counted nor refused, and let live slots go first", async () => {
  const { env, live, byHand, end } = make(queueing);
  await live(0);
  for (let minute = 1; minute <= 16; minute++) await live(minute);
  expect(await byHand(30)).toBe("waiting");
  for (let minute = 0; minute <= 16; minute++) await end(minute);
  expect(sent(env).slice(-2)).toEqual([16, 30]);
});

test("with queue, a slot that ran before does not queue again", async () => {
  const { env, live, end } = make(queueing);
  await live(1);
  await end(1);
  await live(2);
  expect(await live(1)).toBe("duplicate");
  expect(await waiting(env)).toEqual([]);
});

test("a queued slot costs two refused claims, two reads, a join and a hand-over", async () => {
  const { env, live, end } = make(queueing);
  await live(1);
  env.calls.length = 0;
  await live(2);
  expect(env.calls.map((call) => call.slice(0, 7))).toEqual([
    "write L",
    "get R#2",
    "write L",
    "get R#2",
    "write L",
  ]);
  env.calls.length = 0;
  await end(1);
  expect(env.calls.map((call) => call.slice(0, 7))).toEqual(["write L", "write L", "send 20"]);
});

// max

test("with a maximum of two, two run at once and a third is skipped, or waits", async () => {
  const skipping = make(jobWith({ max: 2, whenFull: "skip" }));
  expect([await skipping.live(1), await skipping.live(2), await skipping.live(3)]).toEqual([
    "claimed",
    "claimed",
    "skipped",
  ]);
  const queued = make(jobWith({ max: 2, whenFull: "queue" }));
  expect([await queued.live(1), await queued.live(2), await queued.live(3)]).toEqual([
    "claimed",
    "claimed",
    "waiting",
  ]);
  await queued.end(1);
  expect(await holding(queued.env)).toEqual([2, 3]);
});

test("with a maximum of two, a live slot that finds one live run and one by hand waits", async () => {
  const { env, live, byHand } = make(jobWith({ max: 2, whenFull: "skip" }));
  await byHand(1);
  await live(2);
  expect(await live(3)).toBe("waiting");
  expect(await holding(env)).toEqual([1, 2]);
});

test("with a maximum of two, both places are given when two waiters find them free", async () => {
  const { env, live } = make(jobWith({ max: 2, whenFull: "queue" }));
  const waiters = [1, 2, 3].map((minute) => `0~${slot(minute).slotKey}~1`);
  await env.put(lockKey("job"), { held: 0, w: new Set(waiters) });
  await live(3);
  expect(await holding(env)).toEqual([1, 2]);
  expect(await waiting(env)).toEqual([3]);
  expect(sent(env)).toEqual([1, 2]);
});

// replace

test("with replace, a newer slot asks the running one to stop, and starts when it is over, not beside it", async () => {
  const { env, live, set, end } = make(replacing);
  await live(1);
  await set(1, "running");
  expect(await live(2)).toBe("waiting");
  expect(await env.run(slot(1))).toMatchObject({ st: "running", cancelAtMs: NOW_MS });
  expect(sent(env)).toEqual([1]);
  await end(1, "cancelled");
  expect(sent(env)).toEqual([1, 2]);
});

test.each(["absent", "queued", "waiting"])(
  "with replace, a newer slot ends an older one that is %s at once",
  async (st) => {
    const { env, live, set, state } = make(replacing);
    await live(1);
    if (st !== "absent") await set(1, st);
    expect(await live(2)).toBe("claimed");
    expect(await env.run(slot(1))).toMatchObject({ st: "cancelled", reason: "replaced" });
    expect(await holding(env)).toEqual([2]);
    expect(await state(2)).toBeUndefined();
  },
);

test("with replace, of the slots that wait only the newest stays", async () => {
  const { env, live, set } = make(replacing);
  await live(1);
  await set(1, "running");
  await live(2);
  await live(3);
  expect(await waiting(env)).toEqual([3]);
  expect(await env.run(slot(2))).toMatchObject({ st: "cancelled", reason: "replaced" });
});

test("with replace, an older slot that comes late is skipped, and stops nothing", async () => {
  const { env, live, set, state } = make(replacing);
  await live(2);
  await set(2, "running");
  expect(await live(1)).toBe("skipped");
  expect(await env.run(slot(1))).toMatchObject({ reason: "a newer occurrence is there already" });
  expect(await env.run(slot(2))).not.toHaveProperty("cancelAtMs");
  expect(await state(2)).toBe("running");
});

test("with replace, a parked run stays, and the newer slot waits for a person", async () => {
  const { env, live, set, state } = make(replacing);
  await live(1);
  await set(1, "parked");
  expect(await live(2)).toBe("waiting");
  expect(await state(1)).toBe("parked");
  expect(await holding(env)).toEqual([1]);
});

test("with replace, live slots and runs by hand do not replace each other", async () => {
  const first = make(replacing);
  await first.byHand(1);
  await first.set(1, "running");
  expect(await first.live(2)).toBe("waiting");
  expect(await first.env.run(slot(1))).not.toHaveProperty("cancelAtMs");
  const second = make(replacing);
  await second.live(1);
  await second.set(1, "running");
  expect(await second.byHand(2)).toBe("waiting");
  expect(await second.env.run(slot(1))).not.toHaveProperty("cancelAtMs");
});

test("with replace, a live slot is not skipped for a newer run by hand", async () => {
  const { live, byHand, set, state } = make(replacing);
  await byHand(2);
  await set(2, "running");
  expect(await live(1)).toBe("waiting");
  expect(await state(1)).toBeUndefined();
});

test("with replace, runs by hand that wait stay, beside the one live slot that does", async () => {
  const { env, live, byHand, set, state } = make(replacing);
  await live(1);
  await set(1, "running");
  await byHand(2);
  await live(3);
  await byHand(4);
  await live(5);
  expect(await waiting(env)).toEqual([2, 4, 5]);
  expect([await state(2), await state(3), await state(4)]).toEqual(["queued", "cancelled", "queued"]);
});

test("with replace, a waiter that got the lock meanwhile is not ended as replaced", async () => {
  const { env, live, set, state } = make(replacing);
  await live(1);
  await set(1, "running");
  await live(2);
  // The third slot has joined; before it ends the second, a process that saw only that one hands it the lock.
  const second = { slotKey: slot(2).slotKey, epoch: 1, class: 0, text: `0~${slot(2).slotKey}~1` } as const;
  env.meanwhile(
    "write",
    ({ sk }) => sk === runKey(slot(2)).sk,
    async () => {
      await set(1, "cancelled");
      await env.table.write(releaseHolder(slot(1), 1));
      await env.table.write(handOver("job", second, { token: "other", nowMs: NOW_MS, max: 1 }));
      await set(2, "running");
    },
  );
  await live(3);
  expect(await state(2)).toBe("running");
  expect(await holding(env)).toEqual([2]);
  expect(await waiting(env)).toEqual([3]);
});

test("with replace, a duplicate of a run that is over replaces nothing", async () => {
  const { env, live, end, set } = make(replacing);
  await live(3);
  await end(3);
  await live(2);
  await set(2, "running");
  expect(await live(3)).toBe("duplicate");
  expect(await env.run(slot(2))).not.toHaveProperty("cancelAtMs");
});

test.each([queueing, replacing])("whatever the policy, the lock fails closed", async (job) => {
  const { env, live } = make(job);
  await live(1);
  env.fail("write", "down", onLock);
  await expect(live(2)).rejects.toThrow("down");
  env.fail("get", "down", onRun);
  await expect(live(2)).rejects.toThrow("down");
  expect(sent(env)).toEqual([1]);
});
