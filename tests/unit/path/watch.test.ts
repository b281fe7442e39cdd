import { expect, test } from "vitest";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { CONTROL_KEY, CURSOR_KEY, runKey } from "../../../lib/core/items.ts";
import type { JobDefinition, Misfire } from "../../../lib/core/jobs/job.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, type Setup, type SetupOptions, setup } from "../../support/path.ts";

const START = "2026-12-31T21:30:00Z";
const SLOT = "2026-12-31T22:00:00Z";
const FIRST_LOOK = "2026-12-31T22:02:00.001Z";

const hourly = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "hourly", schedules: ["0 * * * *"], overlap: "allow", ...changes });
const minutely = (misfire: Misfire, changes: Partial<JobDefinition> = {}) =>
  definition({ name: "minutely", schedules: ["* * * * *"], overlap: "allow", misfire, ...changes });

const watchAt = async (env: Setup, iso: string): Promise<void> => {
  await env.moveTo(iso);
  await watch(env.deps);
};

/** A deployment that the watchdog has seen once, at START. */
const deployed = async (jobs: readonly JobDefinition[], options: Partial<SetupOptions> = {}) => {
  const env = setup({ now: START, jobs, ...options });
  await watch(env.deps);
  return env;
};

/** The same table under another deployment's code. */
const redeployed = (env: Setup, now: string, jobs: readonly JobDefinition[]) =>
  setup({ now, jobs, table: env.table, name: "new" });

const sentSlots = (env: Setup) => env.sent.map(({ message }) => message.slotKey);
const runs = (env: Setup) => env.table.items().filter((item) => String(item["sk"]).startsWith("R#"));
const states = (env: Setup) => runs(env).map((run) => [String(run["sk"]).slice(13, 18), run["st"]]);

test("the first pass ever sets the cursor, and catches up nothing", async () => {
  const env = await deployed([hourly(), minutely({ policy: "all", max: 100 })]);
  expect(runs(env)).toEqual([]);
  expect(env.sent).toEqual([]);
  expect(await env.table.get(CURSOR_KEY, { consistent: true })).toMatchObject({
    doneUntilMs: msOf("2026-12-31T21:28:00Z"),
  });
});

test("a slot that nothing delivered is dispatched two minutes after it, and not before", async () => {
  const env = await deployed([hourly()]);
  await watchAt(env, "2026-12-31T22:02:00Z");
  expect(env.sent).toEqual([]);
  await watchAt(env, FIRST_LOOK);
  expect(await env.run(at("hourly", SLOT))).toMatchObject({ st: "queued", trigger: "watchdog" });
  expect(sentSlots(env)).toEqual([at("hourly", SLOT).slotKey]);
  expect(env.codes()).toContain("caught-up");
});

test("a slot that is caught up is noted for a look before it is claimed, and claimed before it is sent", async () => {
  const env = await deployed([hourly()]);
  env.calls.length = 0;
  await watchAt(env, FIRST_LOOK);
  const steps = env.calls.filter((call) => /^(write (20|R)|send)/.test(call)).map((call) => call.slice(0, 7));
  expect(steps).toEqual(["write 2", "write R", "send 20"]);
});

test("a slot that is over is nothing to the watchdog: it costs no write but the cursor's", async () => {
  const env = await deployed([hourly()]);
  await env.moveTo(SLOT);
  env.handle(() => ({ kind: "returned" }));
  await env.deliver(SLOT, ["hourly"]);
  await env.work(env.lastSent());
  await watchAt(env, "2026-12-31T22:01:00Z");
  env.calls.length = 0;
  await watchAt(env, FIRST_LOOK);
  expect(env.calls.filter((call) => call.startsWith("write"))).toEqual(["write cursor", "write cursor"]);
});

// Slots that nothing dispatched in time.

test("of several missed slots the newest runs, and the older ones are recorded as missed", async () => {
  const env = await deployed([hourly()]);
  await watchAt(env, "2027-01-01T00:30:00Z");
  expect(states(env)).toEqual([
    ["22:00", "missed"],
    ["23:00", "missed"],
    ["00:00", "queued"],
  ]);
  expect(sentSlots(env)).toEqual([at("hourly", "2027-01-01T00:00:00Z").slotKey]);
});

test("policy skip runs none of them", async () => {
  const env = await deployed([hourly({ misfire: { policy: "skip", max: 1 } })]);
  await watchAt(env, "2027-01-01T00:30:00Z");
  expect(states(env)).toEqual([
    ["22:00", "missed"],
    ["23:00", "missed"],
    ["00:00", "missed"],
  ]);
  expect(env.sent).toEqual([]);
});

test("policy all runs the newest ones up to its maximum, in order, within its time", async () => {
  const all = minutely({ policy: "all", max: 3, withinMs: 600_000 });
  const env = await deployed([all]);
  await watchAt(env, "2026-12-31T21:36:30Z");
  expect(states(env)).toEqual([
    ["21:30", "missed"],
    ["21:31", "missed"],
    ["21:32", "queued"],
    ["21:33", "queued"],
    ["21:34", "queued"],
  ]);
  const late = await deployed([minutely({ policy: "all", max: 99, withinMs: 240_000 })]);
  await watchAt(late, "2026-12-31T21:36:00Z");
  expect(states(late).filter(([, st]) => st === "queued")).toEqual([
    ["21:32", "queued"],
    ["21:33", "queued"],
  ]);
});

test("a catch-up that fails is not caught up again without end", async () => {
  const env = await deployed([hourly({ retry: { ...hourly().retry, retries: 0 } })]);
  await watchAt(env, FIRST_LOOK);
  env.handle(() => ({ kind: "timed-out", error: { name: "TimeoutError", message: "too long" } }));
  await env.work(env.lastSent());
  for (const minute of ["03", "04", "09", "30"]) await watchAt(env, `2026-12-31T22:${minute}:00Z`);
  expect(env.sent).toHaveLength(1);
  expect(await env.run(at("hourly", SLOT))).toMatchObject({ st: "dead", attempts: 1 });
});

test("a thousand missed slots in a row have a record each, one more and they share one with the count", async () => {
  const none = minutely({ policy: "skip", max: 1 });
  const each = await deployed([none]);
  await watchAt(each, "2027-01-01T14:12:00Z");
  expect(runs(each)).toHaveLength(1_000);
  const shared = await deployed([none]);
  await watchAt(shared, "2027-01-01T14:13:00Z");
  expect(runs(shared)).toHaveLength(1);
  expect(runs(shared)[0]).toMatchObject({
    sk: "R#2027-01-01T14:10:00.000Z",
    st: "missed",
    rangeCount: 1_001,
    rangeFromMs: msOf(START),
  });
});

test("paused slots are recorded as skipped, not missed, and the pause is not caught up after it", async () => {
  const env = await deployed([hourly()]);
  await env.put(CONTROL_KEY, { "p#hourly": { sinceMs: 1, untilMs: msOf("2027-01-01T00:00:00Z") } });
  await watchAt(env, "2027-01-01T00:30:00Z");
  expect(states(env)).toEqual([
    ["22:00", "skipped"],
    ["23:00", "skipped"],
    ["00:00", "queued"],
  ]);
  expect(await env.run(at("hourly", SLOT))).toMatchObject({ reason: "paused" });
});

// Changes of a deployment.

test("a schedule that a deploy changes starts from the change: no run by surprise", async () => {
  const before = definition({ name: "daily", schedules: ["0 22 * * *"], overlap: "allow" });
  const env = await deployed([before]);
  const after = redeployed(env, "2027-01-01T15:00:00Z", [{ ...before, schedules: ["0 14 * * *"] }]);
  for (const time of ["15:00:00", "15:01:00", "16:00:00"]) await watchAt(after, `2027-01-01T${time}Z`);
  expect(after.sent).toEqual([]);
  await watchAt(after, "2027-01-02T14:02:01Z");
  expect(sentSlots(after)).toEqual([at("daily", "2027-01-02T14:00:00Z").slotKey]);
});

test("a deploy that changes anything else keeps what is expected", async () => {
  const env = await deployed([hourly()]);
  const after = redeployed(env, "2026-12-31T22:01:00Z", [hourly({ timeoutMs: 60_000, description: "new" })]);
  await watch(after.deps);
  await watchAt(after, FIRST_LOOK);
  expect(sentSlots(after)).toEqual([at("hourly", SLOT).slotKey]);
});

test("a job that is new to the deployment starts from there", async () => {
  const env = await deployed([hourly()]);
  const other = definition({ name: "other", schedules: ["0 * * * *"], overlap: "allow" });
  const after = redeployed(env, "2026-12-31T22:01:00Z", [hourly(), other]);
  await watch(after.deps);
  await watchAt(after, FIRST_LOOK);
  expect(after.sent.map(({ message }) => message.subject)).toEqual(["hourly"]);
  await watchAt(after, "2026-12-31T23:02:01Z");
  const next = after.sent.filter(({ message }) => message.slotKey.startsWith("2026-12-31T23:00"));
  expect(next.map(({ message }) => message.subject)).toEqual(["hourly", "other"]);
});

test("a job that comes back after it was removed starts from there", async () => {
  const env = await deployed([hourly()]);
  await watch(redeployed(env, "2026-12-31T21:40:00Z", []).deps);
  const back = redeployed(env, "2026-12-31T22:01:00Z", [hourly()]);
  await watch(back.deps);
  await watchAt(back, FIRST_LOOK);
  expect(back.sent).toEqual([]);
});

test("a job that does not fire in this stage is neither expected nor missed", async () => {
  const env = await deployed([hourly({ stages: ["prod"] })]);
  await watchAt(env, "2027-01-01T00:30:00Z");
  expect(runs(env)).toEqual([]);
});

test("a run that is active when its job is changed goes on, and its slot is not run again", async () => {
  const env = await deployed([hourly()]);
  await env.moveTo(SLOT);
  await env.deliver(SLOT, ["hourly"]);
  void env.work(env.lastSent());
  await env.settle();
  const after = redeployed(env, FIRST_LOOK, [hourly({ schedules: ["0 */2 * * *"] })]);
  await watch(after.deps);
  expect(after.sent).toEqual([]);
  expect(await after.run(at("hourly", SLOT))).toMatchObject({ st: "running" });
});

// Passes that crash, race or do not come.

test("a pass that crashed is repeated, and does no harm wherever it crashed", async () => {
  for (let step = 0; step < 20; step++) {
    const env = await deployed([hourly(), minutely({ policy: "skip", max: 1 })]);
    await env.moveTo("2026-12-31T22:04:00Z");
    let calls = 0;
    const dying = new Proxy(env.deps.table, {
      get: (table, name, receiver) =>
        name === "write" && calls++ === step
          ? () => Promise.reject(new Error("killed"))
          : Reflect.get(table, name, receiver),
    });
    await watch({ ...env.deps, table: dying }).catch(() => undefined);
    await watch(env.deps);
    const seen = states(env);
    expect({ step, missed: seen.filter(([, st]) => st === "missed").length }).toEqual({ step, missed: 32 });
    expect(await env.run(at("hourly", SLOT))).toMatchObject({ st: "queued" });
    expect(sentSlots(env)).toContain(at("hourly", SLOT).slotKey);
  }
});

test("a pass that crashed after it recorded a range of missed slots records it once", async () => {
  const env = await deployed([minutely({ policy: "skip", max: 1 })]);
  await env.moveTo("2027-01-02T00:00:00Z");
  const onCursor = ({ sk }: { readonly sk: string }) => sk === "cursor";
  // The first reads it, the second notes that the watchdog is back, the third moves it.
  env.pass("write", onCursor);
  env.pass("write", onCursor);
  env.fail("write", "down", onCursor);
  await expect(watch(env.deps)).rejects.toThrow("down");
  await watchAt(env, "2027-01-02T00:00:30Z");
  expect(runs(env).map((run) => [run["sk"], run["rangeCount"]])).toEqual([
    ["R#2027-01-01T23:57:00.000Z", 1_588],
    ["R#2027-01-01T23:58:00.000Z", undefined],
  ]);
});

test("two passes at once dispatch each slot once", async () => {
  const env = await deployed([hourly(), minutely({ policy: "latest", max: 1 })]);
  await env.moveTo("2026-12-31T22:05:00Z");
  await Promise.all([watch(env.deps), watch(env.deps)]);
  expect(sentSlots(env).filter((slot) => slot === at("hourly", SLOT).slotKey)).toHaveLength(1);
  expect(runs(env).filter((run) => run["st"] === "missed")).toHaveLength(33);
});

test("the cursor never goes back, whichever of two passes ends last", async () => {
  const env = await deployed([hourly()]);
  await env.moveTo("2026-12-31T22:30:00Z");
  const slow = redeployed(env, "2026-12-31T22:10:00Z", [hourly()]);
  const onCursor = ({ sk }: { readonly sk: string }) => sk === "cursor";
  slow.pass("write", onCursor);
  slow.meanwhile("write", onCursor, () => watch(env.deps));
  for (let pass = 0; pass < 2; pass++) {
    await watch(slow.deps);
    expect(await env.table.get(CURSOR_KEY, { consistent: true })).toMatchObject({
      doneUntilMs: msOf("2026-12-31T22:28:00Z"),
    });
  }
});

test("an outage of the watchdog skips nothing: the next pass goes on where the last one ended", async () => {
  const env = await deployed([hourly({ misfire: { policy: "all", max: 100, withinMs: 10 * 3_600_000 } })]);
  const restarted = redeployed(env, "2027-01-01T03:30:00Z", env.deps.jobs.all);
  await watch(restarted.deps);
  expect(restarted.sent).toHaveLength(6);
});

test("a job of once a week is run though the watchdog restarts every day", async () => {
  const weekly = definition({ name: "weekly", schedules: ["0 9 * * MON"], overlap: "allow" });
  let env = await deployed([weekly]);
  const sent: string[] = [];
  for (let day = 1; day <= 9; day++) {
    env = redeployed(env, `2027-01-0${day}T12:00:00Z`, [weekly]);
    env.handle(() => ({ kind: "returned" }));
    await watch(env.deps);
    for (const { message } of env.sent) await env.work(message);
    sent.push(...sentSlots(env));
  }
  expect(sent).toEqual([at("weekly", "2027-01-04T09:00:00Z").slotKey]);
});

test("a store that is down for some passes is caught up when it answers again", async () => {
  const env = await deployed([hourly()]);
  for (let minute = 3; minute < 13; minute++) {
    env.fail(minute % 2 === 0 ? "getMany" : "query", "down");
    await env.moveTo(`2026-12-31T22:${String(minute).padStart(2, "0")}:00Z`);
    await expect(watch(env.deps)).rejects.toThrow("down");
  }
  await watchAt(env, "2026-12-31T22:13:00Z");
  expect(sentSlots(env)).toEqual([at("hourly", SLOT).slotKey]);
});

test("a clock that is set back runs no slot a second time", async () => {
  const env = await deployed([hourly()]);
  await watchAt(env, FIRST_LOOK);
  env.skew(-600_000);
  for (const time of ["22:04:00", "22:06:00", "22:11:00", "22:13:00"])
    await watchAt(env, `2026-12-31T${time}Z`);
  expect(runs(env)).toHaveLength(1);
  expect(await env.run(at("hourly", SLOT))).not.toHaveProperty("dup");
});

test("a record that only counts deliveries is no run: its slot is dispatched", async () => {
  const env = await deployed([hourly()]);
  await env.put(runKey(at("hourly", SLOT)), { dup: new Set(["someone"]) });
  await watchAt(env, FIRST_LOOK);
  expect(sentSlots(env)).toEqual([at("hourly", SLOT).slotKey]);
});
