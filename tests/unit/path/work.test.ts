import { expect, test } from "vitest";
import { lockKey } from "../../../lib/core/items.ts";
import { at, msOf, onRun } from "../../support/path.ts";
import {
  BOUND_MS,
  given,
  LEASE_MS,
  make,
  messageOf,
  NOW_MS,
  run,
  runningTill,
  SLOT,
  TIMEOUT_MS,
} from "./work-setup.ts";

test("a queued run is started under a lease of its own, before its handler runs", async () => {
  const env = make();
  await env.deliver(SLOT, ["side-by-side"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  expect(env.lastAttempt().request).toEqual({
    job: "side-by-side",
    runId: "side-by-side~20261025T010000Z",
    slotMs: msOf(SLOT),
    attempt: 1,
    trigger: "schedule",
    input: { kind: "job's" },
    timeoutMs: TIMEOUT_MS,
  });
  expect(await env.run(run)).toMatchObject({
    st: "running",
    fence: 1,
    leaseUntilMs: NOW_MS + LEASE_MS,
    startedAtMs: NOW_MS,
    input: { kind: "job's" },
  });
  env.lastAttempt().end({ kind: "returned", result: { deleted: 7 } });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded", endedAtMs: NOW_MS, result: { deleted: 7 } });
});

test("a succeeded run costs three writes and one send, with a lock four, and one read", async () => {
  for (const [subject, writes] of [
    ["side-by-side", 3],
    ["single", 4],
  ] as const) {
    const env = make();
    env.handle(() => ({ kind: "returned" }));
    await env.deliver(SLOT, [subject]);
    await env.work(env.lastSent());
    const count = (port: string) => env.calls.filter((call) => call.startsWith(port)).length;
    expect([count("write"), count("send"), count("get ")]).toEqual([writes, 1, 1]);
    expect(await env.run(at(subject, SLOT))).toMatchObject({ st: "succeeded" });
  }
});

test("the start of a locked job makes its record from the message", async () => {
  const env = make();
  const visit = env.work(messageOf("single", { trigger: "watchdog" }));
  await env.settle();
  expect(await env.run(at("single", SLOT))).toMatchObject({
    st: "running",
    ep: 1,
    trigger: "watchdog",
    claimedAtMs: NOW_MS - 1_000,
  });
  env.lastAttempt().end({ kind: "returned" });
  await visit;
});

test("a start whose answer was lost is recognised as its own", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await given(env, "side-by-side", { st: "queued" });
  env.fail("write", "repeated");
  expect(await env.work(messageOf("side-by-side"))).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded", fence: 1 });
});

test("one hundred copies of a message run the handler once", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await env.deliver(SLOT, ["side-by-side"]);
  await Promise.all(Array.from({ length: 100 }, () => env.work(env.lastSent())));
  expect(env.attempts).toHaveLength(1);
});

test("a process that slept past its lease while it asked for it does not enter the handler", async () => {
  for (const [sleptMs, attempts] of [
    [LEASE_MS - 1, 1],
    [LEASE_MS, 0],
  ] as const) {
    const env = make();
    await given(env, "side-by-side", { st: "queued" });
    env.meanwhile("write", onRun, async () => env.skew(sleptMs));
    env.handle(() => ({ kind: "returned" }));
    await env.work(messageOf("side-by-side"));
    expect([sleptMs, env.attempts.length]).toEqual([sleptMs, attempts]);
  }
});

// A start that is refused: what the message is worth.

test.each(["succeeded", "dead", "skipped", "missed", "expired", "cancelled"])(
  "a message for a run that ended %s is deleted, and frees the lock that the run may have left",
  async (st) => {
    const env = make();
    await given(env, "single", { st, fence: 1 });
    await env.put(lockKey("single"), {
      held: 1,
      [`h#${at("single", SLOT).slotKey}`]: { epoch: 1, owner: "dispatcher", sentAtMs: 1, class: 0 },
    });
    expect(await env.work(messageOf("single"))).toEqual({ kind: "delete" });
    expect(await env.lock("single")).toEqual({ ...lockKey("single"), held: 0 });
    expect(env.attempts).toEqual([]);
  },
);

test("a message of an earlier attempt set is deleted, and frees the entry of that set only", async () => {
  const env = make();
  const slotKey = at("single", SLOT).slotKey;
  await given(env, "single", { st: "queued", ep: 2 });
  await env.put(lockKey("single"), {
    held: 1,
    [`h#${slotKey}`]: { epoch: 2, owner: "x", sentAtMs: 1, class: 1 },
  });
  expect(await env.work(messageOf("single"))).toEqual({ kind: "delete" });
  expect(await env.lock("single")).toMatchObject({ held: 1, [`h#${slotKey}`]: { epoch: 2 } });
  expect(env.attempts).toEqual([]);
});

test("a message for a parked run is deleted, and the run keeps its lock", async () => {
  const env = make();
  const slotKey = at("single", SLOT).slotKey;
  await given(env, "single", { st: "parked", fence: 1 });
  await env.put(lockKey("single"), {
    held: 1,
    [`h#${slotKey}`]: { epoch: 1, owner: "x", sentAtMs: 1, class: 0 },
  });
  expect(await env.work(messageOf("single"))).toEqual({ kind: "delete" });
  expect(await env.lock("single")).toMatchObject({ held: 1 });
});

test("a message for a run that waits comes back when it is due, and not before", async () => {
  const env = make();
  await given(env, "side-by-side", { st: "waiting", fence: 1, nextAttemptAtMs: NOW_MS + 1 });
  expect(await env.work(messageOf("side-by-side"))).toEqual({ kind: "return", afterMs: 1 });
  env.handle(() => ({ kind: "returned" }));
  await env.moveBy(1);
  expect(await env.work(messageOf("side-by-side"))).toEqual({ kind: "delete" });
});

test("a message for a run that a live worker holds comes back once per attempt, and starts nothing", async () => {
  const env = make();
  await given(env, "side-by-side", runningTill(NOW_MS + 1));
  expect(await env.work(messageOf("side-by-side"))).toEqual({
    kind: "return",
    afterMs: TIMEOUT_MS + LEASE_MS + BOUND_MS,
  });
  expect(env.attempts).toEqual([]);
});

test("a message whose record is gone is deleted with an alarm", async () => {
  const env = make();
  expect(await env.work(messageOf("side-by-side"))).toEqual({ kind: "delete" });
  expect(env.codes()).toEqual(["record-gone"]);
});

test("a message of a later attempt set never makes the record of a locked job", async () => {
  const env = make();
  expect(await env.work(messageOf("single", { epoch: 2 }))).toEqual({ kind: "delete" });
  expect(await env.run(at("single", SLOT))).toBeUndefined();
  expect(env.codes()).toEqual(["record-gone"]);
});

test("a message for a job that this deployment does not know is looked at again in a minute", async () => {
  const env = make();
  expect(await env.work(messageOf("tomorrow"))).toEqual({ kind: "return", afterMs: 60_000 });
  expect(env.calls).toEqual([]);
});

test("a message goes unanswered while the table is down", async () => {
  const env = make();
  env.fail("write", "down");
  await expect(env.work(messageOf("side-by-side"))).rejects.toThrow("down");
});

// The start deadline.

test("a run that was not started by its start deadline is expired, and not run", async () => {
  const env = make();
  await env.deliver(SLOT, ["side-by-side", "single"]);
  const [first, second] = env.sent.map(({ message }) => message);
  await env.moveTo("2026-10-26T01:00:00.001Z");
  for (const message of [first, second]) {
    if (message === undefined) throw new Error("nothing was sent");
    expect(await env.work(message)).toEqual({ kind: "delete" });
    expect(await env.run(message)).toMatchObject({
      st: "expired",
      reason: "not started by its start deadline",
    });
  }
  expect(await env.lock("single")).toMatchObject({ held: 0 });
  expect(env.attempts).toEqual([]);
});

test("the last millisecond of the start deadline still starts", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await env.deliver(SLOT, ["side-by-side"]);
  await env.moveTo("2026-10-26T01:00:00Z");
  expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded" });
});

test.each([
  [
    "a run by hand of an old slot",
    messageOf("side-by-side", { trigger: "manual", queuedAtMs: msOf("2026-10-27T01:00:00Z") }),
  ],
  ["a retried run", messageOf("side-by-side", { epoch: 2, queuedAtMs: msOf("2026-10-27T01:00:00Z") })],
])("the start deadline of %s counts from when somebody asked for it", async (_what, message) => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await given(env, "side-by-side", { st: "queued", ep: message.epoch });
  await env.moveTo("2026-10-27T01:00:05Z");
  expect(await env.work(message)).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded" });
});

test("a run that was started in time goes on after its start deadline", async () => {
  const env = make();
  await given(env, "side-by-side", { st: "waiting", fence: 1, nextAttemptAtMs: NOW_MS });
  await env.moveTo("2026-10-27T01:00:00Z");
  env.handle(() => ({ kind: "returned" }));
  expect(await env.work(messageOf("side-by-side"))).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded" });
});
