import { expect, test } from "vitest";
import type { Deps } from "../../../lib/app/deps.ts";
import { retryRun } from "../../../lib/app/operate/operator.ts";
import { work } from "../../../lib/app/path/work.ts";
import { planBackfill, startBackfill } from "../../../lib/app/series/backfill.ts";
import { stopSeriesByHand } from "../../../lib/app/series/begin-series.ts";
import { retryDead } from "../../../lib/app/series/retry-dead.ts";
import { readSeries } from "../../../lib/app/series/series.ts";
import { seriesView } from "../../../lib/app/series/series-view.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import { badKeyOf, badMonthOf, runKey, SERIES_KEY, seriesKey } from "../../../lib/core/items.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { handOut, settleRun } from "../../../lib/core/runs/series.ts";
import { DAY_MS, MINUTE_MS } from "../../../lib/core/time.ts";
import type { Key } from "../../../lib/core/write.ts";
import { definition } from "../../support/definitions.ts";
import { at, failure, msOf, onRun, type Setup, setup } from "../../support/path.ts";

const NOW = "2026-10-08T12:00:00Z";
const daily = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "daily", schedules: ["0 2 * * *"], ...changes });
const NAME = { subject: "daily", kind: "backfill" } as const;
const onSeries = ({ sk }: Key): boolean => sk === "B#backfill";
const onRegistry = ({ sk }: Key): boolean => sk === "series";

const make = (job = daily(), others: readonly JobDefinition[] = []) => {
  const env = setup({ now: NOW, jobs: [job, ...others] });
  env.handle(() => ({ kind: "returned" }));
  let done = 0;
  return {
    env,
    job,
    range: { job, fromMs: msOf("2026-10-01T00:00:00Z"), toMs: msOf("2026-10-06T00:00:00Z") },
    series: () => readSeries(env.deps, NAME),
    view: async () => {
      const series = await readSeries(env.deps, NAME);
      if (series === undefined) throw new Error("no series");
      return seriesView(env.deps, series);
    },
    registry: () => env.table.get(SERIES_KEY, { consistent: true }),
    /** Works off what is in the queue, what that sends included. */
    drain: async () => {
      for (; done < env.sent.length; done++) {
        const one = env.sent[done];
        if (one !== undefined) await env.work(one.message);
      }
    },
    slots: () => env.sent.map(({ message }) => message.slotKey.slice(5, 10)),
  };
};

const slotOfDay = (day: number) => at("daily", `2026-10-0${day}T02:00:00Z`);
const put = (env: Setup, day: number, st: string, attributes = {}) =>
  env.put(runKey(slotOfDay(day)), {
    st,
    ep: 1,
    fence: 1,
    trigger: "schedule",
    claimedAtMs: msOf("2026-10-06T00:00:00Z"),
    ...attributes,
  });

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

// Crashes.

/** The ports of a process that dies at its call number `dieAt`, counted from 0, and says so. */
const mortalPorts = ({ deps }: Setup, dieAt: number) => {
  let calls = 0;
  const dying = <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    calls += 1;
    return calls > dieAt ? Promise.reject(new Error("the process died")) : call();
  };
  const { table, queue } = deps;
  return {
    died: (): boolean => calls > dieAt,
    table: {
      write: (...given: Parameters<typeof table.write>) => dying(() => table.write(...given)),
      get: (...given: Parameters<typeof table.get>) => dying(() => table.get(...given)),
      getMany: (...given: Parameters<typeof table.getMany>) => dying(() => table.getMany(...given)),
      query: (...given: Parameters<typeof table.query>) => dying(() => table.query(...given)),
    },
    queue: { ...queue, send: (...given: Parameters<typeof queue.send>) => dying(() => queue.send(...given)) },
  };
};

type Made = ReturnType<typeof make>;

/** The process does its part and dies at that call; from then on nobody but the watchdog and the workers is left. */
const story = async (
  dieAt: number,
  {
    before = async () => undefined,
    part,
  }: {
    readonly before?: (made: Made) => Promise<unknown>;
    readonly part: (made: Made, deps: Deps) => Promise<unknown>;
  },
) => {
  const made = make();
  const { env, drain } = made;
  await watch(env.deps);
  await before(made);
  const { died, ...ports } = mortalPorts(env, dieAt);
  await part(made, { ...env.deps, ...ports }).catch(() => undefined);
  for (let minute = 0; minute < 30; minute++) {
    await env.moveBy(MINUTE_MS);
    await watch(env.deps);
    await drain();
  }
  return { ...made, died: died() };
};

test("whoever begins a backfill may die after any step: it goes on by itself, or was never begun", async () => {
  let steps = 0;
  for (let dieAt = 0; ; dieAt++) {
    const part = ({ range }: Made, deps: Deps) => startBackfill(deps, range);
    const { env, died, series, registry } = await story(dieAt, { part });
    const after = await series();
    const ran = env.attempts.map(({ request }) => request.runId);
    expect({ dieAt, twice: ran.length - new Set(ran).size }).toEqual({ dieAt, twice: 0 });
    expect({ dieAt, places: Number((await registry())?.["p#default"] ?? 0) }).toEqual({ dieAt, places: 0 });
    if (after !== undefined) {
      expect({ dieAt, ...after }).toMatchObject({ dieAt, state: "done", asked: 5, ended: { succeeded: 5 } });
    } else expect(ran).toEqual([]);
    if (!died) break;
    steps = dieAt;
  }
  expect(steps).toBeGreaterThan(8);
});

test.each([
  [
    "worker that ends one of its runs",
    ({ env }: Made, deps: Deps) => work({ ...env.workDeps, ...deps }, env.lastSent()),
  ],
  [
    "watchdog that goes on with it",
    ({ env }: Made, deps: Deps) => env.put(runKey(slotOfDay(1)), { st: "cancelled" }).then(() => watch(deps)),
  ],
])("a %s may die after any step: each slot ends all the same, once", async (_, part) => {
  let steps = 0;
  for (let dieAt = 0; ; dieAt++) {
    const before = ({ env, range }: Made) => startBackfill(env.deps, range);
    const { env, died, series, registry } = await story(dieAt, { before, part });
    expect({ dieAt, ...(await series()), ...(await registry()) }).toMatchObject({
      dieAt,
      state: "done",
      asked: 5,
      left: 0,
      "p#default": 0,
    });
    for (const day of [1, 2, 3, 4, 5]) {
      expect(["succeeded", "cancelled"]).toContain((await env.run(slotOfDay(day)))?.["st"]);
    }
    if (!died) break;
    steps = dieAt;
  }
  expect(steps).toBeGreaterThan(9);
});

test.each(["down", "lost", "repeated"] as const)(
  "a worker whose write of the series is %s leaves the rest to the watchdog, and nothing runs twice",
  async (fault) => {
    for (let call = 1; call <= 6; call++) {
      const { env, range, drain, series } = make();
      await watch(env.deps);
      await startBackfill(env.deps, range);
      for (let n = 1; n < call; n++) env.pass("write", onSeries);
      env.fail("write", fault, onSeries);
      await drain().catch(() => undefined);
      for (let minute = 0; minute < 12; minute++) {
        await env.moveBy(MINUTE_MS);
        await watch(env.deps).catch(() => undefined);
        await drain();
      }
      expect({ call, ...(await series()) }).toMatchObject({
        call,
        state: "done",
        asked: 5,
        left: 0,
        ended: { succeeded: 5 },
      });
      expect(env.attempts).toHaveLength(5);
    }
  },
);

test("a run that ended where nobody hands out the next is found by the watchdog", async () => {
  const { env, job, range, series, slots } = make();
  await watch(env.deps);
  await startBackfill(env.deps, range);
  await env.put(runKey(slotOfDay(1)), { st: "cancelled", ep: 1, series: "backfill" });
  await env.table.write({
    key: { pk: `J#${job.subject}`, sk: "L" },
    changes: [
      { kind: "remove", path: `h#${slotOfDay(1).slotKey}` },
      { kind: "set", path: "held", value: 0 },
    ],
  });
  await watch(env.deps);
  expect(slots()).toEqual(["10-01", "10-02"]);
  expect(await series()).toMatchObject({ ended: { cancelled: 1 } });
});

test("two watchdogs at once hand out each slot once", async () => {
  const { env, range, drain } = make(daily({ overlap: "allow" }));
  await startBackfill(env.deps, { ...range, parallel: 2 });
  for (const day of [1, 2]) await env.put(runKey(slotOfDay(day)), { st: "succeeded" });
  await watch(env.deps);
  const other = setup({ now: NOW, jobs: [env.deps.jobs.all[0] ?? daily()], table: env.table, name: "o" });
  await Promise.all([watch(env.deps), watch({ ...other.deps, queue: env.deps.queue })]);
  await drain();
  const ran = env.attempts.map(({ request }) => request.runId);
  expect(new Set(ran).size).toBe(ran.length);
});

test("places that a dead process took are given back, though not while it may still begin", async () => {
  const { env, registry } = make();
  await env.put(SERIES_KEY, {
    "s#backfill#daily": { id: "dead", pool: "default", places: 2, registeredAtMs: env.now() },
    "p#default": 2,
  });
  await env.moveBy(19 * MINUTE_MS);
  await watch(env.deps);
  expect(await registry()).toMatchObject({ "p#default": 2 });
  await env.moveBy(2 * MINUTE_MS);
  await watch(env.deps);
  expect(await registry()).toMatchObject({ "p#default": 0 });
});

test("places of a backfill whose process died at its end are given back by the next pass", async () => {
  const { env, range, drain, series, registry } = make();
  await watch(env.deps);
  env.pass("write", onRegistry);
  env.fail("write", "down", onRegistry);
  await startBackfill(env.deps, range);
  await drain();
  expect([await series(), await registry()]).toMatchObject([{ state: "done" }, { "p#default": 1 }]);
  await watch(env.deps);
  expect(await registry()).toMatchObject({ "p#default": 0 });
});

test("a long row of slots that are done is passed over, each counted once", async () => {
  const { env, job, range, drain, series } = make(daily({ overlap: "allow", schedules: ["0 * * * *"] }));
  const fromMs = msOf("2026-09-01T00:00:00Z");
  for (let hour = 0; hour < 220; hour++) {
    const slotKey = slotKeyOf(fromMs + hour * 60 * MINUTE_MS);
    await env.put(runKey({ subject: job.subject, slotKey }), {
      st: "succeeded",
      ep: 1,
      claimedAtMs: env.now(),
    });
  }
  await startBackfill(env.deps, { ...range, fromMs, toMs: fromMs + 250 * 60 * MINUTE_MS });
  await drain();
  expect(env.attempts).toHaveLength(30);
  expect(await series()).toMatchObject({
    state: "done",
    total: 250,
    left: 220,
    asked: 30,
    ended: { succeeded: 30 },
  });
});

test("a late hand-out of an older backfill of the same range changes nothing of the new one", async () => {
  const { env, job, range, series } = make();
  await startBackfill(env.deps, range);
  const older = await series();
  if (older === undefined) throw new Error("no series");
  await stopSeriesByHand(env.deps, job, "backfill");
  await env.work(env.lastSent());
  await startBackfill(env.deps, range);
  const newer = await series();
  const late = handOut(
    { ...older, cursor: newer?.cursor ?? "" },
    { runs: [], cursor: slotKeyOf(range.toMs), left: 0, token: "late", nowMs: env.now() },
  );
  expect(await env.table.write(late)).toMatchObject({ written: false });
});

// What others do between the steps of a series.

test("a slot that somebody runs by hand between the look and the ask is left to them", async () => {
  const { env, range, slots, series } = make(daily({ overlap: "allow" }));
  env.meanwhile("write", onRun, () => put(env, 1, "queued", { trigger: "manual", fence: 0 }));
  await startBackfill(env.deps, range);
  expect(slots()).toEqual(["10-02"]);
  expect(await env.run(slotOfDay(1))).toMatchObject({ trigger: "manual" });
  expect(await series()).toMatchObject({ asked: 1, left: 1 });
});

test("a late ask leaves a run alone that has been retried since, and one that is on its way", async () => {
  for (const [st, ep] of [
    ["queued", 2],
    ["running", 1],
  ] as const) {
    const { env, range, slots } = make(daily({ overlap: "allow" }));
    env.meanwhile("write", onRun, () => put(env, 1, st, { ep, series: "backfill", trigger: "backfill" }));
    await startBackfill(env.deps, range);
    expect(slots()).not.toContain("10-01");
  }
});

test("of two that hand out the same place one asks for it, and the other for what is next", async () => {
  const { env, range, slots } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  // Meanwhile somebody else takes the place: the write of the hand-out is refused, and not by our own.
  env.pass("write", onSeries);
  env.meanwhile("write", onSeries, async () => {
    const series = await readSeries(env.deps, NAME);
    if (series === undefined) throw new Error("no series");
    const runs = [{ slotKey: slotOfDay(1).slotKey, epoch: 1 }];
    const cursor = slotOfDay(2).slotKey;
    await env.table.write(handOut(series, { runs, cursor, left: 0, token: "other", nowMs: env.now() }));
  });
  await startBackfill(env.deps, range);
  expect(slots()).toEqual([]);
  await env.moveBy(3 * MINUTE_MS);
  await watch(env.deps);
  expect(slots()).toEqual(["10-01"]);
});

test("a hand-out whose answer was lost is its own, and is asked for at once", async () => {
  const { env, range, slots } = make();
  env.pass("write", onSeries);
  env.fail("write", "repeated", onSeries);
  await startBackfill(env.deps, range);
  expect(slots()).toEqual(["10-01"]);
});

test("an end that was settled before hands out the next all the same", async () => {
  const { env, range, slots } = make();
  await startBackfill(env.deps, range);
  env.fail("write", "repeated", onSeries);
  await env.work(env.lastSent());
  expect(slots()).toEqual(["10-01", "10-02"]);
});

test("a listed run that nobody asked for is asked for, though not before its process has had the time", async () => {
  const { env, range, slots } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  await startBackfill(env.deps, range);
  const series = await readSeries(env.deps, NAME);
  if (series === undefined) throw new Error("no series");
  await env.table.write(settleRun(NAME, { slotKey: slotOfDay(1).slotKey, epoch: 1 }, "left"));
  const runs = [{ slotKey: slotOfDay(2).slotKey, epoch: 1 }];
  const listed = { runs, cursor: slotOfDay(3).slotKey, left: 0, token: "died", nowMs: env.now() };
  await env.table.write(handOut(series, listed));
  await watch(env.deps);
  expect(slots()).toEqual(["10-01"]);
  await env.moveBy(2 * MINUTE_MS);
  await watch(env.deps);
  expect(slots()).toContain("10-02");
});

test("one that was listed and not asked for when somebody stopped the backfill is not run", async () => {
  const { env, job, range, slots, view } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  env.fail("write", "down", onRun);
  await startBackfill(env.deps, range).catch(() => undefined);
  await stopSeriesByHand(env.deps, job, "backfill");
  await env.moveBy(2 * MINUTE_MS);
  await watch(env.deps);
  expect(slots()).toEqual([]);
  expect(await view()).toMatchObject({ state: "stopped", asked: 0, left: 1 });
});

test("a run that somebody retries while its series waits for it is theirs, and the series goes on", async () => {
  const { env, job, range, slots, view } = make(daily({ overlap: "allow" }));
  await watch(env.deps);
  await startBackfill(env.deps, range);
  await env.put(runKey(slotOfDay(1)), { st: "dead" });
  await retryRun(env.deps, { job, occurrence: slotOfDay(1) });
  expect(await env.run(slotOfDay(1))).not.toHaveProperty("series");
  await watch(env.deps);
  expect(slots().at(-1)).toBe("10-02");
  expect(await view()).toMatchObject({
    asked: 1,
    left: 1,
    outstanding: [{ runId: "daily~20261002T020000Z" }],
  });
});

test("a series that cannot be gone on with does not keep the watchdog from the others", async () => {
  const other = definition({ name: "other", schedules: ["0 3 * * *"], overlap: "allow" });
  const { env, range, slots } = make(daily({ overlap: "allow" }), [other]);
  await watch(env.deps);
  await startBackfill(env.deps, range);
  await startBackfill(env.deps, { ...range, job: other });
  await env.put(runKey(slotOfDay(1)), { st: "succeeded" });
  await env.put(runKey(at("other", "2026-10-01T03:00:00Z")), { st: "succeeded" });
  env.fail("get", "down", onSeries);
  await expect(watch(env.deps)).rejects.toThrow("get is down");
  expect(slots()).toEqual(["10-01", "10-01", "10-02"]);
});

test("an open backfill that nobody lists is listed again by whoever takes it up", async () => {
  const { env, range, registry } = make();
  await startBackfill(env.deps, range);
  await env.table.write({
    key: SERIES_KEY,
    changes: [
      { kind: "remove", path: "s#backfill#daily" },
      { kind: "set", path: "p#default", value: 0 },
    ],
  });
  await startBackfill(env.deps, range);
  expect(await registry()).toMatchObject({ "p#default": 1, "s#backfill#daily": { pool: "default" } });
});

test("runs that are dead are retried a few at a time, each once, and those that die from then on are not", async () => {
  const job = daily({ overlap: "allow", retry: { ...daily().retry, retries: 0 } });
  const { env, drain } = make(job);
  env.handle(() => failure());
  for (const day of [1, 2, 3, 4, 5, 6, 7]) {
    const atMs = env.now() - day * 1_000;
    await put(env, day, "dead", { badMonth: badMonthOf(atMs), badKey: badKeyOf(atMs, slotOfDay(day)) });
  }
  await put(env, 8, "missed", { badMonth: "2026-10", badKey: badKeyOf(env.now() - 1, slotOfDay(8)) });
  const series = await retryDead(env.deps, job);
  expect(series).toMatchObject({ kind: "retry", total: 7, parallel: 5, asked: 5 });
  expect(env.sent).toHaveLength(5);
  await drain();
  expect(env.attempts).toHaveLength(7);
  expect(await readSeries(env.deps, { subject: "daily", kind: "retry" })).toMatchObject({
    state: "done",
    asked: 7,
    ended: { dead: 7 },
  });
  expect(await env.run(slotOfDay(1))).toMatchObject({ st: "dead", ep: 2 });
  expect(await env.run(slotOfDay(8))).toMatchObject({ st: "missed", ep: 1 });
});

test("dead runs of three months, and of more than a page, are all found, and those of other jobs left", async () => {
  const job = daily({ overlap: "allow" });
  const other = definition({ name: "other", overlap: "allow" });
  const { env, drain } = make(job, [other]);
  const slotMs = (n: number) => msOf("2026-08-01T00:00:00Z") + n * 12 * 60 * MINUTE_MS;
  const dead = async (subject: string, n: number) => {
    const occurrence = { subject, slotKey: slotKeyOf(slotMs(n)) };
    const bad = { badMonth: badMonthOf(slotMs(n)), badKey: badKeyOf(slotMs(n), occurrence) };
    await env.put(runKey(occurrence), {
      st: "dead",
      ep: 1,
      trigger: "schedule",
      claimedAtMs: env.now(),
      ...bad,
    });
  };
  for (let n = 0; n < 120; n++) await dead("daily", n);
  for (let n = 0; n < 120; n++) await dead("other", n);
  expect(await retryDead(env.deps, job)).toMatchObject({ total: 120 });
  await drain();
  expect(env.attempts).toHaveLength(120);
  expect(new Set(env.attempts.map(({ request }) => request.job))).toEqual(new Set(["daily"]));
});

test("a retry of dead runs that goes on is taken up, one that stops is refused, and none is begun for none", async () => {
  const job = daily({ overlap: "allow" });
  const { env } = make(job);
  expect(await retryDead(env.deps, job)).toBeUndefined();
  for (const day of [1, 2]) {
    const atMs = env.now() - day * 1_000;
    await put(env, day, "dead", { badMonth: badMonthOf(atMs), badKey: badKeyOf(atMs, slotOfDay(day)) });
  }
  const first = await retryDead(env.deps, job, 1);
  expect(await retryDead(env.deps, job, 1)).toMatchObject({ id: first?.id, asked: 1 });
  await stopSeriesByHand(env.deps, job, "retry");
  await expect(retryDead(env.deps, job)).rejects.toMatchObject({ code: "in_flight" });
  await expect(retryDead(env.deps, job, 10)).rejects.toMatchObject({ code: "too_parallel" });
});

test("a pass without backfills reads one item for them", async () => {
  const { env } = make();
  await watch(env.deps);
  env.calls.length = 0;
  await watch(env.deps);
  expect(env.calls.filter((call) => call.endsWith(" series"))).toEqual(["get series"]);
  expect(env.calls.some((call) => call.includes("B#"))).toBe(false);
});

test("the registry that refuses by our own write, whose answer was lost, is ours", async () => {
  const { env, range, series } = make();
  env.fail("write", "repeated", onRegistry);
  await startBackfill(env.deps, range);
  expect(await series()).toMatchObject({ state: "open", asked: 1 });
  expect(await env.table.get(seriesKey(NAME), { consistent: true })).toMatchObject({ held: 1 });
});
