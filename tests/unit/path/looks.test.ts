import { expect, test } from "vitest";
import { retryRun } from "../../../lib/app/operate/operator.ts";
import { makeRunByHand } from "../../../lib/app/operate/run-by-hand.ts";
import { release } from "../../../lib/app/path/lock-keeper.ts";
import { lookAt } from "../../../lib/app/watchdog/looks.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { lockKey, runKey } from "../../../lib/core/items.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, msOf, onLock, type Setup, setup } from "../../support/path.ts";

const START = "2026-03-28T23:30:00Z";
const SLOT = "2026-03-29T00:00:00Z";
const SLOT_MS = msOf(SLOT);
const side = definition({ name: "side", schedules: ["0 0 * * *"], overlap: "allow" });
const single = definition({ name: "single", schedules: ["0 0 * * *"] });

/** A deployment of one job that the watchdog knows, at its slot. */
const atSlot = async (job: JobDefinition) => {
  const env = setup({ now: START, jobs: [job] });
  await watch(env.deps);
  await env.moveTo(SLOT);
  return env;
};

/** A pass each minute from the slot on, as AWS makes them; answers at which minutes something was sent. */
const passesUntil = async (env: Setup, untilMinute: number): Promise<number[]> => {
  const sentAt: number[] = [];
  for (;;) {
    const minute = Math.floor((env.now() - SLOT_MS) / 60_000) + 1;
    if (minute > untilMinute) return sentAt;
    await env.moveBy(SLOT_MS + minute * 60_000 + 1_000 - env.now());
    const before = env.sent.length;
    await watch(env.deps);
    for (let n = before; n < env.sent.length; n++) sentAt.push(minute);
  }
};

test.each(["side", "single"])(
  "a claim of %s that is not started is sent again, at distances that double to an hour",
  async (subject) => {
    const env = await atSlot(subject === "side" ? side : single);
    await env.deliver(SLOT, [subject]);
    const sentAt = (await passesUntil(env, 300)).filter((minute) => minute > 0);
    const distances = sentAt.slice(1).map((minute, index) => minute - (sentAt[index] ?? 0));
    expect(sentAt[0]).toBe(2);
    expect(distances.slice(0, 4).every((distance, index) => distance >= 4 * 2 ** index)).toBe(true);
    expect(distances.every((distance) => distance <= 62)).toBe(true);
    expect(sentAt.length).toBeLessThanOrEqual(10);
    expect(env.sent.every(({ message }) => message.slotKey === at(subject, SLOT).slotKey)).toBe(true);
  },
);

test.each(["side", "single"])(
  "a crash of %s between claim and send is found by the watchdog, whose message starts the run",
  async (subject) => {
    const env = await atSlot(subject === "side" ? side : single);
    env.fail("send", "down");
    await expect(env.deliver(SLOT, [subject])).rejects.toThrow("down");
    expect(await passesUntil(env, 3)).toEqual([2]);
    env.handle(() => ({ kind: "returned" }));
    await env.work(env.lastSent());
    expect(await env.run(at(subject, SLOT))).toMatchObject({ st: "succeeded" });
    expect(env.attempts).toHaveLength(1);
  },
);

test("a claimed slot that was delivered twice is not taken for missing", async () => {
  const careful = definition({
    name: "single",
    schedules: ["0 0 * * *"],
    misfire: { policy: "skip", max: 1 },
  });
  const env = await atSlot(careful);
  await env.deliver(SLOT, ["single"], "request-1");
  await env.deliver(SLOT, ["single"], "request-2");
  await passesUntil(env, 3);
  expect(await env.run(at("single", SLOT))).not.toHaveProperty("st");
  env.handle(() => ({ kind: "returned" }));
  await env.work(env.lastSent());
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "succeeded" });
});

test("a killed run is sent again when its lease is over by more than clocks differ, and not before", async () => {
  const env = await atSlot(side);
  await env.deliver(SLOT, ["side"]);
  await env.put(runKey(at("side", SLOT)), {
    st: "running",
    fence: 1,
    leaseUntilMs: msOf("2026-03-29T00:05:00Z"),
    attemptAtMs: SLOT_MS,
  });
  const [first] = await passesUntil(env, 10);
  expect(first).toBeGreaterThanOrEqual(5);
  expect(first).toBeLessThanOrEqual(7);
  env.handle(() => ({ kind: "returned" }));
  await env.work(env.lastSent());
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "succeeded", crashes: 1 });
});

test("a run under a live lease is left alone", async () => {
  const env = await atSlot(side);
  await env.deliver(SLOT, ["side"]);
  void env.work(env.lastSent());
  await env.settle();
  expect(await passesUntil(env, 30)).toEqual([]);
  expect(env.attempts).toHaveLength(1);
});

test("a run that waits is sent a minute after it was due when its message was lost", async () => {
  const env = await atSlot(side);
  await env.deliver(SLOT, ["side"]);
  env.handle(() => failure());
  await passesUntil(env, 2);
  await env.work(env.lastSent());
  expect(await env.run(at("side", SLOT))).toMatchObject({
    st: "waiting",
    nextAttemptAtMs: msOf("2026-03-29T00:03:01Z"),
  });
  // Its first note lies a few minutes ahead, from when it was queued.
  const [first] = (await passesUntil(env, 12)).filter((minute) => minute > 2);
  expect(first).toBeGreaterThanOrEqual(4);
  expect(first).toBeLessThanOrEqual(8);
});

test("a parked run is left to a person", async () => {
  const env = await atSlot(side);
  await env.put(runKey(at("side", SLOT)), { st: "parked", ep: 1, fence: 1 });
  expect(await passesUntil(env, 60)).toEqual([]);
});

test("a run by hand whose message was lost is sent again", async () => {
  const env = await atSlot(side);
  env.fail("send", "down");
  await expect(makeRunByHand(env.deps)({ job: side })).rejects.toThrow("down");
  env.handle(() => ({ kind: "returned" }));
  await env.deliver(SLOT, ["side"]);
  await env.work(env.lastSent());
  expect(await passesUntil(env, 4)).toHaveLength(1);
  await env.work(env.lastSent());
  expect(await env.run(env.lastSent())).toMatchObject({ st: "succeeded", trigger: "manual" });
});

test("a run by hand that crashed before it had its lock is claimed by the watchdog", async () => {
  const env = await atSlot(single);
  env.handle(() => ({ kind: "returned" }));
  await env.deliver(SLOT, ["single"]);
  await env.work(env.lastSent());
  env.fail("write", "down", onLock);
  await expect(makeRunByHand(env.deps)({ job: single })).rejects.toThrow("down");
  await passesUntil(env, 4);
  expect(env.sent).toHaveLength(2);
  expect(await env.lock("single")).toMatchObject({ [`h#${env.lastSent().slotKey}`]: { class: 1 } });
});

test("a run by hand that crashed before its record leaves nothing to mend", async () => {
  const env = await atSlot(side);
  await env.deliver(SLOT, ["side"]);
  env.handle(() => ({ kind: "returned" }));
  await env.work(env.lastSent());
  env.fail("write", "down", ({ sk }) => sk.startsWith("R#"));
  await expect(makeRunByHand(env.deps)({ job: side })).rejects.toThrow("down");
  expect(await passesUntil(env, 10)).toEqual([]);
});

test("a waiter that a crash left beside a free lock gets it from the watchdog", async () => {
  const env = await atSlot(single);
  const { slotKey } = at("single", SLOT);
  await env.put(lockKey("single"), { held: 0, w: new Set([`0~${slotKey}~1`]), top: slotKey });
  expect(await passesUntil(env, 3)).toEqual([2]);
  expect(await env.lock("single")).toMatchObject({ held: 1, [`h#${slotKey}`]: { epoch: 1 } });
});

test("a waiter whose wake was lost is sent again as the holder it is", async () => {
  const env = await atSlot(single);
  const byHand = at("single", "2026-03-28T23:59:00Z");
  await env.put(runKey(byHand), {
    st: "running",
    ep: 1,
    trigger: "manual",
    fence: 1,
    leaseUntilMs: SLOT_MS * 2,
  });
  await env.put(lockKey("single"), {
    held: 1,
    [`h#${byHand.slotKey}`]: { epoch: 1, owner: "x", sentAtMs: 1, class: 1 },
  });
  expect(await env.deliver(SLOT, ["single"])).toEqual(["waiting"]);
  await env.put(runKey(byHand), { st: "succeeded" });
  env.fail("send", "down");
  await expect(release(env.deps, { job: single, occurrence: byHand, epoch: 1 })).rejects.toThrow("down");
  expect(await passesUntil(env, 3)).toEqual([2]);
  expect(env.lastSent()).toMatchObject({ slotKey: at("single", SLOT).slotKey, epoch: 1 });
});

test("of two passes that want to send the same run again, one does", async () => {
  for (const subject of ["side", "single"]) {
    const env = await atSlot(subject === "side" ? side : single);
    await env.deliver(SLOT, [subject]);
    await env.moveTo("2026-03-29T00:02:00.001Z");
    await Promise.all([watch(env.deps), watch(env.deps)]);
    const again = env.notices.filter(
      ({ code, fields }) => code === "sent-again" && String(fields["runId"]).startsWith(`${subject}~`),
    );
    expect(again).toHaveLength(1);
  }
});

test("looks come in time wherever the clocks of their makers stand", async () => {
  for (const skewMs of [-29_999, 29_999]) {
    const env = await atSlot(side);
    env.skew(skewMs);
    env.fail("send", "down");
    await expect(makeRunByHand(env.deps)({ job: side })).rejects.toThrow("down");
    env.skew(0);
    const sentAt = await passesUntil(env, 5);
    expect(sentAt.filter((minute) => minute > 0).length).toBeGreaterThan(0);
    expect(env.sent.some(({ message }) => message.trigger === "manual")).toBe(true);
  }
});

test("a retried run whose message was lost is sent again, and its start deadline counts from the retry", async () => {
  const env = await atSlot(side);
  await env.put(runKey(at("side", SLOT)), { st: "missed", ep: 1, trigger: "watchdog", claimedAtMs: SLOT_MS });
  await env.moveTo("2026-04-02T00:00:00Z");
  env.fail("send", "down");
  const pointed = { job: side, occurrence: at("side", SLOT) };
  await expect(retryRun(env.deps, pointed)).rejects.toThrow("down");
  await env.moveBy(3 * 60_000);
  env.handle(() => ({ kind: "returned" }));
  await watch(env.deps);
  for (const { message } of env.sent) await env.work(message);
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "succeeded", ep: 2 });
});

test("a note for the past is put ahead of what the running pass has read", async () => {
  const env = await atSlot(side);
  await lookAt(env.deps, at("side", SLOT), { atMs: SLOT_MS - 1 });
  expect(env.table.items().map(({ sk }) => sk)).toContain(
    "2026-03-29T00:00:05.000Z#side~2026-03-29T00:00:00.000Z",
  );
});

// A job that a deploy removes.

const removedAt = async (env: Setup, minute: number) => {
  const after = setup({ now: START, jobs: [], table: env.table, name: "new" });
  await after.moveBy(SLOT_MS + minute * 60_000 - after.now());
  return after;
};

test.each(["side", "single"])(
  "a queued run of %s whose job is removed is cancelled, and says why",
  async (subject) => {
    const env = await atSlot(subject === "side" ? side : single);
    await env.deliver(SLOT, [subject]);
    await passesUntil(env, 3);
    const after = await removedAt(env, 4);
    await passesUntil(after, 20);
    expect(await env.run(at(subject, SLOT))).toMatchObject({ st: "cancelled", reason: "job removed" });
    if (subject === "single") expect(await env.lock("single")).toMatchObject({ held: 0 });
    expect(after.sent).toEqual([]);
  },
);

test("a run of a removed job goes on while its worker lives, and is cancelled when it is lost", async () => {
  const env = await atSlot(side);
  await env.deliver(SLOT, ["side"]);
  const running = { st: "running", fence: 1, leaseUntilMs: msOf("2026-03-29T00:20:00Z") };
  await env.put(runKey(at("side", SLOT)), running);
  const after = await removedAt(env, 1);
  await passesUntil(after, 20);
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "running" });
  await passesUntil(after, 24);
  const ended = { st: "cancelled", reason: "job removed", fence: 2 };
  expect(await env.run(at("side", SLOT))).toMatchObject(ended);
});

test.each(["side", "single"])(
  "a run of %s that nobody had noted when its job was removed is found and cancelled",
  async (subject) => {
    const env = await atSlot(subject === "side" ? side : single);
    await env.deliver(SLOT, [subject]);
    const after = await removedAt(env, 1);
    await passesUntil(after, 10);
    expect(await env.run(at(subject, SLOT))).toMatchObject({ st: "cancelled", reason: "job removed" });
  },
);

test("a run is left alone in the moments after a deploy, when older code may not know its job yet", async () => {
  const env = await atSlot(side);
  await env.deliver(SLOT, ["side"]);
  const older = await removedAt(env, 1);
  await passesUntil(older, 3);
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "queued" });
  const newer = setup({ now: START, jobs: [side], table: env.table, name: "newer" });
  await newer.moveTo("2026-03-29T00:03:30Z");
  await passesUntil(newer, 20);
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "queued" });
});

test("a lost run of a removed job that must not repeat is parked, and keeps its lock", async () => {
  const env = await atSlot({ ...single, onUnknown: "park" });
  await env.deliver(SLOT, ["single"]);
  await env.put(runKey(at("single", SLOT)), {
    st: "running",
    ep: 1,
    fence: 1,
    trigger: "schedule",
    leaseUntilMs: SLOT_MS,
  });
  const after = await removedAt(env, 1);
  await passesUntil(after, 20);
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "parked", fence: 2 });
  expect(await env.lock("single")).toMatchObject({ held: 1 });
});

test("a crash between the end of a removed job's run and its release is mended by the repeated pass", async () => {
  const env = await atSlot(single);
  await env.deliver(SLOT, ["single"]);
  const after = await removedAt(env, 1);
  after.fail("write", "down", onLock);
  await passesUntil(after, 10).catch(() => undefined);
  expect(await env.lock("single")).toMatchObject({ held: 1 });
  await passesUntil(after, 20);
  expect(await env.lock("single")).toMatchObject({ held: 0 });
});

test("a run that is over is not touched when its job is removed", async () => {
  const env = await atSlot(side);
  await env.deliver(SLOT, ["side"]);
  env.handle(() => ({ kind: "returned" }));
  await env.work(env.lastSent());
  await passesUntil(await removedAt(env, 1), 10);
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "succeeded" });
});
