import { expect, test } from "vitest";
import type { Deps } from "../../../lib/app/deps.ts";
import { work } from "../../../lib/app/path/work.ts";
import { startBackfill } from "../../../lib/app/series/backfill.ts";
import { stopSeriesByHand } from "../../../lib/app/series/begin-series.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import { runKey, SERIES_KEY } from "../../../lib/core/items.ts";
import { handOut } from "../../../lib/core/runs/series.ts";
import { MINUTE_MS } from "../../../lib/core/time.ts";
import { msOf, type Setup, setup } from "../../support/path.ts";
import { daily, type Made, make, NOW, onRegistry, onSeries, slotOfDay } from "../../support/series-path.ts";

/** Processes that die on the way of a backfill, and answers that are lost. */

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
