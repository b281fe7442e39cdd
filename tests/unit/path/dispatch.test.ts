import { expect, test } from "vitest";
import { dispatch } from "../../../lib/app/path/dispatch.ts";
import { CONTROL_KEY } from "../../../lib/core/items.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, onRun, setup } from "../../support/path.ts";

// The hour that the clocks of Europe skip in spring: an instant like any other.
const SLOT = "2026-03-29T01:00:00Z";
const NOW = "2026-03-29T01:00:01.800Z";

const report = definition({ name: "report", schedules: ["0 * * * *"], overlap: "allow" });
const sync = definition({ name: "sync", schedules: ["0 * * * *"] });
const elsewhere = definition({ name: "elsewhere", schedules: ["0 * * * *"], stages: ["prod"] });
const superset = definition({
  name: "odd-minutes",
  // No cron of AWS says that, so a tick of every minute is deployed.
  schedules: ["every(7 minutes)"],
  startsAtMs: msOf(SLOT),
  overlap: "allow",
});

const make = (now = NOW) => setup({ now, jobs: [report, sync, elsewhere, superset] });
const event = (scheduledTime: string, subjects: readonly string[] = ["report"]) => ({
  ...schedulerInput(subjects),
  scheduledTime,
});

test.each([
  ["an empty object", {}],
  ["nothing", undefined],
  ["a text", "report"],
  ["a list", [event(SLOT)]],
  ["a request of an API", { httpMethod: "POST", path: "/", headers: {}, body: '{"task":"report"}' }],
  ["a timer of another cloud", { Type: "Timer", TriggerName: "report", Time: SLOT }],
  ["an event of another version", { ...event(SLOT), version: 2 }],
  ["an event without subjects", { ...event(SLOT), subjects: [] }],
  ["an event whose subjects are no texts", { ...event(SLOT), subjects: [7] }],
  ["an event without an instant", { ...event(SLOT), scheduledTime: undefined }],
  ["an instant that is none", event("2026-02-29T01:00:00Z")],
  ["an instant without a zone", event("2026-03-29T01:00:00")],
  ["a context attribute left as literal text", event("<aws.scheduler.scheduled-time>")],
])("%s throws, and touches nothing", async (_what, raw) => {
  const env = make();
  await expect(dispatch(env.deps, raw, "request-1")).rejects.toMatchObject({ code: "unknown_event" });
  expect(env.calls).toEqual([]);
});

test("an event claims its slot for each of its jobs, with one read", async () => {
  const env = make();
  expect(await env.deliver(SLOT, ["report", "sync"])).toEqual(["claimed", "claimed"]);
  expect(env.sent.map(({ message }) => [message.subject, message.slotKey])).toEqual([
    ["report", "2026-03-29T01:00:00.000Z"],
    ["sync", "2026-03-29T01:00:00.000Z"],
  ]);
  expect(env.calls.filter((call) => call.startsWith("get"))).toEqual(["get control"]);
});

test("the slot is the event's, whatever the clock of the dispatcher says", async () => {
  for (const skewMs of [90_000, -90_000, -600_000]) {
    const env = make();
    env.skew(skewMs);
    expect(await env.deliver(SLOT, ["report"])).toEqual(["claimed"]);
    expect(await env.deliver(SLOT, ["report"], "request-2")).toEqual(["duplicate"]);
    expect(await env.run(at("report", SLOT))).toMatchObject({ st: "queued" });
  }
});

test("a job that fails does not keep the others of its event from being claimed", async () => {
  const env = make();
  await expect(env.deliver(SLOT, ["gone", "report"])).rejects.toMatchObject({ code: "unknown_job" });
  expect(env.sent.map(({ message }) => message.subject)).toEqual(["report"]);
});

test("several jobs that fail are told as one error", async () => {
  const env = make();
  await expect(env.deliver(SLOT, ["gone", "lost", "report"])).rejects.toThrow("2 jobs of this event failed");
  expect(env.sent).toHaveLength(1);
});

test("an instant that the job's schedule does not name is dropped and told", async () => {
  const env = make();
  expect(await env.deliver("2026-03-29T01:00:30Z", ["report"])).toEqual(["off-schedule"]);
  expect(env.codes()).toEqual(["off-schedule-event"]);
  expect(env.sent).toEqual([]);
});

test("a tick that is finer than the slots costs no write and no line", async () => {
  const env = make("2026-03-29T01:08:05Z");
  expect(await env.deliver("2026-03-29T01:07:00Z", ["odd-minutes"])).toEqual(["claimed"]);
  env.calls.length = 0;
  expect(await env.deliver("2026-03-29T01:08:00Z", ["odd-minutes"])).toEqual(["off-schedule"]);
  expect(env.calls).toEqual(["get control"]);
  expect(env.codes()).toEqual([]);
});

test("a job that does not fire in this stage is not claimed", async () => {
  const env = make();
  expect(await env.deliver(SLOT, ["elsewhere"])).toEqual(["off-schedule"]);
  expect(env.sent).toEqual([]);
});

test.each(["report", "sync"])(
  "a slot of %s while it is paused has a record that says so, and is not sent",
  async (subject) => {
    const env = make();
    await env.put(CONTROL_KEY, { [`p#${subject}`]: { sinceMs: 1, reason: "holiday" } });
    expect(await env.deliver(SLOT, [subject])).toEqual(["skipped"]);
    expect(await env.run(at(subject, SLOT))).toMatchObject({ st: "skipped", reason: "paused" });
    expect(env.sent).toEqual([]);
    expect(await env.lock(subject)).toBeUndefined();
  },
);

test("a pause ends with the first slot that fires again", async () => {
  const env = make("2026-03-29T02:00:01Z");
  await env.put(CONTROL_KEY, { "p#report": { sinceMs: 1, untilMs: msOf("2026-03-29T02:00:00Z") } });
  expect(await env.deliver(SLOT, ["report"])).toEqual(["skipped"]);
  expect(await env.deliver("2026-03-29T02:00:00Z", ["report"])).toEqual(["claimed"]);
});

test("a pause of one job leaves the others alone", async () => {
  const env = make();
  await env.put(CONTROL_KEY, { "p#report": { sinceMs: 1 } });
  expect(await env.deliver(SLOT, ["report", "sync"])).toEqual(["skipped", "claimed"]);
});

test.each(["report", "sync"])(
  "a run of %s that was claimed before the pause goes on, also when its event comes again",
  async (subject) => {
    const env = make();
    await env.deliver(SLOT, [subject]);
    await env.put(CONTROL_KEY, { [`p#${subject}`]: { sinceMs: 1 } });
    expect(await env.deliver(SLOT, [subject], "request-2")).toEqual(["duplicate"]);
    env.handle(() => ({ kind: "returned" }));
    await env.work(env.lastSent());
    expect(await env.deliver(SLOT, [subject], "request-3")).toEqual(["duplicate"]);
    expect(await env.run(at(subject, SLOT))).toMatchObject({ st: "succeeded" });
  },
);

test("the slot that is to be skipped next is skipped once, whoever reads it again", async () => {
  const env = make("2026-03-29T02:00:01Z");
  await env.put(CONTROL_KEY, { "n#report": { slot: at("report", SLOT).slotKey } });
  expect(await env.deliver(SLOT, ["report"])).toEqual(["skipped"]);
  expect(await env.run(at("report", SLOT))).toMatchObject({ reason: "skipped by hand" });
  expect(await env.deliver("2026-03-29T02:00:00Z", ["report"])).toEqual(["claimed"]);
});

test("a delivery of a slot up to 30 days old is claimed, an older one has a record as expired", async () => {
  const env = make("2026-04-28T01:00:00Z");
  expect(await env.deliver(SLOT, ["report"])).toEqual(["claimed"]);
  const late = make("2026-04-28T01:00:00.001Z");
  expect(await late.deliver(SLOT, ["report"])).toEqual(["expired"]);
  expect(await late.run(at("report", SLOT))).toMatchObject({ st: "expired" });
  expect(late.sent).toEqual([]);
});

test.each([1_800, 55_000, 600_000])(
  "a delivery %i ms after its slot is claimed all the same",
  async (lateMs) => {
    const env = make(SLOT);
    await env.moveBy(lateMs);
    expect(await env.deliver(SLOT, ["report"])).toEqual(["claimed"]);
  },
);

test.each(["report", "sync"])(
  "a crash of %s between claim and send is mended by the retry of the same request",
  async (subject) => {
    const env = make();
    env.fail("send", "down");
    await expect(env.deliver(SLOT, [subject])).rejects.toThrow("down");
    expect(await env.deliver(SLOT, [subject])).toEqual(["claimed"]);
    expect(env.sent).toHaveLength(1);
    expect(await env.deliver(SLOT, [subject], "another-request")).toEqual(["duplicate"]);
    expect(env.sent).toHaveLength(1);
  },
);

test.each(["report", "sync"])(
  "fifty kills of %s between claim and send leave one message and one claim",
  async (subject) => {
    const env = make();
    env.fail("send", "down", () => true, 50);
    for (let n = 0; n < 50; n++) await expect(env.deliver(SLOT, [subject])).rejects.toThrow("down");
    expect(await env.deliver(SLOT, [subject])).toEqual(["claimed"]);
    expect(env.sent).toHaveLength(1);
    expect((await env.run(at(subject, SLOT)))?.["dup"]).toBeUndefined();
  },
);

test("two dispatchers of one name that are told the same minute claim it once", async () => {
  const env = make();
  const both = await Promise.all([
    env.deliver(SLOT, ["report"], "request-1"),
    env.deliver(SLOT, ["report"], "request-2"),
  ]);
  expect(both.flat().sort()).toEqual(["claimed", "duplicate"]);
});

test("two jobs on one schedule have a run each", async () => {
  const env = make();
  await env.deliver(SLOT, ["report"]);
  await env.deliver(SLOT, ["sync"], "request-2");
  expect(env.sent).toHaveLength(2);
});

test("two schedules of one job that name the same slot have one run", async () => {
  const twice = definition({ name: "twice", schedules: ["0 * * * *", "0 1 * * *"], overlap: "allow" });
  const env = setup({ now: NOW, jobs: [twice] });
  expect(await env.deliver(SLOT, ["twice"], "hourly")).toEqual(["claimed"]);
  expect(await env.deliver(SLOT, ["twice"], "daily")).toEqual(["duplicate"]);
});

test("nothing is claimed while the table is down, and the invocation fails so that it comes again", async () => {
  const env = make();
  env.fail("write", "down", onRun);
  await expect(env.deliver(SLOT, ["report"])).rejects.toMatchObject({ retryable: true });
  expect(await env.deliver(SLOT, ["report"])).toEqual(["claimed"]);
});
