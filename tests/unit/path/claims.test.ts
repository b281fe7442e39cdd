import { expect, test } from "vitest";
import { type Ask, claimAndSend, classOf } from "../../../lib/app/claims.ts";
import { release } from "../../../lib/app/lock-keeper.ts";
import type { Occurrence } from "../../../lib/core/identity.ts";
import { lockKey, runKey } from "../../../lib/core/items.ts";
import type { Trigger } from "../../../lib/core/message.ts";
import { claim } from "../../../lib/core/transitions.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, onLock, onRun, type Setup, setup } from "../../support/path.ts";

const NOW = "2026-12-31T23:59:59.999Z";
const NOW_MS = msOf(NOW);
const side = definition({ name: "side-by-side", schedules: ["* * * * *"], overlap: "allow" });
const single = definition({ name: "single", schedules: ["* * * * *"] });
const A = at("single", "2026-12-31T23:57:00Z");
const B = at("single", "2026-12-31T23:58:00Z");
const C = at("single", "2026-12-31T23:59:00Z");

const make = () => setup({ now: NOW, jobs: [side, single] });

type Wanted = Partial<Ask> & { readonly token?: string };

const ask = (env: Setup, occurrence: Occurrence, { token = "mine", ...changes }: Wanted = {}) => {
  const job = occurrence.subject === "single" ? single : side;
  const base = {
    job,
    occurrence,
    epoch: 1,
    trigger: "schedule",
    queuedAtMs: NOW_MS,
    recorded: false,
  } as const;
  return claimAndSend(env.deps, { ...base, ...changes }, token);
};

/** T1 of a run that has its record before it has the lock. */
const recorded = async (env: Setup, occurrence: Occurrence, trigger: Trigger = "manual") => {
  await env.table.write(claim({ occurrence, token: "recorder", nowMs: NOW_MS, trigger }));
};

const byHand = async (env: Setup, occurrence: Occurrence, token = "by-hand") => {
  await recorded(env, occurrence);
  return ask(env, occurrence, { token, trigger: "manual", recorded: true });
};

const setState = (env: Setup, occurrence: Occurrence, st: string, ep = 1) =>
  env.put(runKey(occurrence), { st, ep, trigger: "schedule" });

const holders = async (env: Setup) =>
  Object.keys((await env.lock("single")) ?? {}).filter((name) => name.startsWith("h#"));
const waiters = async (env: Setup) => {
  const texts = (await env.lock("single"))?.["w"];
  return texts instanceof Set ? [...texts] : [];
};
const sentSlots = (env: Setup) => env.sent.map(({ message }) => message.slotKey);

// A job that allows overlap: the claim makes the record.

test("a claim makes the record, then sends one message to the job's pool", async () => {
  const env = make();
  const slot = at("side-by-side", "2026-12-31T23:59:00Z");
  expect(await ask(env, slot)).toBe("claimed");
  expect(env.calls).toEqual(["write R#2026-12-31T23:59:00.000Z", "send 2026-12-31T23:59:00.000Z"]);
  expect(env.sent).toEqual([
    { pool: "default", message: { ...slot, epoch: 1, trigger: "schedule", queuedAtMs: NOW_MS } },
  ]);
});

test("of ten dispatchers at one slot one claims, and nine are counted as duplicates", async () => {
  const env = make();
  const slot = at("side-by-side", "2026-12-31T23:59:00Z");
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, (_, n) => ask(env, slot, { token: `d${n}` })),
  );
  expect(outcomes.filter((outcome) => outcome === "claimed")).toHaveLength(1);
  expect((await env.run(slot))?.["dup"]).toHaveProperty("size", 9);
  expect(env.sent).toHaveLength(1);
});

test.each(["side-by-side", "single"])(
  "sixteen duplicates of a %s slot are counted, further ones are not",
  async (subject) => {
    const env = make();
    const slot = at(subject, "2026-12-31T23:59:00Z");
    for (let n = 0; n < 20; n++) await ask(env, slot, { token: `d${n}` });
    expect((await env.run(slot))?.["dup"]).toHaveProperty("size", 16);
    expect(env.sent).toHaveLength(1);
  },
);

test.each(["side-by-side", "single"])(
  "the owner of a %s claim whose answer was lost sends again",
  async (subject) => {
    const env = make();
    const slot = at(subject, "2026-12-31T23:59:00Z");
    env.fail("write", "lost");
    await expect(ask(env, slot)).rejects.toThrow("lost");
    expect(await ask(env, slot)).toBe("claimed");
    expect(sentSlots(env)).toEqual([slot.slotKey]);
  },
);

test.each(["side-by-side", "single"])("a %s claim that the SDK repeats is no duplicate", async (subject) => {
  const env = make();
  const slot = at(subject, "2026-12-31T23:59:00Z");
  env.fail("write", "repeated");
  expect(await ask(env, slot)).toBe("claimed");
  expect(env.sent).toHaveLength(1);
  expect((await env.run(slot))?.["dup"]).toBeUndefined();
});

test("a run that is recorded already is sent as it is", async () => {
  const env = make();
  const slot = at("side-by-side", "2026-12-31T23:59:00Z");
  expect(await ask(env, slot, { trigger: "manual", recorded: true, input: { big: true } })).toBe("claimed");
  expect(env.calls).toEqual([`send ${slot.slotKey}`]);
  expect(env.lastSent()).not.toHaveProperty("input");
});

// A job with an overlap limit: the claim is the lock.

test("the claim of a locked job is one write on its lock, which makes no record", async () => {
  const env = make();
  expect(await ask(env, A, { input: { day: 1 } })).toBe("claimed");
  expect(env.calls).toEqual(["write L", `send ${A.slotKey}`]);
  expect(await env.lock("single")).toEqual({
    ...lockKey("single"),
    [`h#${A.slotKey}`]: { e: 1, o: "mine", at: NOW_MS, c: 0 },
    held: 1,
    top: A.slotKey,
  });
  expect(await env.run(A)).toBeUndefined();
  expect(env.lastSent()).toMatchObject({ input: { day: 1 }, trigger: "schedule" });
});

test("a claim of the same slot by somebody else is a duplicate, counted on the record to come", async () => {
  const env = make();
  await ask(env, A);
  expect(await ask(env, A, { token: "other" })).toBe("duplicate");
  const counter = await env.run(A);
  expect(counter?.["dup"]).toEqual(new Set(["other"]));
  expect(counter).not.toHaveProperty("st");
  expect(counter).toHaveProperty("expiresAtS");
  expect(env.codes()).toEqual(["duplicate-delivery"]);
});

test("a live slot that meets a live run is skipped, and says which run is in its way", async () => {
  const env = make();
  await ask(env, A);
  expect(await ask(env, B, { token: "other" })).toBe("skipped");
  expect(await env.run(B)).toMatchObject({
    st: "skipped",
    reason: "the run before it is not over",
    blockedBy: "single~20261231T235700Z",
  });
  expect(await holders(env)).toEqual([`h#${A.slotKey}`]);
  expect(env.sent).toHaveLength(1);
});

test("a skipped slot costs two writes and one read", async () => {
  const env = make();
  await ask(env, A);
  env.calls.length = 0;
  await ask(env, B, { token: "other" });
  expect(env.calls).toEqual(["write L", `get R#${A.slotKey}`, `write R#${B.slotKey}`]);
});

test.each(["queued", "running", "waiting", "parked"])(
  "a %s run keeps its place in the lock",
  async (state) => {
    const env = make();
    await ask(env, A);
    await setState(env, A, state);
    expect(await ask(env, B, { token: "other" })).toBe("skipped");
    expect(await holders(env)).toEqual([`h#${A.slotKey}`]);
  },
);

test.each(["succeeded", "dead", "skipped", "missed", "expired", "cancelled"])(
  "a holder that ended %s is released by the next claim",
  async (state) => {
    const env = make();
    await ask(env, A);
    await setState(env, A, state);
    expect(await ask(env, B, { token: "other" })).toBe("claimed");
    expect(await holders(env)).toEqual([`h#${B.slotKey}`]);
    expect((await env.lock("single"))?.["held"]).toBe(1);
  },
);

test("an entry of an older attempt set does not speak for a run that was retried", async () => {
  const env = make();
  await ask(env, A);
  await setState(env, A, "queued", 2);
  expect(await ask(env, B, { token: "other" })).toBe("claimed");
});

test("a slot delivered again after its run is over is a duplicate, though the lock is free", async () => {
  const env = make();
  await ask(env, A);
  await setState(env, A, "succeeded");
  await release(env.deps, { job: single, occurrence: A, epoch: 1 });
  expect(await ask(env, A, { token: "other" })).toBe("duplicate");
  expect(await env.run(A)).toMatchObject({ st: "succeeded", dup: new Set(["other"]) });
  expect(await holders(env)).toEqual([]);
  expect(env.sent).toHaveLength(1);
});

test("a slot older than the last claimed one claims when its record says that it has not run", async () => {
  const env = make();
  await ask(env, B);
  await setState(env, B, "succeeded");
  await release(env.deps, { job: single, occurrence: B, epoch: 1 });
  expect(await ask(env, A, { token: "late" })).toBe("claimed");
  expect(await env.lock("single")).toMatchObject({ top: B.slotKey, held: 1 });
  expect(env.calls.filter((call) => call.startsWith("get"))).toEqual([`get R#${A.slotKey}`]);
});

test("a retried run meets its own entry of the smaller epoch, gives it up and claims again", async () => {
  const env = make();
  await ask(env, A);
  await setState(env, A, "queued", 2);
  expect(await ask(env, A, { token: "retry", epoch: 2, recorded: true })).toBe("claimed");
  expect(await env.lock("single")).toMatchObject({
    held: 1,
    [`h#${A.slotKey}`]: { e: 2, o: "retry", c: 1 },
  });
});

test("a retried run removes its own waiter of the smaller epoch", async () => {
  const env = make();
  await byHand(env, A);
  await byHand(env, B, "other");
  await setState(env, B, "queued", 2);
  expect(await ask(env, B, { token: "retry", epoch: 2, recorded: true })).toBe("waiting");
  expect(await waiters(env)).toEqual([`1~${B.slotKey}~2`]);
});

test("a release of an older epoch does not touch the entry of a newer one", async () => {
  const env = make();
  await setState(env, A, "queued", 2);
  await ask(env, A, { epoch: 2, recorded: true });
  await release(env.deps, { job: single, occurrence: A, epoch: 1 });
  expect(await holders(env)).toEqual([`h#${A.slotKey}`]);
});

// Classes: live before by hand before backfill.

test("a run's class is live, by hand or backfill; a retried one counts as by hand", () => {
  expect(classOf({ trigger: "schedule", epoch: 1 })).toBe(0);
  expect(classOf({ trigger: "watchdog", epoch: 1 })).toBe(0);
  expect(classOf({ trigger: "manual", epoch: 1 })).toBe(1);
  expect(classOf({ trigger: "backfill", epoch: 1 })).toBe(2);
  expect(classOf({ trigger: "schedule", epoch: 2 })).toBe(1);
});

test("a live slot waits behind a run by hand; a second one is skipped as queue full", async () => {
  const env = make();
  await byHand(env, A);
  expect(await ask(env, B, { token: "live-1" })).toBe("waiting");
  expect(await waiters(env)).toEqual([`0~${B.slotKey}~1`]);
  expect(await ask(env, C, { token: "live-2" })).toBe("skipped");
  expect(await env.run(C)).toMatchObject({ reason: "queue full", blockedBy: "single~20261231T235700Z" });
});

test("runs by hand wait, however many, and are never skipped", async () => {
  const env = make();
  await ask(env, A);
  expect(await byHand(env, B, "one")).toBe("waiting");
  expect(await byHand(env, C, "two")).toBe("waiting");
  expect(await waiters(env)).toEqual([`1~${B.slotKey}~1`, `1~${C.slotKey}~1`]);
});

test("the lock goes to the live waiter first, then by hand, then backfill", async () => {
  const env = make();
  await byHand(env, A);
  await recorded(env, at("single", "2026-12-31T23:50:00Z"), "backfill");
  const backfill = at("single", "2026-12-31T23:50:00Z");
  await ask(env, backfill, { token: "backfill", trigger: "backfill", recorded: true });
  await byHand(env, B, "hand");
  await ask(env, C, { token: "live" });
  for (const occurrence of [A, C, B, backfill]) {
    await setState(env, occurrence, "succeeded");
    await release(env.deps, { job: single, occurrence, epoch: 1 });
  }
  expect(sentSlots(env)).toEqual([A, C, B, backfill].map(({ slotKey }) => slotKey));
  expect(env.sent.map(({ message }) => message.trigger)).toEqual([
    "manual",
    "schedule",
    "manual",
    "backfill",
  ]);
  expect(await env.lock("single")).toMatchObject({ held: 0 });
});

test("a live delivery of a slot that somebody asked for by hand takes the class of the record", async () => {
  const env = make();
  await byHand(env, A);
  await recorded(env, B);
  expect(await ask(env, B, { token: "live" })).toBe("waiting");
  expect(await waiters(env)).toEqual([`1~${B.slotKey}~1`]);
});

test("a live slot is never written over a run by hand of the same slot that has not got its lock yet", async () => {
  const env = make();
  await ask(env, A);
  await recorded(env, B);
  expect(await ask(env, B, { token: "live" })).toBe("duplicate");
  expect(await env.run(B)).toMatchObject({ st: "queued", trigger: "manual" });
});

test("a run waits under one spelling only", async () => {
  const env = make();
  await byHand(env, A);
  await byHand(env, B, "hand");
  expect(await ask(env, B, { token: "live" })).toBe("waiting");
  expect(await waiters(env)).toEqual([`1~${B.slotKey}~1`]);
});

// Nobody is forgotten.

test("a holder that leaves between the refused claim and the join does not leave the waiter behind", async () => {
  const env = make();
  await byHand(env, A);
  env.meanwhile("write", onLock, async () => undefined);
  env.meanwhile("write", onLock, async () => undefined);
  env.meanwhile("write", onLock, async () => {
    await setState(env, A, "succeeded");
    await release({ ...env.deps, table: env.table }, { job: single, occurrence: A, epoch: 1 });
  });
  expect(await ask(env, B, { token: "live" })).toBe("waiting");
  expect(await holders(env)).toEqual([`h#${B.slotKey}`]);
  expect(await waiters(env)).toEqual([]);
  expect(sentSlots(env)).toEqual([A.slotKey, B.slotKey]);
});

test("a waiter that is delivered again wakes itself where a crash left the lock free", async () => {
  const env = make();
  await env.put(lockKey("single"), { held: 0, w: new Set([`0~${B.slotKey}~1`]), top: A.slotKey });
  expect(await ask(env, B, { token: "again" })).toBe("waiting");
  expect(await holders(env)).toEqual([`h#${B.slotKey}`]);
  expect(sentSlots(env)).toEqual([B.slotKey]);
});

test("a waiter that is delivered again releases a holder whose run is over", async () => {
  const env = make();
  await byHand(env, A);
  await ask(env, B, { token: "live" });
  await setState(env, A, "succeeded");
  expect(await ask(env, B, { token: "again" })).toBe("waiting");
  expect(await holders(env)).toEqual([`h#${B.slotKey}`]);
  expect(sentSlots(env)).toEqual([A.slotKey, B.slotKey]);
});

test("where there is room but others wait, a newcomer joins, and the first of all gets the lock", async () => {
  const env = make();
  await recorded(env, A);
  await env.put(lockKey("single"), { held: 0, w: new Set([`1~${A.slotKey}~1`]) });
  expect(await ask(env, B, { token: "live" })).toBe("waiting");
  expect(await holders(env)).toEqual([`h#${B.slotKey}`]);
  expect(await waiters(env)).toEqual([`1~${A.slotKey}~1`]);
});

test("where there is room and as many live slots wait as may, the first gets the lock before another joins", async () => {
  const env = make();
  await env.put(lockKey("single"), { held: 0, w: new Set([`0~${A.slotKey}~1`]) });
  expect(await ask(env, B, { token: "live" })).toBe("skipped");
  expect(await env.run(B)).toMatchObject({ blockedBy: "single~20261231T235700Z" });
  expect(await holders(env)).toEqual([`h#${A.slotKey}`]);
  expect(await waiters(env)).toEqual([]);
});

test("a hand-over whose answer was lost and repeated still sends", async () => {
  const env = make();
  await env.put(lockKey("single"), { held: 0, w: new Set([`0~${B.slotKey}~1`]), top: A.slotKey });
  env.meanwhile("write", onLock, async () => undefined);
  env.fail("write", "repeated", onLock);
  expect(await ask(env, B, { token: "again" })).toBe("waiting");
  expect(sentSlots(env)).toEqual([B.slotKey]);
});

test("an entry of an older attempt set does not stand in its waiter's way for ever", async () => {
  const env = make();
  await env.put(lockKey("single"), {
    held: 0,
    w: new Set([`1~${A.slotKey}~2`]),
    [`h#${A.slotKey}`]: { e: 1, o: "old", at: 1, c: 0 },
  });
  await setState(env, A, "queued", 2);
  await release(env.deps, { job: single, occurrence: B, epoch: 1 });
  expect(await env.lock("single")).toMatchObject({ [`h#${A.slotKey}`]: { e: 2 } });
  expect(env.lastSent()).toMatchObject({ slotKey: A.slotKey, epoch: 2 });
});

test("a release removes a run that only waited, whatever its class, and wakes the next", async () => {
  const env = make();
  await byHand(env, A);
  await byHand(env, B, "hand");
  await release(env.deps, { job: single, occurrence: B, epoch: 1 });
  expect(await waiters(env)).toEqual([]);
  expect(await holders(env)).toEqual([`h#${A.slotKey}`]);
});

test("a release that finds its waiter turned into a holder meanwhile removes the holder", async () => {
  const env = make();
  await byHand(env, A);
  await byHand(env, B, "hand");
  env.meanwhile("write", onLock, async () => undefined);
  env.meanwhile("write", onLock, async () => {
    await release({ ...env.deps, table: env.table }, { job: single, occurrence: A, epoch: 1 });
  });
  await release(env.deps, { job: single, occurrence: B, epoch: 1 });
  expect(await holders(env)).toEqual([]);
  expect((await env.lock("single"))?.["held"]).toBe(0);
});

test("nobody gets the lock while the table is down: it fails closed", async () => {
  const env = make();
  env.fail("write", "down", onLock);
  await expect(ask(env, A)).rejects.toThrow("down");
  expect(env.sent).toEqual([]);
  env.fail("write", "down", onRun);
  await expect(ask(env, at("side-by-side", "2026-12-31T23:59:00Z"))).rejects.toThrow("down");
  expect(env.sent).toEqual([]);
});

test("each job has a lock of its own", async () => {
  const other = definition({ name: "other", schedules: ["* * * * *"] });
  const env = setup({ now: NOW, jobs: [single, other] });
  await ask(env, A);
  const occurrence = at("other", "2026-12-31T23:57:00Z");
  expect(await ask(env, occurrence, { job: other })).toBe("claimed");
});
