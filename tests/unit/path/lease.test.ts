import { expect, test } from "vitest";
import { runKey } from "../../../lib/core/items.ts";
import { askToStop } from "../../../lib/core/runs/marks.ts";
import type { Settlement } from "../../../lib/ports/run-queue.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, msOf, onRun, type Setup, setup } from "../../support/path.ts";

const SLOT = "2028-02-29T00:00:00Z";
const NOW_MS = msOf(SLOT);
const job = definition({ name: "long", schedules: ["0 * * * *"], overlap: "allow", timeoutMs: 900_000 });
const run = at("long", SLOT);
const LOST: Settlement = { kind: "return", afterMs: 90_000 };

/** A run whose handler is at work, under a lease of 60 seconds from the slot on. */
const started = async () => {
  const env = setup({ now: SLOT, jobs: [job] });
  await env.deliver(SLOT, ["long"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  return { env, visit };
};

const leaseEnd = async (env: Setup) => Number((await env.run(run))?.["leaseUntilMs"]) - NOW_MS;

test("a lease is renewed at half its time, and not before", async () => {
  const { env } = await started();
  await env.moveBy(29_999);
  expect(await leaseEnd(env)).toBe(60_000);
  await env.moveBy(1);
  expect(await leaseEnd(env)).toBe(90_000);
  await env.moveBy(30_000);
  expect(await leaseEnd(env)).toBe(120_000);
});

test("a run of five minutes holds its lease of one minute all the way", async () => {
  const { env, visit } = await started();
  await env.moveBy(299_999);
  expect(env.lastAttempt().stops).toEqual([]);
  expect(await leaseEnd(env)).toBeGreaterThan(300_000);
  env.lastAttempt().end({ kind: "returned" });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded", fence: 1 });
});

test("an attempt that is over renews nothing any more", async () => {
  const { env, visit } = await started();
  env.lastAttempt().end({ kind: "returned" });
  await visit;
  env.calls.length = 0;
  await env.moveBy(600_000);
  expect(env.calls).toEqual([]);
  expect(env.lastAttempt().stops).toEqual([]);
});

test("renewals without an answer keep the old end, and the handler is stopped five seconds before it", async () => {
  const { env, visit } = await started();
  env.fail("write", "lost", onRun, 10);
  await env.moveBy(54_999);
  expect(env.lastAttempt().stops).toEqual([]);
  await env.moveBy(1);
  expect(env.lastAttempt().stops).toEqual(["the lease could not be renewed"]);
  expect(await visit).toEqual(LOST);
  expect(await env.run(run)).toMatchObject({ st: "running" });
});

test("a renewal that was not answered is asked again soon, and its answer keeps the handler", async () => {
  const { env } = await started();
  env.fail("write", "down", onRun);
  await env.moveBy(35_999);
  expect(await leaseEnd(env)).toBe(60_000);
  await env.moveBy(1);
  expect(await leaseEnd(env)).toBe(96_000);
  await env.moveBy(60_000);
  expect(env.lastAttempt().stops).toEqual([]);
});

test("a renewal that never comes back does not keep the handler alive", async () => {
  const { env, visit } = await started();
  env.meanwhile("write", onRun, () => new Promise(() => undefined));
  await env.moveBy(55_000);
  expect(env.lastAttempt().stops).toEqual(["the lease could not be renewed"]);
  expect(await visit).toEqual(LOST);
});

test("a refused renewal stops the handler at once, and nothing is written any more", async () => {
  const { env, visit } = await started();
  await env.put(runKey(run), { fence: 2, own: "another worker", leaseUntilMs: NOW_MS + 99_000 });
  await env.moveBy(30_000);
  expect(env.lastAttempt().stops).toEqual(["the lease was lost"]);
  expect(await visit).toEqual(LOST);
  expect(env.codes()).toEqual(["lease-lost"]);
  expect(await env.run(run)).toMatchObject({ st: "running", own: "another worker", fence: 2 });
  expect(await env.run(run)).not.toHaveProperty("staleResults");
});

test("a result that comes after another attempt took the run is refused and counted", async () => {
  const { env, visit } = await started();
  await env.put(runKey(run), { fence: 2, own: "another worker" });
  env.lastAttempt().end({ kind: "returned", result: "late" });
  expect(await visit).toEqual({ kind: "return" });
  const after = await env.run(run);
  expect(after).toMatchObject({ st: "running", own: "another worker", staleResults: 1 });
  expect(after).not.toHaveProperty("result");
  expect(env.codes()).toEqual(["stale-result"]);
});

test.each([
  ["a failure", failure()],
  ["a snooze", { kind: "snooze", waitMs: 60_000 } as const],
])("%s that comes after another attempt took the run is refused and counted", async (_what, end) => {
  const { env, visit } = await started();
  await env.put(runKey(run), { fence: 2, own: "another worker" });
  env.lastAttempt().end(end);
  expect(await visit).toEqual({ kind: "return" });
  expect(await env.run(run)).toMatchObject({ st: "running", staleResults: 1 });
});

test("a stale result never changes a run that has succeeded", async () => {
  const { env, visit } = await started();
  await env.put(runKey(run), { st: "succeeded", fence: 2, own: "another worker", result: "first" });
  env.lastAttempt().end({ kind: "returned", result: "late" });
  expect(await visit).toEqual({ kind: "return" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded", result: "first", staleResults: 1 });
});

test("a result is written though its lease ended, as long as nobody took the run", async () => {
  const { env, visit } = await started();
  env.skew(600_000);
  env.lastAttempt().end({ kind: "returned", result: 1 });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded" });
});

const WISH = { nowMs: NOW_MS + 1, reason: "not today" };

test("a handler that is asked to stop learns it at the next renewal, and its run is cancelled", async () => {
  const { env, visit } = await started();
  await env.table.write(askToStop(run, 1, WISH));
  await env.moveBy(29_999);
  expect(env.lastAttempt().stops).toEqual([]);
  await env.moveBy(1);
  expect(env.lastAttempt().stops).toEqual(["cancelled"]);
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "cancelled", reason: "not today" });
});

test("a handler that is asked to stop and throws first is cancelled, not retried", async () => {
  const { env, visit } = await started();
  await env.table.write(askToStop(run, 1, WISH));
  env.lastAttempt().end(failure());
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({
    st: "cancelled",
    reason: "not today",
    attempts: 1,
    error: { name: "TypeError" },
  });
});

test("a handler that finishes its work in spite of a stop has succeeded", async () => {
  const { env, visit } = await started();
  await env.table.write(askToStop(run, 1, WISH));
  env.lastAttempt().end({ kind: "returned", result: "done" });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(run)).toMatchObject({ st: "succeeded", result: "done" });
});

test("a handler that is stopped because its worker closes has failed its attempt", async () => {
  const { env, visit } = await started();
  env.lastAttempt().end({ kind: "stopped", error: { name: "AbortError", message: "the worker is closed" } });
  expect(await visit).toEqual({ kind: "return", afterMs: 60_000 });
  expect(await env.run(run)).toMatchObject({ st: "waiting", attempts: 1 });
});
