import { expect, test } from "vitest";
import { lockKey } from "../../../lib/core/items.ts";
import { at, onRun } from "../../support/path.ts";
import {
  BOUND_MS,
  careful,
  ENDED,
  given,
  LAST_MS_OF_BOUND,
  LEASE_MS,
  make,
  messageOf,
  NOW_MS,
  run,
  runningTill,
  SLOT,
  TIMEOUT_MS,
} from "./work-setup.ts";

test("a lost attempt is taken over only when its lease is over by more than clocks may differ", async () => {
  const env = make();
  await given(env, "side-by-side", runningTill(LAST_MS_OF_BOUND));
  expect(await env.work(messageOf("side-by-side"))).toEqual({
    kind: "return",
    afterMs: TIMEOUT_MS + LEASE_MS + BOUND_MS,
  });
  expect(env.attempts).toEqual([]);
  const later = make();
  later.handle(() => ({ kind: "returned" }));
  await given(later, "side-by-side", runningTill(ENDED));
  expect(await later.work(messageOf("side-by-side"))).toEqual({ kind: "delete" });
  expect(await later.run(run)).toMatchObject({ st: "succeeded", fence: 2, crashes: 1 });
});

test("a crash is counted apart from failed attempts, and told among the tries", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await given(env, "side-by-side", { ...runningTill(ENDED), attempts: 2 });
  await env.work(messageOf("side-by-side"));
  expect(env.lastAttempt().request.attempt).toBe(4);
  const after = await env.run(run);
  expect(after).toMatchObject({ attempts: 2, crashes: 1 });
  expect(after?.["tries"]).toMatchObject([
    { n: 3, outcome: "lost", startMs: NOW_MS - 200_000, tookMs: 200_000 - (NOW_MS - ENDED) },
    { n: 4, outcome: "returned" },
  ]);
});

test("a renewal between the look and the take-over keeps the run with its worker", async () => {
  const env = make();
  await given(env, "side-by-side", runningTill(ENDED));
  env.pass("write", onRun);
  env.meanwhile("write", onRun, () => given(env, "side-by-side", { leaseUntilMs: NOW_MS + 1 }));
  expect(await env.work(messageOf("side-by-side"))).toMatchObject({ kind: "return" });
  expect(await env.run(run)).toMatchObject({ own: "lost worker", fence: 1 });
});

test("a take-over whose answer was lost is recognised as its own", async () => {
  const env = make();
  env.handle(() => ({ kind: "returned" }));
  await given(env, "side-by-side", runningTill(ENDED));
  env.pass("write", onRun);
  env.fail("write", "repeated", onRun);
  expect(await env.work(messageOf("side-by-side"))).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded", fence: 2, crashes: 1 });
});

test("a run that lost its worker once too often is dead, and frees its lock", async () => {
  const env = make();
  const slotKey = at("fragile", SLOT).slotKey;
  await env.put(lockKey("fragile"), {
    held: 1,
    [`h#${slotKey}`]: { epoch: 1, owner: "x", sentAtMs: 1, class: 0 },
  });
  await given(env, "fragile", { ...runningTill(ENDED), crashes: 1 });
  expect(await env.work(messageOf("fragile"))).toEqual({ kind: "delete" });
  expect(await env.run(at("fragile", SLOT))).toMatchObject({
    st: "dead",
    reason: "the worker was lost 2 times",
    error: { name: "WorkerLost" },
    badMonth: "2026-10",
  });
  expect(env.codes()).toContain("dead");
  expect(await env.lock("fragile")).toMatchObject({ held: 0 });
  expect(env.attempts).toEqual([]);
});

test("a lost run that must not repeat is parked for a person, and its message is deleted", async () => {
  const env = make();
  await given(env, "careful", { ...runningTill(ENDED), crashes: 9 });
  expect(await env.work(messageOf("careful"))).toEqual({ kind: "delete" });
  expect(await env.run(at("careful", SLOT))).toMatchObject({ st: "parked", fence: 2, badMonth: "2026-10" });
  expect(env.codes()).toContain("parked");
  expect(env.attempts).toEqual([]);
});

const EXIT = { name: "ProcessExit", message: "the handler called process.exit(0)" };
const CUT_OFF = [
  { kind: "exited", error: EXIT },
  { kind: "out-of-memory", error: { name: "OutOfMemory", message: "no memory" } },
] as const;

test.each(CUT_OFF)(
  "a handler that is cut off ($kind) and must not be repeated is left to a person, with its lock",
  async (end) => {
    const env = make({ jobs: [{ ...careful, overlap: "skip" }] });
    env.handle(() => end);
    await env.deliver(SLOT, ["careful"]);
    expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
    const parked = await env.run(at("careful", SLOT));
    expect(parked).toMatchObject({ st: "parked", error: end.error, badMonth: "2026-10", attempts: 1 });
    expect(parked?.["reason"]).toContain("nobody knows how far the attempt came");
    expect(parked).not.toHaveProperty("leaseUntilMs");
    expect(env.events.at(-1)).toMatchObject({ state: "parked", outcome: end.kind });
    expect(await env.lock("careful")).toMatchObject({ held: 1 });
  },
);

test("what throws, or is over its timeout, has failed: it is retried although it must not be repeated unknown", async () => {
  for (const kind of ["threw", "timed-out"] as const) {
    const env = make();
    env.handle(() => ({ kind, error: EXIT, permanent: false }));
    await env.deliver(SLOT, ["careful"]);
    await env.work(env.lastSent());
    expect(await env.run(at("careful", SLOT))).toMatchObject({ st: "waiting" });
  }
});

test("a handler that is cut off after its run was asked to stop leaves it cancelled", async () => {
  const env = make();
  env.handle(undefined);
  await env.deliver(SLOT, ["careful"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  await given(env, "careful", { cancelAtMs: NOW_MS });
  env.lastAttempt().end(CUT_OFF[0]);
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(at("careful", SLOT))).toMatchObject({ st: "cancelled" });
});

test("a parking whose answer was lost is known as its own, and one that came too late is stale", async () => {
  const env = make();
  env.handle(() => CUT_OFF[0]);
  await env.deliver(SLOT, ["careful"]);
  env.pass("write", onRun);
  env.fail("write", "repeated", onRun);
  expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(env.codes()).not.toContain("stale-result");
  const late = make();
  late.handle(() => CUT_OFF[0]);
  await late.deliver(SLOT, ["careful"]);
  late.pass("write", onRun);
  late.meanwhile("write", onRun, () => given(late, "careful", { fence: 2, own: "next" }));
  expect(await late.work(late.lastSent())).toEqual({ kind: "return" });
  expect(late.codes()).toContain("stale-result");
});

test("a lost run that was asked to stop is cancelled", async () => {
  const env = make();
  await given(env, "careful", { ...runningTill(ENDED), cancelAtMs: 5 });
  expect(await env.work(messageOf("careful"))).toEqual({ kind: "delete" });
  expect(await env.run(at("careful", SLOT))).toMatchObject({ st: "cancelled", reason: "cancelled" });
});

test("a killed run blocks no later slot: it is taken over, ends, and the next one runs", async () => {
  const env = make();
  await env.deliver(SLOT, ["single"]);
  const first = env.lastSent();
  void env.work(first);
  await env.settle();
  expect(env.attempts).toHaveLength(1);
  // From here on the worker is gone: another process sees the same table two minutes later.
  const other = make({ table: env.table, name: "other" });
  await other.moveTo("2026-10-25T01:02:00Z");
  other.handle(() => ({ kind: "returned" }));
  expect(await other.work(first)).toEqual({ kind: "delete" });
  await other.moveTo("2026-10-25T02:00:01Z");
  expect(await other.deliver("2026-10-25T02:00:00Z", ["single"], "next")).toEqual(["claimed"]);
});
