import { expect, test } from "vitest";
import { classOf } from "../../../lib/app/path/claims.ts";
import { release } from "../../../lib/app/path/lock-keeper.ts";
import { lockKey } from "../../../lib/core/items.ts";
import {
  A,
  ask,
  B,
  byHand,
  C,
  holders,
  make,
  recorded,
  sentSlots,
  setState,
  single,
  waiters,
} from "../../support/claims.ts";
import { at, onLock } from "../../support/path.ts";

// Classes: live before by hand before backfill.

test("a run's class is live, by hand or backfill; a retried one counts as by hand", () => {
  expect(classOf({ job: single, trigger: "schedule", epoch: 1 })).toBe(0);
  expect(classOf({ job: single, trigger: "watchdog", epoch: 1 })).toBe(0);
  expect(classOf({ job: single, trigger: "manual", epoch: 1 })).toBe(1);
  expect(classOf({ job: single, trigger: "backfill", epoch: 1 })).toBe(2);
  expect(classOf({ job: single, trigger: "schedule", epoch: 2 })).toBe(1);
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
  env.pass("write", onLock);
  env.pass("write", onLock);
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
  env.pass("write", onLock);
  env.fail("write", "repeated", onLock);
  expect(await ask(env, B, { token: "again" })).toBe("waiting");
  expect(sentSlots(env)).toEqual([B.slotKey]);
});

test("an entry of an older attempt set does not stand in its waiter's way for ever", async () => {
  const env = make();
  await env.put(lockKey("single"), {
    held: 0,
    w: new Set([`1~${A.slotKey}~2`]),
    [`h#${A.slotKey}`]: { epoch: 1, owner: "old", sentAtMs: 1, class: 0 },
  });
  await setState(env, A, "queued", 2);
  await release(env.deps, { job: single, occurrence: B, epoch: 1 });
  expect(await env.lock("single")).toMatchObject({ [`h#${A.slotKey}`]: { epoch: 2 } });
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
  env.pass("write", onLock);
  env.meanwhile("write", onLock, async () => {
    await release({ ...env.deps, table: env.table }, { job: single, occurrence: A, epoch: 1 });
  });
  await release(env.deps, { job: single, occurrence: B, epoch: 1 });
  expect(await holders(env)).toEqual([]);
  expect((await env.lock("single"))?.["held"]).toBe(0);
});
