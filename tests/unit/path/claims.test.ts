import { expect, test } from "vitest";
import { release } from "../../../lib/app/path/lock-keeper.ts";
import { lockKey } from "../../../lib/core/items.ts";
import {
  A,
  ask,
  B,
  byHand,
  holders,
  make,
  NOW,
  NOW_MS,
  sentSlots,
  setState,
  single,
  waiters,
} from "../../support/claims.ts";
import { definition } from "../../support/definitions.ts";
import { at, onLock, onRun, setup } from "../../support/path.ts";

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
  expect(await ask(env, slot, { trigger: "manual", recorded: true })).toBe("claimed");
  expect(env.calls).toEqual([`send ${slot.slotKey}`]);
});

// A job with an overlap limit: the claim is the lock.

test("the claim of a locked job is one write on its lock, which makes no record", async () => {
  const env = make();
  expect(await ask(env, A)).toBe("claimed");
  expect(env.calls).toEqual(["write L", `send ${A.slotKey}`]);
  expect(await env.lock("single")).toEqual({
    ...lockKey("single"),
    [`h#${A.slotKey}`]: { epoch: 1, owner: "mine", sentAtMs: NOW_MS, class: 0 },
    held: 1,
    top: A.slotKey,
  });
  expect(await env.run(A)).toBeUndefined();
  expect(env.lastSent()).toMatchObject({ ...A, trigger: "schedule" });
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
    [`h#${A.slotKey}`]: { epoch: 2, owner: "retry", class: 1 },
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
