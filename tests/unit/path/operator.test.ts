import { expect, test } from "vitest";
import { runViewOf } from "../../../lib/app/inspect/run-view.ts";
import { makeOperator } from "../../../lib/app/operate/operator.ts";
import { claimAndSend } from "../../../lib/app/path/claims.ts";
import { CONTROL_KEY, lockKey, runKey } from "../../../lib/core/items.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, msOf, onLock, onRun, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-03-29T00:00:00Z";
const NOW = "2026-03-29T00:00:05Z";
const side = definition({ name: "side", schedules: ["0 * * * *"], overlap: "allow" });
const single = definition({ name: "single", schedules: ["0 * * * *"] });

const make = () => {
  const env = setup({ now: NOW, jobs: [side, single] });
  return { env, operator: makeOperator(env.deps) };
};
const pointedAt = (subject: "side" | "single", slotIso = SLOT) => ({
  job: subject === "side" ? side : single,
  occurrence: at(subject, slotIso),
});
const given = (env: Setup, subject: string, attributes: Parameters<Setup["put"]>[1]) =>
  env.put(runKey(at(subject, SLOT)), { ep: 1, fence: 3, own: "worker", trigger: "schedule", ...attributes });
const holderOf = (slotKey: string, e = 1) => ({
  held: 1,
  [`h#${slotKey}`]: { epoch: e, owner: "x", sentAtMs: 1, class: 0 },
});

// retry

test.each(["dead", "parked", "skipped", "missed", "expired", "cancelled"])(
  "a run that is %s is run again under its own identity, with new attempts and a fence that goes on",
  async (st) => {
    const { env, operator } = make();
    await given(env, "side", {
      st,
      attempts: 6,
      crashes: 2,
      error: { name: "E", message: "m" },
      badMonth: "2026-03",
    });
    await operator.retry(pointedAt("side"));
    expect(await env.run(at("side", SLOT))).toMatchObject({
      st: "queued",
      ep: 2,
      fence: 3,
      attempts: 0,
      crashes: 0,
    });
    expect(await env.run(at("side", SLOT))).not.toHaveProperty("badMonth");
    expect(env.lastSent()).toMatchObject({ ...at("side", SLOT), epoch: 2 });
    env.handle(() => ({ kind: "returned" }));
    await env.work(env.lastSent());
    expect(await env.run(at("side", SLOT))).toMatchObject({ st: "succeeded", ep: 2, fence: 4 });
    expect(env.lastAttempt().request.attempt).toBe(1);
  },
);

test.each([
  ["succeeded", "already_done"],
  ["queued", "refused"],
  ["running", "refused"],
  ["waiting", "refused"],
])("a run that is %s is not run again", async (st, code) => {
  const { env, operator } = make();
  await given(env, "side", { st });
  await expect(operator.retry(pointedAt("side"))).rejects.toMatchObject({ code });
  expect(await env.run(at("side", SLOT))).toMatchObject({ st, ep: 1 });
  expect(env.sent).toEqual([]);
});

test("two people who retry the same run retry it once", async () => {
  const { env, operator } = make();
  await given(env, "side", { st: "dead" });
  const both = await Promise.allSettled([
    operator.retry(pointedAt("side")),
    operator.retry(pointedAt("side")),
  ]);
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(env.sent).toHaveLength(1);
});

test("a retry whose answer was lost is recognised as its own", async () => {
  const { env, operator } = make();
  await given(env, "side", { st: "dead" });
  env.fail("write", "repeated", onRun);
  await operator.retry(pointedAt("side"));
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "queued", ep: 2 });
  expect(env.sent).toHaveLength(1);
});

test("a retry is noted before the record is opened, and the record before the lock is claimed", async () => {
  const { env, operator } = make();
  await given(env, "single", { st: "dead" });
  await operator.retry(pointedAt("single"));
  const steps = env.calls.filter((call) => !call.startsWith("get")).map((call) => call.slice(0, 7));
  expect(steps).toEqual(["write 2", "write R", "write L", "send 20"]);
});

test("the attempts of a retried run are told apart by their set", async () => {
  const { env, operator } = make();
  env.handle(() => ({ ...failure(), permanent: true }) as ReturnType<typeof failure>);
  await env.deliver(SLOT, ["side"]);
  await env.work(env.lastSent());
  await operator.retry(pointedAt("side"));
  await env.work(env.lastSent());
  const item = await env.run(at("side", SLOT));
  const attempts = item === undefined ? [] : runViewOf(item, undefined).attempts;
  expect(attempts.map(({ n, set }) => [n, set])).toEqual([
    [1, undefined],
    [1, 2],
  ]);
});

test("a retry is refused while sixty-four runs wait for the lock, unless the run is parked and has it", async () => {
  const { env, operator } = make();
  const line = Array.from({ length: 64 }, (_, n) => `1~${at("single", SLOT).slotKey}-run0${n + 10}~1`);
  await env.put(lockKey("single"), { ...holderOf(at("single", SLOT).slotKey), w: new Set(line) });
  await given(env, "single", { st: "dead" });
  await expect(operator.retry(pointedAt("single"))).rejects.toMatchObject({ code: "queue_full" });
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "dead", ep: 1 });
  await given(env, "single", { st: "parked" });
  await operator.retry(pointedAt("single"));
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "queued", ep: 2 });
});

test("what is left of an earlier attempt set can do nothing to a retried run", async () => {
  const { env, operator } = make();
  await env.deliver(SLOT, ["side"]);
  const zombie = env.work(env.lastSent());
  await env.settle();
  const attempt = env.lastAttempt();
  await env.put(runKey(at("side", SLOT)), { st: "dead" });
  await operator.retry(pointedAt("side"));
  attempt.end({ kind: "returned", result: "late" });
  expect(await zombie).toEqual({ kind: "return" });
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "queued", ep: 2, staleResults: 1 });
  const [old] = env.sent;
  if (old === undefined) throw new Error("nothing was sent");
  expect(await env.work(old.message)).toEqual({ kind: "delete" });
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "queued", ep: 2 });
});

test("a retried parked run gives up its old place in the lock and takes a new one", async () => {
  const { env, operator } = make();
  const { slotKey } = at("single", SLOT);
  await given(env, "single", { st: "parked" });
  await env.put(lockKey("single"), holderOf(slotKey));
  await operator.retry(pointedAt("single"));
  expect(await env.lock("single")).toMatchObject({ held: 1, [`h#${slotKey}`]: { epoch: 2, class: 1 } });
});

test("a retried run waits for the run that has the lock", async () => {
  const { env, operator } = make();
  const other = at("single", "2026-03-28T23:00:00Z").slotKey;
  await given(env, "single", { st: "dead" });
  await env.put(lockKey("single"), holderOf(other));
  await operator.retry(pointedAt("single"));
  expect(await env.lock("single")).toMatchObject({
    held: 1,
    w: new Set([`1~${at("single", SLOT).slotKey}~2`]),
  });
  expect(env.sent).toEqual([]);
});

// cancel

test.each(["queued", "waiting", "parked"])(
  "a %s run is cancelled at once, and gets a fence of its own",
  async (st) => {
    const { env, operator } = make();
    const { slotKey } = at("single", SLOT);
    await given(env, "single", { st });
    await env.put(lockKey("single"), holderOf(slotKey));
    expect(await operator.cancel(pointedAt("single"), "not today")).toBe("cancelled");
    expect(await env.run(at("single", SLOT))).toMatchObject({
      st: "cancelled",
      reason: "not today",
      fence: 4,
    });
    expect(await env.lock("single")).toMatchObject({ held: 0 });
  },
);

test("a running run is asked to stop, and nobody takes it from its holder", async () => {
  const { env, operator } = make();
  await given(env, "side", { st: "running", leaseUntilMs: msOf(NOW) + 60_000 });
  expect(await operator.cancel(pointedAt("side"), "not today")).toBe("stopping");
  expect(await env.run(at("side", SLOT))).toMatchObject({
    st: "running",
    own: "worker",
    fence: 3,
    cancelAtMs: msOf(NOW),
  });
  expect(await operator.cancel(pointedAt("side"), "again")).toBe("stopping");
});

test("a claimed run that has no record yet is cancelled, and its message starts nothing", async () => {
  const { env, operator } = make();
  await env.deliver(SLOT, ["single"]);
  expect(await operator.cancel(pointedAt("single"), "not today")).toBe("cancelled");
  expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: "cancelled", trigger: "schedule" });
  expect(env.attempts).toEqual([]);
});

test("cancelling a parked run lets the slot run that waits behind it", async () => {
  const { env, operator } = make();
  await given(env, "single", { st: "parked", trigger: "manual" });
  await env.put(lockKey("single"), {
    held: 1,
    [`h#${at("single", SLOT).slotKey}`]: { epoch: 1, owner: "x", sentAtMs: 1, class: 1 },
  });
  const next = at("single", "2026-03-29T01:00:00Z");
  const ask = {
    job: single,
    occurrence: next,
    epoch: 1,
    trigger: "schedule",
    queuedAtMs: 1,
    recorded: false,
  } as const;
  expect(await claimAndSend(env.deps, ask, "dispatcher")).toBe("waiting");
  await operator.cancel(pointedAt("single"), "looked at");
  expect(env.lastSent()).toMatchObject({ slotKey: next.slotKey });
});

test.each(["succeeded", "dead", "cancelled"])("a run that is %s is not cancelled", async (st) => {
  const { env, operator } = make();
  await given(env, "side", { st });
  await expect(operator.cancel(pointedAt("side"), "late")).rejects.toMatchObject({ retryable: false });
  expect(await env.run(at("side", SLOT))).toMatchObject({ st, fence: 3 });
});

test("a run that nobody asked for is not cancelled", async () => {
  const { env, operator } = make();
  await expect(operator.cancel(pointedAt("single"), "what")).rejects.toMatchObject({ code: "unknown_run" });
  expect(env.table.items()).toEqual([]);
});

test("a cancelled run is retried although the release of its lock comes late", async () => {
  const { env, operator } = make();
  const { slotKey } = at("single", SLOT);
  await given(env, "single", { st: "queued" });
  await env.put(lockKey("single"), holderOf(slotKey));
  env.fail("write", "down", onLock);
  await expect(operator.cancel(pointedAt("single"), "oops")).rejects.toThrow("down");
  await operator.retry(pointedAt("single"));
  expect(await env.lock("single")).toMatchObject({ held: 1, [`h#${slotKey}`]: { epoch: 2 } });
  expect(env.lastSent()).toMatchObject({ epoch: 2 });
});

// dismiss, pause, skip-next

test("a run that ended badly is taken off the list once, and stays in the history", async () => {
  const { env, operator } = make();
  env.handle(() => ({ ...failure(), permanent: true }) as ReturnType<typeof failure>);
  await env.deliver(SLOT, ["side"]);
  await env.work(env.lastSent());
  await operator.dismiss(pointedAt("side"));
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "dead", dismissedAtMs: msOf(NOW) });
  expect(await env.run(at("side", SLOT))).not.toHaveProperty("badKey");
  await expect(operator.dismiss(pointedAt("side"))).rejects.toMatchObject({ retryable: false });
});

test("a job whose pause has ended by itself is not paused, and cannot be resumed", async () => {
  const { env, operator } = make();
  await operator.pause(side, { reason: "holiday", untilMs: msOf(NOW) + 60_000 });
  await env.moveBy(60_000);
  await expect(operator.resume(side)).rejects.toMatchObject({ code: "not_paused" });
});

test("a pause, its end and a slot to skip are what the dispatcher reads", async () => {
  const { env, operator } = make();
  await operator.pause(side, { reason: "holiday" });
  expect(await env.deliver(SLOT, ["side"])).toEqual(["skipped"]);
  await operator.resume(side);
  await expect(operator.resume(side)).rejects.toMatchObject({ code: "not_paused" });
  expect(await operator.skipNext(side)).toBe(msOf("2026-03-29T01:00:00Z"));
  await env.moveTo("2026-03-29T02:00:01Z");
  expect(await env.deliver("2026-03-29T01:00:00Z", ["side"], "r1")).toEqual(["skipped"]);
  expect(await env.deliver("2026-03-29T02:00:00Z", ["side"], "r2")).toEqual(["claimed"]);
  expect(await env.table.get(CONTROL_KEY, { consistent: true })).not.toHaveProperty("p#side");
});

test("a run that starts just when it is cancelled is asked to stop", async () => {
  const { env, operator } = make();
  await env.deliver(SLOT, ["side"]);
  env.meanwhile("write", onRun, async () => {
    void env.work(env.lastSent());
    await env.settle();
  });
  expect(await operator.cancel(pointedAt("side"), "not needed")).toBe("stopping");
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "running", cancelAtMs: env.now() });
});

test("a run that ends just when it is asked to stop is not cancelled, and one that waits then is", async () => {
  const { env, operator } = make();
  await given(env, "side", { st: "running", leaseUntilMs: env.now() + 60_000 });
  env.meanwhile("write", onRun, () => given(env, "side", { st: "succeeded" }));
  await expect(operator.cancel(pointedAt("side"), "not needed")).rejects.toThrow("is succeeded");
  await given(env, "side", { st: "running" });
  env.meanwhile("write", onRun, () => given(env, "side", { st: "waiting" }));
  expect(await operator.cancel(pointedAt("side"), "not needed")).toBe("cancelled");
});

test("a run that is retried just when it is cancelled goes on: the cancel was meant for the set before", async () => {
  const { env, operator } = make();
  await given(env, "side", { st: "parked" });
  env.meanwhile("write", onRun, () => operator.retry(pointedAt("side")));
  await expect(operator.cancel(pointedAt("side"), "not needed")).rejects.toThrow("is queued");
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "queued", ep: 2 });
});

test("a claim of a job that allows overlap since can be cancelled, although it is in the lock alone", async () => {
  const { env, operator } = make();
  const { slotKey } = at("side", SLOT);
  await env.put(lockKey("side"), holderOf(slotKey));
  expect(await operator.cancel(pointedAt("side"), "not needed")).toBe("cancelled");
  expect(await env.run(at("side", SLOT))).toMatchObject({ st: "cancelled", reason: "not needed" });
  expect(await env.lock("side")).toMatchObject({ held: 0 });
});
