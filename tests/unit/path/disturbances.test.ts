import { expect, test } from "vitest";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { MINUTE_MS, SECOND_MS, shortIsoOf } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, type Setup, setup } from "../../support/path.ts";

// What happens around a run: restarts, changes, late events, kills. None of it makes a second run or an empty one.

const START = "2026-10-24T22:00:30Z";
const SLOT = "2026-10-24T22:05:00Z";
const jobOf = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "job", schedules: ["*/5 * * * *"], ...changes });

const deployed = async (job: JobDefinition): Promise<Setup> => {
  const env = setup({ now: START, jobs: [job] });
  await watch(env.deps);
  return env;
};

/** Other processes of the same deployment or of the next one, on the same table, at the same instant. */
const restarted = (env: Setup, job: JobDefinition, name = "new"): Setup =>
  setup({ now: new Date(env.now()).toISOString(), jobs: [job], table: env.table, name });

const watchAt = async (env: Setup, iso: string): Promise<void> => {
  await env.moveTo(iso);
  await watch(env.deps);
};

test.each(["skip", "allow"] as const)(
  "with overlap %s, an event that comes after its slot was recorded as missed runs nothing",
  async (overlap) => {
    const env = await deployed(jobOf({ overlap, misfire: { policy: "skip", max: 1 } }));
    await watchAt(env, "2026-10-24T22:08:00Z");
    expect(await env.run(at("job", SLOT))).toMatchObject({ st: "missed" });
    await env.deliver(SLOT, ["job"]);
    // A lock that is free is claimed without a look at the record; the start looks.
    for (const { message } of env.sent) expect(await env.work(message)).toEqual({ kind: "delete" });
    expect(env.attempts).toEqual([]);
    expect(await env.run(at("job", SLOT))).toMatchObject({ st: "missed" });
    expect((await env.lock("job"))?.["held"] ?? 0).toBe(0);
  },
);

test("a day without anybody, with misfire skip, is recorded slot by slot and runs nothing", async () => {
  const env = await deployed(jobOf({ misfire: { policy: "skip", max: 1 } }));
  await watchAt(env, "2026-10-25T22:00:30Z");
  const runs = env.table.items().filter(({ sk }) => String(sk).startsWith("R#"));
  expect(runs).toHaveLength(287);
  expect(new Set(runs.map(({ st }) => st))).toEqual(new Set(["missed"]));
  expect(env.sent).toEqual([]);
});

test.each(["skip", "allow"] as const)(
  "with overlap %s, a dispatcher and a watchdog that start anew while a worker runs start nothing",
  async (overlap) => {
    const job = jobOf({ overlap });
    const env = await deployed(job);
    await env.moveTo(SLOT);
    await env.deliver(SLOT, ["job"]);
    const visit = env.work(env.lastSent());
    for (let minute = 1; minute <= 4; minute++) {
      await env.moveBy(MINUTE_MS);
      const anew = restarted(env, job, `new${minute}`);
      expect(await anew.deliver(SLOT, ["job"], `anew-${minute}`)).toEqual(["duplicate"]);
      await watch(anew.deps);
      expect(anew.sent).toEqual([]);
    }
    env.lastAttempt().end({ kind: "returned" });
    expect(await visit).toEqual({ kind: "delete" });
    expect(await env.run(at("job", SLOT))).toMatchObject({ st: "succeeded", fence: 1 });
  },
);

test("of two watchdogs that pass every 45 s one stops right after its pass: no slot is missed, and none runs twice", async () => {
  const job = jobOf({ overlap: "allow" });
  const first = await deployed(job);
  const second = restarted(first, job);
  const pass = async (env: Setup, atMs: number): Promise<void> => {
    await env.moveBy(atMs - env.now());
    await watch(env.deps);
    for (const { message } of env.sent.splice(0)) await env.work(message);
  };
  for (const env of [first, second]) env.handle(() => ({ kind: "returned" }));
  const startMs = msOf(START);
  for (let n = 1; n <= 40; n++) {
    const turnMs = startMs + n * 45 * SECOND_MS;
    // Both tick; the first one was the last to pass when it stops, in the middle of the story.
    if (n < 20) await pass(second, turnMs);
    if (n < 20) await pass(first, turnMs + 5 * SECOND_MS);
    else await pass(second, turnMs);
  }
  const slots = [...first.attempts, ...second.attempts].map(({ request }) => shortIsoOf(request.slotMs));
  expect(slots.map((slot) => slot.slice(11, 16)).sort()).toEqual([
    "22:05",
    "22:10",
    "22:15",
    "22:20",
    "22:25",
  ]);
});

test("a worker that lost a lease, or its table for a while, goes on with the next message without a restart", async () => {
  const env = await deployed(jobOf({ overlap: "allow" }));
  await env.moveTo(SLOT);
  await env.deliver(SLOT, ["job"]);
  const lost = env.work(env.lastSent());
  await env.settle();
  // Another worker has the run by now: the first one's renewal is refused.
  await env.put({ pk: "J#job", sk: `R#${at("job", SLOT).slotKey}` }, { fence: 2, own: "another" });
  await env.moveBy(MINUTE_MS);
  expect(await lost).toMatchObject({ kind: "return" });
  expect(env.lastAttempt().stops).toHaveLength(1);
  env.handle(() => ({ kind: "returned" }));
  await env.moveTo("2026-10-24T22:10:00Z");
  await env.deliver("2026-10-24T22:10:00Z", ["job"], "next");
  env.fail("write", "down");
  await expect(env.work(env.lastSent())).rejects.toMatchObject({ retryable: true });
  expect(await env.work(env.lastSent())).toEqual({ kind: "delete" });
  const after = await env.run(at("job", "2026-10-24T22:10:00Z"));
  expect(after).toMatchObject({ st: "succeeded", fence: 1 });
  expect(after).not.toHaveProperty("crashes");
});

test("a worker that is killed as soon as it started leaves a whole lease, and after it the run is attempt 2", async () => {
  const env = await deployed(jobOf());
  await env.moveTo(SLOT);
  await env.deliver(SLOT, ["job"]);
  const message = env.lastSent();
  // Nothing of this visit is heard again: its invocation had no time left.
  void env.work(message);
  await env.settle();
  const run = await env.run(at("job", SLOT));
  expect(run).toMatchObject({ st: "running", leaseUntilMs: env.now() + MINUTE_MS });
  const next = restarted(env, jobOf());
  next.handle(() => ({ kind: "returned" }));
  await next.moveBy(90 * SECOND_MS);
  expect(await next.work(message)).toMatchObject({ kind: "return" });
  await next.moveBy(1);
  expect(await next.work(message)).toEqual({ kind: "delete" });
  expect(next.lastAttempt().request).toMatchObject({ attempt: 2 });
  expect(await next.run(at("job", SLOT))).toMatchObject({ st: "succeeded", fence: 2, crashes: 1 });
});

test("of a job that is redefined while one run is active and one waits, the active run keeps its version, the other gets the new one", async () => {
  const before = jobOf({ overlap: "queue", input: { version: 1 }, timeoutMs: 4 * MINUTE_MS });
  const after = { ...before, input: { version: 2 }, timeoutMs: MINUTE_MS, schedules: ["*/10 * * * *"] };
  const env = await deployed(before);
  await env.moveTo(SLOT);
  await env.deliver(SLOT, ["job"]);
  const active = env.work(env.lastSent());
  await env.moveTo("2026-10-24T22:10:00Z");
  expect(await env.deliver("2026-10-24T22:10:00Z", ["job"], "next")).toEqual(["waiting"]);
  const next = restarted(env, after);
  await watch(next.deps);
  expect(next.sent).toEqual([]);
  env.lastAttempt().end({ kind: "returned" });
  await active;
  next.handle(() => ({ kind: "returned" }));
  expect(await next.work(env.lastSent())).toEqual({ kind: "delete" });
  expect(env.attempts.map(({ request }) => [request.input, request.timeoutMs])).toEqual([
    [{ version: 1 }, 4 * MINUTE_MS],
  ]);
  expect(next.attempts.map(({ request }) => [request.job, request.input, request.timeoutMs])).toEqual([
    ["job", { version: 2 }, MINUTE_MS],
  ]);
  expect(await next.run(at("job", SLOT))).toMatchObject({ st: "succeeded", input: { version: 1 } });
  expect(await next.run(at("job", "2026-10-24T22:10:00Z"))).toMatchObject({
    st: "succeeded",
    input: { version: 2 },
  });
});

test("an interval that is changed a second before its slot is the new one from then on, also for a late old event", async () => {
  const env = await deployed(jobOf({ schedules: ["every(3 minutes)"], overlap: "allow" }));
  await watchAt(env, "2026-10-24T22:02:59Z");
  const next = restarted(env, jobOf({ schedules: ["every(8 minutes)"], overlap: "allow" }));
  await watch(next.deps);
  next.handle(() => ({ kind: "returned" }));
  // What the old schedule still strikes is no slot of the new one.
  await next.moveTo("2026-10-24T22:03:01Z");
  expect(await next.deliver("2026-10-24T22:03:00Z", ["job"])).toEqual(["off-schedule"]);
  for (let minute = 4; minute <= 30; minute++) {
    await watchAt(next, `2026-10-24T22:${String(minute).padStart(2, "0")}:30Z`);
    for (const { message } of next.sent.splice(0)) await next.work(message);
  }
  expect(next.attempts.map(({ request }) => shortIsoOf(request.slotMs).slice(11, 16))).toEqual([
    "22:08",
    "22:16",
    "22:24",
  ]);
});
