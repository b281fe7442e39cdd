import { expect, test } from "vitest";
import { makeOperator } from "../../lib/app/operate/operator.ts";
import { judgeDeadLetter } from "../../lib/app/path/dead-letters.ts";
import { lockKey, runKey } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import type { RunMessage } from "../../lib/core/runs/message.ts";
import { definition } from "../support/definitions.ts";
import { at, failure, msOf, onRun, setup } from "../support/path.ts";

/** Scripted stories of one attempt: what happens between its look, its lease and its record. */

const SLOT = "2026-10-25T01:00:00Z";
const NOW = "2026-10-25T01:00:02Z";
const NOW_MS = msOf(NOW);
const side = definition({ name: "side", schedules: ["0 * * * *"], overlap: "allow" });
const single = definition({ name: "single", schedules: ["0 * * * *"] });
const fragile = definition({
  name: "fragile",
  schedules: ["0 * * * *"],
  retry: { ...single.retry, crashes: 0 },
});

const make = ({ name }: JobDefinition) => {
  const env = setup({ now: NOW, jobs: [side, single, fragile] });
  const occurrence = at(name, SLOT);
  const message: RunMessage = { ...occurrence, epoch: 1, trigger: "schedule", queuedAtMs: NOW_MS };
  const put = (attributes: Parameters<typeof env.put>[1]) => env.put(runKey(occurrence), attributes);
  const holds = (e: number) =>
    env.put(lockKey(name), {
      held: 1,
      [`h#${occurrence.slotKey}`]: { epoch: e, owner: "x", sentAtMs: 1, class: 0 },
    });
  return { env, occurrence, message, put, holds };
};

test("a run whose lease is renewed while somebody ends it as lost goes on, and keeps its message and its lock", async () => {
  const { env, message, put, holds } = make(fragile);
  await holds(1);
  await put({ st: "running", ep: 1, fence: 1, own: "worker", leaseUntilMs: NOW_MS - 60_000, attemptAtMs: 1 });
  env.meanwhile("write", onRun, async () => undefined);
  env.meanwhile("write", onRun, () => put({ leaseUntilMs: NOW_MS + 60_000 }));
  expect(await env.work(message)).toMatchObject({ kind: "return" });
  expect(await env.lock("fragile")).toMatchObject({ held: 1 });
});

test("a renewal that took twenty seconds lengthens the lease from before it was asked", async () => {
  const { env, message, put } = make(side);
  await put({ st: "queued", ep: 1, trigger: "schedule" });
  const visit = env.work(message);
  await env.settle();
  env.meanwhile("write", onRun, async () => env.skew(20_000));
  await env.moveBy(30_000);
  env.fail("write", "down", onRun, 1_000);
  // Asked for at 30 s, so until 90 s; stopped five seconds before. The clock is 20 s ahead of these waits by now.
  await env.moveBy(34_999);
  expect(env.lastAttempt().stops).toEqual([]);
  await env.moveBy(1);
  expect(env.lastAttempt().stops).toEqual(["the lease could not be renewed"]);
  await visit;
});

test("a result that is too big for its record is stored before the record points to it", async () => {
  const { env, occurrence, message, put } = make(side);
  await put({ st: "queued", ep: 1, trigger: "schedule" });
  env.handle(() => ({ kind: "returned", result: "x".repeat(1_000) }));
  await env.work(message);
  const writes = env.calls.filter((call) => call.startsWith("write "));
  expect(writes).toEqual([
    `write R#${occurrence.slotKey}`,
    `write I#${occurrence.slotKey}#result-1`,
    `write R#${occurrence.slotKey}`,
  ]);
});

test("a result whose write was repeated is no stale one", async () => {
  const { env, occurrence, message, put } = make(side);
  await put({ st: "queued", ep: 1, trigger: "schedule" });
  const visit = env.work(message);
  await env.settle();
  env.fail("write", "repeated", onRun);
  env.lastAttempt().end({ kind: "returned", result: 1 });
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(occurrence)).not.toHaveProperty("staleResults");
});

test("a failure whose write was repeated is no stale one", async () => {
  const { env, occurrence, message, put } = make(side);
  await put({ st: "queued", ep: 1, trigger: "schedule" });
  const visit = env.work(message);
  await env.settle();
  env.fail("write", "repeated", onRun);
  env.lastAttempt().end(failure());
  expect(await visit).toMatchObject({ kind: "return", afterMs: expect.any(Number) });
  expect(await env.run(occurrence)).toMatchObject({ st: "waiting", attempts: 1 });
  expect(await env.run(occurrence)).not.toHaveProperty("staleResults");
});

test("a retried run that is over frees the lock of its own attempt set", async () => {
  const { env, message, put, holds } = make(single);
  await holds(2);
  await put({ st: "queued", ep: 2, trigger: "schedule" });
  env.handle(() => ({ kind: "returned" }));
  expect(await env.work({ ...message, epoch: 2 })).toEqual({ kind: "delete" });
  expect(await env.lock("single")).toMatchObject({ held: 0 });
});

test("a letter of a run that has a record, and was never started by its deadline, expires it", async () => {
  const { env, occurrence, message, put } = make(side);
  await put({ st: "queued", ep: 1, trigger: "schedule" });
  await env.moveBy(side.startDeadlineMs + 10_000);
  expect(await judgeDeadLetter(env.deps, message)).toEqual({ kind: "delete" });
  expect(await env.run(occurrence)).toMatchObject({ st: "expired" });
  expect(env.sent).toEqual([]);
});

test("a message of an earlier attempt set frees the entry that its set left in the lock", async () => {
  const { env, message, put, holds } = make(single);
  await holds(1);
  await put({ st: "queued", ep: 2, trigger: "schedule" });
  expect(await env.work(message)).toEqual({ kind: "delete" });
  expect(await env.lock("single")).toMatchObject({ held: 0 });
});

test("a run that is stopped in its last attempt is cancelled, and has not failed", async () => {
  const last = { ...side, retry: { ...side.retry, retries: 0 } };
  const env = setup({ now: NOW, jobs: [last] });
  const occurrence = at("side", SLOT);
  await env.deliver(SLOT, ["side"]);
  const visit = env.work(env.lastSent());
  await env.settle();
  await makeOperator(env.deps).cancel({ job: last, occurrence }, "not today");
  await env.moveBy(30_000);
  expect(await visit).toEqual({ kind: "delete" });
  expect(await env.run(occurrence)).toMatchObject({ st: "cancelled" });
  expect(await env.run(occurrence)).not.toHaveProperty("attempts");
});
