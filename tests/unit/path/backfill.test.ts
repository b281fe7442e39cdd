import { expect, test } from "vitest";
import { planBackfill, startBackfill } from "../../../lib/app/series/backfill.ts";
import { stopSeriesByHand } from "../../../lib/app/series/begin-series.ts";
import { readSeries } from "../../../lib/app/series/series.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { DAY_MS, MINUTE_MS } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { failure, msOf, setup } from "../../support/path.ts";
import { daily, make, NAME, NOW, put, slotOfDay } from "../../support/series-path.ts";

/** What a backfill runs, and in what order; how it is begun, taken up and stopped. */

test("a backfill runs its slots in order, each when the one before it is over, and then ends", async () => {
  const { env, range, drain, slots, series, registry } = make();
  const begun = await startBackfill(env.deps, range);
  expect(begun).toMatchObject({ takenUp: false, series: { state: "open", total: 5, asked: 1 } });
  expect(slots()).toEqual(["10-01"]);
  expect(await env.run(slotOfDay(1))).toMatchObject({
    st: "queued",
    trigger: "backfill",
    series: "backfill",
  });
  await drain();
  expect(slots()).toEqual(["10-01", "10-02", "10-03", "10-04", "10-05"]);
  expect(env.attempts.every(({ request }) => request.trigger === "backfill")).toBe(true);
  expect(await series()).toMatchObject({ state: "done", asked: 5, left: 0, ended: { succeeded: 5 } });
  expect(await registry()).toMatchObject({ "p#default": 0 });
  expect(Object.keys((await registry()) ?? {}).filter((name) => name.startsWith("s#"))).toEqual([]);
});

test("with --parallel 3, three are on their way and no more", async () => {
  const { env, range, drain, view, slots } = make(daily({ overlap: "allow" }));
  await startBackfill(env.deps, { ...range, parallel: 3 });
  expect(slots()).toEqual(["10-01", "10-02", "10-03"]);
  expect((await view()).outstanding.map(({ state }) => state)).toEqual(["queued", "queued", "queued"]);
  env.handle(() => undefined);
  const first = env.work(env.sent[0]?.message ?? env.lastSent());
  await env.settle();
  expect((await view()).outstanding[0]?.state).toBe("running");
  env.lastAttempt().end({ kind: "returned" });
  await first;
  expect(slots()).toEqual(["10-01", "10-02", "10-03", "10-04"]);
  expect((await view()).outstanding).toHaveLength(3);
  env.handle(() => ({ kind: "returned" }));
  await drain();
  expect(await view()).toMatchObject({ state: "done", ended: { succeeded: 5 }, outstanding: [] });
});

test("slots that are done or on their way are left alone, and those that nobody ran are run", async () => {
  const { env, range, drain, slots, view } = make();
  await put(env, 1, "succeeded");
  await put(env, 2, "missed", { fence: 0 });
  await put(env, 3, "dead");
  await put(env, 4, "skipped");
  await startBackfill(env.deps, range);
  await drain();
  expect(slots()).toEqual(["10-02", "10-05"]);
  expect(await view()).toMatchObject({ state: "done", asked: 2, left: 3, ended: { succeeded: 2 } });
  expect(await env.run(slotOfDay(2))).toMatchObject({ st: "succeeded", ep: 2, trigger: "schedule" });
  expect(await env.run(slotOfDay(3))).toMatchObject({ st: "dead", ep: 1 });
});

test("--redo names the endings that are run again instead, and a run too old for that is left", async () => {
  const { env, range, drain, slots } = make();
  await put(env, 1, "missed");
  await put(env, 2, "dead");
  await put(env, 3, "skipped");
  await put(env, 4, "dead", { claimedAtMs: msOf(NOW) - 31 * DAY_MS });
  await startBackfill(env.deps, { ...range, redo: ["dead", "skipped"] });
  await drain();
  expect(slots()).toEqual(["10-02", "10-03", "10-05"]);
});

test("the plan says what would become of each slot, and writes nothing", async () => {
  const { env, range } = make();
  await put(env, 1, "succeeded");
  await put(env, 2, "missed");
  await put(env, 3, "dead");
  env.writes.length = 0;
  const year = { ...range, fromMs: msOf("2025-10-06T00:00:00Z"), toMs: msOf("2026-10-06T00:00:00Z") };
  expect(await planBackfill(env.deps, year)).toEqual({
    job: "daily",
    from: "2025-10-06T00:00:00Z",
    to: "2026-10-06T00:00:00Z",
    redo: ["missed", "expired"],
    parallel: 1,
    slots: 365,
    firstSlot: "2025-10-06T02:00:00Z",
    lastSlot: "2026-10-05T02:00:00Z",
    toRun: 363,
    unrecorded: 362,
    beyondRecords: 278,
    paused: false,
    recorded: {
      succeeded: { slots: 1, toRun: 0 },
      missed: { slots: 1, toRun: 1 },
      dead: { slots: 1, toRun: 0 },
    },
  });
  expect(env.writes).toEqual([]);
});

test("slots to come, and those that the watchdog has not looked at yet, are never part of it", async () => {
  const { env, range, drain, slots } = make(daily({ schedules: ["*/1 * * * *"] }));
  const toMs = msOf("2027-01-01T00:00:00Z");
  const plan = await planBackfill(env.deps, { ...range, fromMs: msOf("2026-10-08T11:55:00Z"), toMs });
  expect(plan).toMatchObject({ slots: 3, lastSlot: "2026-10-08T11:57:00Z" });
  await startBackfill(env.deps, { ...range, fromMs: msOf("2026-10-08T11:55:00Z"), toMs });
  await drain();
  expect(slots()).toHaveLength(3);
});

test.each([
  ["a range that ends before it begins", { fromMs: msOf("2026-10-06T00:00:00Z") }, "empty_range", "from"],
  ["more runs at once than leave a place of the pool", { parallel: 10 }, "too_parallel", "parallel"],
  ["a range of too many slots", { fromMs: 0 }, "too_many_slots", "to"],
])("%s is refused, with the field and the fix", async (_, changes, code, field) => {
  const { env, range } = make(
    daily({ overlap: "allow", schedules: code === "too_many_slots" ? ["* * * * *"] : ["0 2 * * *"] }),
  );
  const refusal = { code, field, hint: expect.any(String) };
  await expect(planBackfill(env.deps, { ...range, ...changes })).rejects.toMatchObject(refusal);
  await expect(startBackfill(env.deps, { ...range, ...changes })).rejects.toMatchObject(refusal);
  expect(env.writes).toEqual([]);
});

test("a job that runs by hand only has nothing to backfill", async () => {
  const { env, range } = make(daily({ schedules: [] }));
  await expect(planBackfill(env.deps, range)).rejects.toMatchObject({ code: "no_schedule", field: "job" });
});

test("of a lock with several places one stays free, and of a lock with one a backfill has no more", async () => {
  const two = make(daily({ overlap: { max: 3, whenFull: "queue" } }));
  await expect(startBackfill(two.env.deps, { ...two.range, parallel: 3 })).rejects.toThrow(
    "at most 2 at once for daily, not 3: daily runs 3 at once (overlap)",
  );
  await startBackfill(two.env.deps, { ...two.range, parallel: 2 });
  const one = make();
  await expect(startBackfill(one.env.deps, { ...one.range, parallel: 2 })).rejects.toMatchObject({
    code: "too_parallel",
    hint: "--parallel 1",
  });
});

test("all backfills of a pool together leave one of its places free", async () => {
  const other = definition({ name: "other", schedules: ["0 3 * * *"], overlap: "allow" });
  const { env, range, registry } = make(daily({ overlap: "allow" }), [other]);
  await startBackfill(env.deps, { ...range, parallel: 6 });
  await expect(startBackfill(env.deps, { ...range, job: other, parallel: 4 })).rejects.toMatchObject({
    code: "pool_busy",
    message:
      'the pool "default" has 9 places for backfills and retries, 6 of them taken by backfill of daily (6); 4 more do not fit',
  });
  expect(await registry()).toMatchObject({ "p#default": 6 });
  await startBackfill(env.deps, { ...range, job: other, parallel: 3 });
  expect(await registry()).toMatchObject({ "p#default": 9 });
});

test("the same backfill asked for again is taken up, and another one of the job refused", async () => {
  const { env, range, series, slots } = make();
  const first = await startBackfill(env.deps, range);
  const again = await startBackfill(env.deps, range);
  expect(again).toMatchObject({ takenUp: true, series: { id: first.series.id } });
  expect(slots()).toEqual(["10-01"]);
  const longer = { ...range, toMs: msOf("2026-10-07T00:00:00Z") };
  await expect(startBackfill(env.deps, longer)).rejects.toMatchObject({ code: "in_flight" });
  await expect(startBackfill(env.deps, { ...range, redo: ["dead"] })).rejects.toMatchObject({
    code: "in_flight",
  });
  expect(await series()).toMatchObject({ id: first.series.id });
});

test("two people who begin the same backfill at once begin one", async () => {
  const { env, range, drain, view } = make();
  const both = await Promise.allSettled([startBackfill(env.deps, range), startBackfill(env.deps, range)]);
  expect(both.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(0);
  await drain();
  expect(env.attempts).toHaveLength(5);
  expect(await view()).toMatchObject({ state: "done", ended: { succeeded: 5 } });
});

test("a stopped backfill hands out nothing more, and ends with the run that is on its way", async () => {
  const { env, job, range, drain, slots, view, registry } = make();
  await startBackfill(env.deps, range);
  expect(await stopSeriesByHand(env.deps, job, "backfill")).toMatchObject({ stopping: true, state: "open" });
  await expect(startBackfill(env.deps, range)).rejects.toThrow("is stopping: its runs are not over yet");
  await drain();
  expect(slots()).toEqual(["10-01"]);
  expect(await view()).toMatchObject({
    state: "stopped",
    reason: "stopped by hand",
    ended: { succeeded: 1 },
  });
  expect(await registry()).toMatchObject({ "p#default": 0 });
  await expect(stopSeriesByHand(env.deps, job, "backfill")).rejects.toMatchObject({ code: "not_open" });
});

test("a backfill begun again after a stop goes on behind what is done", async () => {
  const { env, job, range, drain, slots, view } = make();
  await startBackfill(env.deps, range);
  await stopSeriesByHand(env.deps, job, "backfill");
  await drain();
  expect(await startBackfill(env.deps, range)).toMatchObject({ takenUp: false });
  await drain();
  expect(slots()).toEqual(["10-01", "10-02", "10-03", "10-04", "10-05"]);
  expect(await view()).toMatchObject({ state: "done", left: 1, asked: 4, ended: { succeeded: 4 } });
});

test("a run that dies does not end the backfill, and is counted", async () => {
  const { env, range, drain, view } = make(daily({ retry: { ...daily().retry, retries: 0 } }));
  env.handle(({ slotMs }) => (slotMs === msOf("2026-10-02T02:00:00Z") ? failure() : { kind: "returned" }));
  await startBackfill(env.deps, range);
  await drain();
  expect(await view()).toMatchObject({ state: "done", ended: { succeeded: 4, dead: 1 } });
});

test("a slot that its schedule has claimed is left to it", async () => {
  const { env, range, drain, view } = make(daily({ overlap: { max: 2, whenFull: "skip" } }));
  const week = { ...range, fromMs: msOf("2026-10-07T00:00:00Z"), toMs: msOf("2026-10-09T00:00:00Z") };
  await env.deliver("2026-10-08T02:00:00Z", ["daily"]);
  expect(await planBackfill(env.deps, week)).toMatchObject({
    toRun: 1,
    recorded: { queued: { slots: 1, toRun: 0 } },
  });
  await startBackfill(env.deps, week);
  await env.work(env.lastSent());
  expect(await view()).toMatchObject({ state: "done", asked: 1, left: 1 });
  await drain();
  expect(await env.run(slotOfDay(8))).toMatchObject({ trigger: "schedule", st: "succeeded" });
});

test("a live slot that meets a backfill's run waits for it, and goes before the backfill's next", async () => {
  const { env, range, slots } = make();
  env.handle(() => undefined);
  await startBackfill(env.deps, range);
  const first = env.work(env.lastSent());
  await env.settle();
  expect(await env.deliver("2026-10-08T02:00:00Z", ["daily"])).toMatchObject({});
  expect(slots()).toEqual(["10-01"]);
  env.lastAttempt().end({ kind: "returned" });
  await first;
  expect(slots()).toEqual(["10-01", "10-08"]);
});

test("so short before a live slot that a run could be in its way, a job that runs one at a time gets none", async () => {
  const { env, range, drain, slots, series } = make();
  await env.moveTo("2026-10-09T01:55:01Z");
  await watch(env.deps);
  await startBackfill(env.deps, range);
  expect(slots()).toEqual([]);
  await env.moveTo("2026-10-09T02:00:00Z");
  await env.deliver("2026-10-09T02:00:00Z", ["daily"]);
  await watch(env.deps);
  await drain();
  expect(slots().slice(0, 2)).toEqual(["10-09", "10-01"]);
  expect(await series()).toMatchObject({ state: "done", ended: { succeeded: 5 } });
});

test.each([
  ["allows overlap", { overlap: "allow" } as const],
  ["has a lock with several places", { overlap: { max: 2, whenFull: "skip" } } as const],
  ["has slots closer than twice its timeout", { timeoutMs: 12 * 60 * MINUTE_MS } as const],
])("a job that %s is handed runs at any time", async (_, changes) => {
  const { env, range, slots } = make(daily(changes));
  await env.moveTo("2026-10-09T01:59:59Z");
  await startBackfill(env.deps, range);
  expect(slots()).toEqual(["10-01"]);
});

test("a deploy that changes the schedule stops a backfill: it fires nothing that nobody asked for", async () => {
  const { env, range, drain, slots } = make();
  await startBackfill(env.deps, range);
  const changed = daily({ schedules: ["* * * * *"] });
  const after = setup({ now: NOW, jobs: [changed], table: env.table, name: "new" });
  after.handle(() => ({ kind: "returned" }));
  await after.work(env.lastSent());
  expect(after.sent).toEqual([]);
  await watch(after.deps);
  await drain();
  expect([...slots(), ...after.sent]).toEqual(["10-01"]);
  expect(await readSeries(after.deps, NAME)).toMatchObject({
    state: "stopped",
    reason: "the schedule of its job changed",
  });
  expect(after.codes()).toContain("series-stopped");
});

test("a deploy that removes the job ends its backfill", async () => {
  const { env, range, registry } = make();
  await watch(env.deps);
  await startBackfill(env.deps, range);
  const after = setup({ now: NOW, jobs: [], table: env.table, name: "new" });
  for (let minute = 0; minute < 20; minute++) {
    await watch(after.deps);
    await after.moveBy(MINUTE_MS);
  }
  expect(await readSeries(after.deps, NAME)).toMatchObject({
    state: "stopped",
    reason: "its job was removed",
  });
  expect(await registry()).toMatchObject({ "p#default": 0 });
});

test("older code that does not know the job leaves its backfill alone", async () => {
  const { env, range, series } = make();
  await startBackfill(env.deps, range);
  const older = setup({ now: NOW, jobs: [], table: env.table, name: "old" });
  await watch(older.deps);
  expect(await series()).toMatchObject({ state: "open", stopping: false });
});
