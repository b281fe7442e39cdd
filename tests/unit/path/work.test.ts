import { expect, test } from "vitest";
import { lockKey, runKey } from "../../../lib/core/items.ts";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, onRun, type Setup, type SetupOptions, setup } from "../../support/path.ts";

const SLOT = "2026-10-25T01:00:00Z";
const NOW = "2026-10-25T01:00:02Z";
const NOW_MS = msOf(NOW);
const LEASE_MS = 60_000;
const BOUND_MS = 30_000;
const TIMEOUT_MS = 5 * 60_000;

const side = definition({
  name: "side-by-side",
  schedules: ["0 * * * *"],
  overlap: "allow",
  input: { kind: "job's" },
});
const single = definition({ name: "single", schedules: ["0 * * * *"] });
const careful = definition({
  name: "careful",
  schedules: ["0 * * * *"],
  overlap: "allow",
  onUnknown: "park",
});
const fragile = definition({
  name: "fragile",
  schedules: ["0 * * * *"],
  retry: { ...single.retry, crashes: 1 },
});

const make = (options: Partial<SetupOptions> = {}) =>
  setup({ now: NOW, jobs: [side, single, careful, fragile], ...options });
const run = at("side-by-side", SLOT);

const messageOf = (subject: string, changes: Partial<RunMessage> = {}): RunMessage => ({
  ...at(subject, SLOT),
  epoch: 1,
  trigger: "schedule",
  queuedAtMs: NOW_MS - 1_000,
  ...changes,
});

/** The state of a run before the message comes. */
const given = (env: Setup, subject: string, attributes: Parameters<Setup["put"]>[1]) =>
  env.put(runKey(at(subject, SLOT)), { ep: 1, trigger: "schedule", ...attributes });

const runningTill = (leaseUntilMs: number) => ({
  st: "running",
  fence: 1,
  own: "lost worker",
  leaseUntilMs,
  startedAtMs: NOW_MS - 200_000,
  attemptAtMs: NOW_MS - 200_000,
});
const LAST_MS_OF_BOUND = NOW_MS - BOUND_MS;
const ENDED = LAST_MS_OF_BOUND - 1;

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

// Taking over from a worker that was lost.

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
