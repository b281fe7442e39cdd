import { expect, test } from "vitest";
import { judgeDeadLetter } from "../../../lib/app/path/dead-letters.ts";
import { lockKey, runKey } from "../../../lib/core/items.ts";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, onLock, onRun, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-10-25T00:30:00Z";
const NOW = "2026-10-25T01:30:00Z";
const NOW_MS = msOf(NOW);
const BOUND_MS = 30_000;

const retry = { retries: 2, firstWaitMs: 60_000, factor: 2, maxWaitMs: 60_000, jitter: 0, crashes: 1 };
const single = definition({ name: "single", schedules: ["30 * * * *"], retry });
const careful = definition({ name: "careful", schedules: ["30 * * * *"], retry, onUnknown: "park" });
const slotKey = at("single", SLOT).slotKey;

const make = () => setup({ now: NOW, jobs: [single, careful] });

const letterOf = (subject = "single", changes: Partial<RunMessage> = {}): RunMessage => ({
  ...at(subject, SLOT),
  epoch: 1,
  trigger: "schedule",
  queuedAtMs: msOf(SLOT),
  ...changes,
});

/** A run in a state, whose claim is still in its job's lock. */
const given = async (env: Setup, subject: string, attributes: Parameters<Setup["put"]>[1]) => {
  await env.put(lockKey(subject), {
    held: 1,
    [`h#${slotKey}`]: { epoch: 1, owner: "x", sentAtMs: 1, class: 0 },
  });
  await env.put(runKey(at(subject, SLOT)), { ep: 1, trigger: "schedule", ...attributes });
};
const held = async (env: Setup, subject = "single") => (await env.lock(subject))?.["held"];

test("a letter for a claim that was never started is sent again, as it was", async () => {
  const env = make();
  const letter = letterOf("single");
  expect(await judgeDeadLetter(env.deps, letter)).toEqual({ kind: "delete" });
  expect(env.sent).toEqual([{ pool: "default", message: letter }]);
  expect(env.table.items()).toEqual([]);
});

test("a letter that cannot be sent again is not deleted", async () => {
  const env = make();
  env.fail("send", "down");
  await expect(judgeDeadLetter(env.deps, letterOf())).rejects.toThrow("down");
});

test("what was never started by its start deadline is expired, and frees its lock", async () => {
  const env = make();
  await env.put(lockKey("single"), {
    held: 1,
    [`h#${slotKey}`]: { epoch: 1, owner: "x", sentAtMs: 1, class: 0 },
  });
  await env.moveTo("2026-10-26T00:30:00Z");
  await judgeDeadLetter(env.deps, letterOf());
  expect(env.sent).toHaveLength(1);
  await env.moveBy(1);
  expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "delete" });
  expect(env.sent).toHaveLength(1);
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "expired", reason: "never started" });
  expect(await held(env)).toBe(0);
});

test("a run by hand of an old slot is judged by when it was asked for", async () => {
  const env = make();
  await env.moveTo("2026-10-28T00:00:00Z");
  const letter = letterOf("single", { trigger: "manual", queuedAtMs: msOf("2026-10-27T23:00:00Z") });
  expect(await judgeDeadLetter(env.deps, letter)).toEqual({ kind: "delete" });
  expect(env.sent).toHaveLength(1);
});

test("a run that started between the look and the mark is not expired", async () => {
  const env = make();
  await env.moveTo("2026-10-27T00:00:00Z");
  env.meanwhile("write", onRun, () =>
    given(env, "single", { st: "running", fence: 1, leaseUntilMs: NOW_MS * 2 }),
  );
  expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "return" });
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "running" });
});

test.each(["succeeded", "dead", "skipped", "missed", "expired", "cancelled"])(
  "a letter for a run that ended %s is dropped, and frees the lock it left",
  async (st) => {
    const env = make();
    await given(env, "single", { st, fence: 1 });
    expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "delete" });
    expect(await env.run(at("single", SLOT))).toMatchObject({ st, fence: 1 });
    expect(await held(env)).toBe(0);
    expect(env.sent).toEqual([]);
  },
);

test("a letter for a parked run is dropped, and the run keeps its lock", async () => {
  const env = make();
  await given(env, "careful", { st: "parked", fence: 1 });
  expect(await judgeDeadLetter(env.deps, letterOf("careful"))).toEqual({ kind: "delete" });
  expect(await held(env, "careful")).toBe(1);
  expect(env.sent).toEqual([]);
});

test("a letter of an earlier attempt set is dropped", async () => {
  const env = make();
  await given(env, "single", { st: "queued", ep: 2, fence: 1 });
  expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "delete" });
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "queued" });
  expect(env.sent).toEqual([]);
});

test.each([0, 1])(
  "a letter for a run under a live lease, lost %i times before, is looked at again later",
  async (crashes) => {
    const env = make();
    await given(env, "single", { st: "running", fence: 1, crashes, leaseUntilMs: NOW_MS - BOUND_MS });
    expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "return" });
    expect(env.sent).toEqual([]);
    expect(await env.run(at("single", SLOT))).toMatchObject({ st: "running" });
  },
);

test.each([
  ["attempts", { st: "waiting", fence: 2, attempts: 2, nextAttemptAtMs: NOW_MS }],
  ["crashes", { st: "running", fence: 1, leaseUntilMs: NOW_MS - BOUND_MS - 1 }],
])("a run with %s left is sent again, and nothing is written on it", async (_what, attributes) => {
  const env = make();
  await given(env, "single", attributes);
  const before = await env.run(at("single", SLOT));
  expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "delete" });
  expect(env.sent).toHaveLength(1);
  expect(await env.run(at("single", SLOT))).toEqual(before);
});

test.each([
  ["crashes", { st: "running", fence: 3, crashes: 1, leaseUntilMs: NOW_MS - BOUND_MS - 1 }],
  ["attempts", { st: "waiting", fence: 3, attempts: 3, nextAttemptAtMs: NOW_MS }],
])(
  "a run whose %s are used up is dead, gets a fence of its own, and frees its lock",
  async (_what, attributes) => {
    const env = make();
    await given(env, "single", attributes);
    expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "delete" });
    expect(await env.run(at("single", SLOT))).toMatchObject({ st: "dead", fence: 4, badMonth: "2026-10" });
    expect(env.codes()).toEqual(["dead"]);
    expect(await held(env)).toBe(0);
  },
);

test("a lost run that must not repeat is parked instead, and keeps its lock", async () => {
  const env = make();
  await given(env, "careful", { st: "running", fence: 3, crashes: 1, leaseUntilMs: NOW_MS - BOUND_MS - 1 });
  expect(await judgeDeadLetter(env.deps, letterOf("careful"))).toEqual({ kind: "delete" });
  expect(await env.run(at("careful", SLOT))).toMatchObject({ st: "parked", fence: 4 });
  expect(await held(env, "careful")).toBe(1);
});

test("a run that succeeds between the look and the mark stays succeeded", async () => {
  const env = make();
  await given(env, "single", { st: "running", fence: 3, crashes: 1, leaseUntilMs: NOW_MS - BOUND_MS - 1 });
  env.meanwhile("write", onRun, () => env.put(runKey(at("single", SLOT)), { st: "succeeded" }));
  expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "return" });
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "succeeded", fence: 3 });
});

test("a mark whose answer was lost is recognised as its own, and the lock is freed", async () => {
  const env = make();
  await given(env, "single", { st: "running", fence: 3, crashes: 1, leaseUntilMs: NOW_MS - BOUND_MS - 1 });
  env.fail("write", "repeated", onRun);
  expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "delete" });
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "dead", fence: 4 });
  expect(await held(env)).toBe(0);
});

test("a crash between the mark and the release is mended by the letter's next visit", async () => {
  const env = make();
  await given(env, "single", { st: "running", fence: 3, crashes: 1, leaseUntilMs: NOW_MS - BOUND_MS - 1 });
  env.fail("write", "down", onLock);
  await expect(judgeDeadLetter(env.deps, letterOf())).rejects.toThrow("down");
  expect(await judgeDeadLetter(env.deps, letterOf())).toEqual({ kind: "delete" });
  expect(await held(env)).toBe(0);
});

test("a letter for a job that this deployment does not know stays", async () => {
  const env = make();
  expect(await judgeDeadLetter(env.deps, letterOf("tomorrow"))).toEqual({ kind: "return" });
  expect(env.codes()).toEqual(["unknown-job"]);
});

test("a letter for a removed job goes when its run is over", async () => {
  const env = make();
  await env.put(runKey(at("yesterday", SLOT)), { st: "cancelled", ep: 1, reason: "job removed" });
  expect(await judgeDeadLetter(env.deps, letterOf("yesterday"))).toEqual({ kind: "delete" });
});
