import { expect, test } from "vitest";
import { lockKey, runKey, sideKey } from "../../../lib/core/items.ts";
import type { Json } from "../../../lib/core/json.ts";
import type { AttemptEnd } from "../../../lib/ports/attempts.ts";
import { definition } from "../../support/definitions.ts";
import { itemBytes } from "../../support/item-size.ts";
import { at, failure, msOf, onRun, onSide, type Setup, setup } from "../../support/path.ts";

const SLOT = "2026-03-29T00:59:00Z";
const NOW = "2026-03-29T00:59:59.999Z";
const MINUTE_MS = 60_000;
const NAME = "a-job-whose-name-is-as-long-as-a-name-may-be-aaa";

const side = definition({ name: "side", schedules: ["* * * * *"], overlap: "allow" });
const single = definition({ name: "single", schedules: ["* * * * *"] });
const ladder = definition({
  name: "ladder",
  schedules: ["* * * * *"],
  overlap: "allow",
  retry: { ...side.retry, ladderMs: [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS] },
});
const longName = definition({ name: NAME, schedules: ["* * * * *"], overlap: "allow" });
const run = at("side", SLOT);

const make = (ends: readonly AttemptEnd[]) => {
  const env = setup({ now: NOW, jobs: [side, single, ladder, longName] });
  let next = 0;
  env.handle(() => ends[Math.min(next++, ends.length - 1)]);
  return env;
};

/** Works the message as its queue would: again after each wait, until it is deleted. Answers the waits. */
const workToEnd = async (env: Setup, subject = "side"): Promise<number[]> => {
  await env.deliver(SLOT, [subject]);
  const message = env.lastSent();
  const waits: number[] = [];
  for (;;) {
    const settlement = await env.work(message);
    if (settlement.kind === "delete") return waits;
    waits.push(settlement.afterMs ?? Number.NaN);
    await env.moveBy(settlement.afterMs ?? 0);
  }
};

const asideOf = async (env: Setup, subject: string, name: string): Promise<Json> => {
  const item = await env.table.get(sideKey(at(subject, SLOT), name), { consistent: true });
  expect(item).toHaveProperty("expiresAtS");
  return JSON.parse(String(item?.["value"]));
};

test("a handler that throws twice and then succeeds leaves one record with three attempts and growing waits", async () => {
  const env = make([failure(), failure("again"), { kind: "returned", result: { sent: 3 } }]);
  expect(await workToEnd(env)).toEqual([MINUTE_MS, 2 * MINUTE_MS]);
  const after = await env.run(run);
  expect(after).toMatchObject({ st: "succeeded", attempts: 2, fence: 3, result: { sent: 3 } });
  expect(after).not.toHaveProperty("error");
  expect(after?.["tries"]).toMatchObject([
    { n: 1, outcome: "threw", error: "no such host" },
    { n: 2, outcome: "threw", error: "again" },
    { n: 3, outcome: "returned" },
  ]);
  expect(env.table.items().filter(onRunItem)).toHaveLength(1);
  expect(env.sent).toHaveLength(1);
});

const onRunItem = (item: { readonly [name: string]: unknown }) => String(item["sk"]).startsWith("R#");

test("a handler that always throws ends dead after five retries, with its error, and its stack beside it", async () => {
  const env = make([failure()]);
  expect(await workToEnd(env)).toEqual([1, 2, 4, 8, 15].map((minutes) => minutes * MINUTE_MS));
  expect(env.attempts.map(({ request }) => request.attempt)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await env.run(run)).toMatchObject({
    st: "dead",
    attempts: 6,
    reason: "6 attempts failed",
    error: { name: "TypeError", message: "no such host" },
    sideError: 6,
    badMonth: "2026-03",
  });
  expect(await asideOf(env, "side", "error-6")).toEqual({
    name: "TypeError",
    message: "no such host",
    stack: "TypeError: no such host\n    at handler (job.ts:1:1)",
  });
});

test("a dead run is left alone by every later message", async () => {
  const env = make([failure()]);
  await workToEnd(env);
  expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(env.attempts).toHaveLength(6);
});

test("waits follow the job's ladder, whose last step repeats", async () => {
  const env = make([failure()]);
  expect(await workToEnd(env, "ladder")).toEqual([1, 5, 15, 15, 15].map((minutes) => minutes * MINUTE_MS));
});

test("a run that waits between attempts keeps its lock, and frees it at its end", async () => {
  const env = make([failure(), { kind: "returned" }]);
  await env.deliver(SLOT, ["single"]);
  const message = env.lastSent();
  expect(await env.work(message)).toEqual({ kind: "return", afterMs: MINUTE_MS });
  await env.moveTo("2026-03-29T01:00:30Z");
  expect(await env.deliver("2026-03-29T01:00:00Z", ["single"], "next")).toEqual(["skipped"]);
  await env.moveTo("2026-03-29T01:00:59.999Z");
  expect(await env.work(message)).toEqual({ kind: "delete" });
  expect(await env.lock("single")).toMatchObject({ held: 0 });
});

test("an error that the handler calls permanent ends the run at once", async () => {
  const env = make([{ ...failure("no such account"), permanent: true } as AttemptEnd]);
  expect(await workToEnd(env)).toEqual([]);
  expect(await env.run(run)).toMatchObject({
    st: "dead",
    attempts: 1,
    reason: "the handler said that no retry can help",
  });
});

test("a handler that names its wait gets it, and the attempt is counted", async () => {
  const env = make([{ ...failure(), retryAfterMs: 7 * MINUTE_MS } as AttemptEnd, { kind: "returned" }]);
  expect(await workToEnd(env)).toEqual([7 * MINUTE_MS]);
  expect(await env.run(run)).toMatchObject({ st: "succeeded", attempts: 1 });
});

test("a snooze puts the run off without counting an attempt", async () => {
  const env = make([{ kind: "snooze", waitMs: 3_600_000 }, { kind: "returned" }]);
  expect(await workToEnd(env)).toEqual([3_600_000]);
  expect(await env.run(run)).toMatchObject({ st: "succeeded", fence: 2 });
  expect(await env.run(run)).not.toHaveProperty("attempts");
  expect(env.attempts.map(({ request }) => request.attempt)).toEqual([1, 1]);
});

test.each([
  ["skip", "skipped"],
  ["cancel", "cancelled"],
] as const)("a handler's %s ends the run %s with its reason, and frees the lock", async (kind, state) => {
  const env = make([{ kind, reason: "nothing to do" }]);
  expect(await workToEnd(env, "single")).toEqual([]);
  expect(await env.run(at("single", SLOT))).toMatchObject({ st: state, reason: "nothing to do" });
  expect(await env.lock("single")).toMatchObject({ held: 0 });
});

test.each(["timed-out", "exited", "out-of-memory"] as const)(
  "an attempt that ended %s has failed, and is retried",
  async (kind) => {
    const env = make([{ kind, error: { name: "Ended", message: "from outside" } }, { kind: "returned" }]);
    expect(await workToEnd(env)).toEqual([MINUTE_MS]);
    expect(await env.run(run)).toMatchObject({ st: "succeeded", attempts: 1 });
  },
);

// What is too big for the record stands beside it.

test("a result of up to 256 bytes lies in the record, a bigger one beside it", async () => {
  const fits = make([{ kind: "returned", result: "x".repeat(254) }]);
  await workToEnd(fits);
  expect(await fits.run(run)).toMatchObject({ st: "succeeded", result: "x".repeat(254) });
  const big = make([{ kind: "returned", result: "x".repeat(255) }]);
  await workToEnd(big);
  const after = await big.run(run);
  expect(after).toMatchObject({ st: "succeeded", sideResult: 1 });
  expect(after).not.toHaveProperty("result");
  expect(await asideOf(big, "side", "result-1")).toBe("x".repeat(255));
});

test.each([
  ["a big result", onSide, { kind: "returned", result: "x".repeat(999) }, "succeeded"],
  ["a small result", onRun, { kind: "returned", result: 1 }, "succeeded"],
  ["a failure's stack", onSide, failure(), "waiting"],
  ["a failure", onRun, failure(), "waiting"],
] as const)("%s that the table does not take at once is written again", async (_what, where, end, state) => {
  const env = setup({ now: NOW, jobs: [side] });
  await env.deliver(SLOT, ["side"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  env.fail("write", "down", where);
  env.fail("write", "lost", where);
  env.lastAttempt().end(end);
  await visit;
  expect(await env.run(run)).toMatchObject({ st: state, fence: 1 });
  expect(env.codes()).not.toContain("stale-result");
});

test("a result that the table does not take in three tries is left to the next attempt", async () => {
  const env = setup({ now: NOW, jobs: [side] });
  await env.deliver(SLOT, ["side"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  env.fail("write", "down", onRun, 3);
  env.lastAttempt().end({ kind: "returned" });
  await expect(visit).rejects.toMatchObject({ retryable: true });
  expect(await env.run(run)).toMatchObject({ st: "running" });
});

// The price of a record.

const bytesOfRun = async (env: Setup, subject: string) => {
  const item = await env.run(at(subject, SLOT));
  return item === undefined ? 0 : itemBytes(item);
};

test("the record of a succeeded run, with an input and a result as big as fit, costs one write unit", async () => {
  const env = make([{ kind: "returned", result: "r".repeat(254) }]);
  await env.deliver(SLOT, [NAME]);
  const message = env.lastSent();
  await env.put(runKey(at(NAME, SLOT)), { input: "i".repeat(254) });
  expect(await env.work(message)).toEqual({ kind: "delete" });
  expect(await bytesOfRun(env, NAME)).toBeLessThanOrEqual(1_024);
});

test("the record of a run with five failed attempts costs one write unit", async () => {
  const env = make([
    failure("m".repeat(500)),
    failure("m".repeat(500)),
    failure("m".repeat(500)),
    failure("m".repeat(500)),
    failure("m".repeat(500)),
    { kind: "returned", result: "r".repeat(100) },
  ]);
  await workToEnd(env, NAME);
  expect(await env.run(at(NAME, SLOT))).toMatchObject({ st: "succeeded", attempts: 5 });
  expect(await bytesOfRun(env, NAME)).toBeLessThanOrEqual(1_024);
});

test("the record of a dead run costs one write unit", async () => {
  const env = make([failure("m".repeat(500))]);
  await workToEnd(env, NAME);
  expect(await bytesOfRun(env, NAME)).toBeLessThanOrEqual(1_024);
});

// What the handler may ask.

test("a handler can ask for the last success before its slot, wherever its result lies", async () => {
  for (const result of ["small", "b".repeat(999)]) {
    const env = make([{ kind: "returned", result }]);
    await workToEnd(env);
    await env.moveTo("2026-03-29T01:00:01Z");
    await env.put(runKey(at("side", "2026-03-29T00:59:30Z")), { st: "dead" });
    env.handle(() => undefined);
    await env.deliver("2026-03-29T01:00:00Z", ["side"], "next");
    const visit = env.work(env.lastSent());
    await env.settle();
    expect(await env.lastAttempt().services.previous()).toEqual({
      slotMs: msOf(SLOT),
      finishedAtMs: msOf(NOW),
      result,
    });
    env.lastAttempt().end({ kind: "returned" });
    await visit;
  }
});

test("a first run has no last success", async () => {
  const env = setup({ now: NOW, jobs: [side] });
  await env.deliver(SLOT, ["side"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  expect(await env.lastAttempt().services.previous()).toBeUndefined();
  env.lastAttempt().end({ kind: "returned" });
  await visit;
});

test("each attempt that is over is told once, the last one as the run's own end", async () => {
  const env = make([failure(), { kind: "returned", result: 7 }]);
  await workToEnd(env);
  expect(env.events).toMatchObject([
    { runId: "side~20260329T005900Z", attempt: 1, state: "waiting", outcome: "threw", latenessMs: 59_999 },
    { attempt: 2, state: "succeeded", outcome: "returned", latenessMs: 59_999, result: 7 },
  ]);
});

test("a lock that a crash left behind is freed by the next visit of the message", async () => {
  const env = make([{ kind: "returned" }]);
  await env.deliver(SLOT, ["single"]);
  const message = env.lastSent();
  env.fail("write", "down", ({ sk }) => sk === lockKey("single").sk);
  await expect(env.work(message)).rejects.toThrow("down");
  expect(await env.lock("single")).toMatchObject({ held: 1 });
  expect(await env.work(message)).toEqual({ kind: "delete" });
  expect(await env.lock("single")).toMatchObject({ held: 0 });
  expect(env.attempts).toHaveLength(1);
});

test("a handler that snoozes for ever ends dead after a thousand times", async () => {
  const env = setup({
    now: "2026-10-08T02:00:01Z",
    jobs: [definition({ name: "sleepy", overlap: "allow", schedules: ["0 2 * * *"] })],
  });
  env.handle(() => ({ kind: "snooze", waitMs: 1_000 }));
  await env.deliver("2026-10-08T02:00:00Z", ["sleepy"]);
  const message = env.lastSent();
  let snoozes = 0;
  while ((await env.work(message)).kind === "return") {
    snoozes += 1;
    await env.moveBy(1_000);
  }
  expect(snoozes).toBe(1_000);
  expect(await env.run(message)).toMatchObject({ st: "dead", error: { name: "EndlessRun" } });
});
