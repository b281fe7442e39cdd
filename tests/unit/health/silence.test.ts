import { expect, test } from "vitest";
import { cancelRun, retryRun } from "../../../lib/app/operate/operator.ts";
import { CONTROL_KEY, CURSOR_KEY } from "../../../lib/core/items.ts";
import type { Alerts, JobDefinition } from "../../../lib/core/jobs/job.ts";
import { DEFAULTS } from "../../../lib/core/jobs/job.ts";
import { start } from "../../../lib/core/runs/transitions.ts";
import { AWS_TIMINGS } from "../../../lib/core/settings.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/core/time.ts";
import type { AttemptEnd } from "../../../lib/ports/attempts.ts";
import { definition } from "../../support/definitions.ts";
import { type LiveStack, liveStack, toldIn } from "../../support/live-stack.ts";
import { at, failure, msOf } from "../../support/path.ts";

const START = "2027-03-01T00:31:00Z";
const DONE: AttemptEnd = { kind: "returned" };

const alerts = (changes: Partial<Alerts>): Alerts => ({ ...DEFAULTS.alerts, ...changes });

const hourly = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "report", schedules: ["0 * * * *"], ...changes });

const started = async (job: JobDefinition, now = START): Promise<LiveStack> => {
  const stack = await liveStack({ now, jobs: [job] });
  stack.handle(() => DONE);
  return stack;
};

/** A worker that starts the run and is gone. */
const startAndVanish = (stack: LiveStack, slotIso: string) =>
  stack.table.write(
    start({
      occurrence: at("report", slotIso),
      epoch: 1,
      token: "gone",
      nowMs: stack.now(),
      leaseUntilMs: stack.now() + AWS_TIMINGS.leaseMs,
      locked: true,
      trigger: "schedule",
      queuedAtMs: stack.now(),
    }),
  );

test.each([
  ["skip", "01:36"],
  ["allow", "01:32"],
] as const)(
  "a run that nobody starts is late within two minutes of its grace (overlap %s)",
  async (overlap, over) => {
    const stack = await started(hourly({ overlap }));
    stack.works.workers = false;
    await stack.playUntil("2027-03-01T01:30:00Z");
    expect(toldIn(stack)).toEqual(["03-01T01:06 notify late"]);
    expect(stack.alerts()[0]?.reason).toBe(
      "its run has not started within 5 minutes of 2027-03-01T01:00:00Z",
    );
    stack.works.workers = true;
    await stack.playUntil("2027-03-01T01:50:00Z");
    expect(toldIn(stack)).toEqual(["03-01T01:06 notify late", `03-01T${over} notify recovered`]);
    expect(stack.codes().filter((code) => code === "late")).toEqual(["late"]);
  },
);

test("a late run is no longer so when it is over, not when it starts", async () => {
  const stack = await started(hourly({ timeoutMs: HOUR_MS }));
  stack.handle(() => undefined);
  stack.works.workers = false;
  await stack.playUntil("2027-03-01T01:10:00Z");
  stack.works.workers = true;
  await stack.playUntil("2027-03-01T01:40:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:06 notify late"]);
  stack.lastAttempt().end(DONE);
  await stack.playUntil("2027-03-01T01:50:00Z");
  expect(stack.alerts().map(({ kind }) => kind)).toEqual(["late", "recovered"]);
});

test("a slot that the schedule did not strike, and the watchdog could dispatch, is no silence", async () => {
  const stack = await started(hourly());
  stack.works.schedules = false;
  await stack.playUntil("2027-03-01T04:30:00Z");
  expect(stack.events.filter(({ state }) => state === "succeeded").length).toBe(4);
  expect(toldIn(stack)).toEqual([]);
});

test("a slot that its job does not catch up is missed, which is told once and is over with the next success", async () => {
  const stack = await started(hourly({ misfire: { policy: "skip", max: 1 } }));
  stack.strikeIf((_job, slotMs) => slotMs !== msOf("2027-03-01T02:00:00Z"));
  await stack.playUntil("2027-03-01T04:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T02:03 notify missed x1", "03-01T03:03 notify recovered"]);
});

test("a queue that takes nothing is told of, though each pass of the watchdog fails", async () => {
  const stack = await started(hourly());
  stack.works.schedules = false;
  stack.fail("send", "down", () => true, 10_000);
  await stack.playUntil("2027-03-01T01:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:05 notify late"]);
});

test("late runs of one job are one matter, and count apart", async () => {
  const stack = await started(hourly({ schedules: ["*/5 * * * *"], overlap: "allow" }));
  stack.works.workers = false;
  await stack.playUntil("2027-03-01T01:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T00:41 notify late"]);
  expect(stack.codes().filter((code) => code === "late").length).toBe(11);
  stack.works.workers = true;
  await stack.playUntil("2027-03-01T02:30:00Z");
  expect(stack.alerts().map(({ kind }) => kind)).toEqual(["late", "recovered"]);
});

test("a hundred late runs are one alert, and each is counted once", async () => {
  const stack = await started(hourly({ schedules: ["* * * * *"], overlap: "allow" }), "2027-03-01T00:31:30Z");
  stack.works.workers = false;
  await stack.playUntil("2027-03-01T02:20:00Z");
  const late = stack.notices.filter(({ code }) => code === "late").map(({ fields }) => fields["runId"]);
  expect(late.length).toBeGreaterThan(100);
  expect(new Set(late).size).toBe(late.length);
  stack.works.workers = true;
  await stack.playUntil("2027-03-01T03:00:00Z");
  expect(stack.alerts().map(({ kind }) => kind)).toEqual(["late", "recovered"]);
});

test("a start that was late and is over when it is seen is told, and needs no recovery", async () => {
  const stack = await started(hourly());
  stack.works.watchdog = false;
  stack.works.workers = false;
  await stack.playUntil("2027-03-01T01:09:00Z");
  stack.works.workers = true;
  await stack.playUntil("2027-03-01T01:11:00Z");
  stack.works.watchdog = true;
  await stack.playUntil("2027-03-01T01:20:00Z");
  expect(stack.alerts().map(({ kind, reason }) => [kind, reason])).toEqual([
    ["late", "its run started 10 minutes late, and is succeeded"],
    ["watchdog-back", expect.stringMatching(/^the watchdog was away for 41 minutes, from /)],
  ]);
});

test("outside its hours a job is silent, and the first alarm comes after the first slot's grace", async () => {
  const job = hourly({
    schedules: ["*/5 6-23 * * *"],
    timezone: "Europe/Amsterdam",
    graceMs: 15 * MINUTE_MS,
  });
  const stack = await started(job, "2027-03-01T22:00:00Z");
  await stack.playUntil("2027-03-01T22:56:00Z");
  stack.works.workers = false;
  await stack.playUntil("2027-03-02T05:15:00Z");
  expect(toldIn(stack)).toEqual([]);
  await stack.playUntil("2027-03-02T05:17:00Z");
  expect(toldIn(stack)).toEqual(["03-02T05:16 notify late"]);
});

test("a run belongs to its slot, however early it starts and however late it ends", async () => {
  const stack = await started(hourly({ schedules: ["*/5 * * * *"], overlap: "allow" }));
  // A dispatcher whose clock is ahead: the run starts 40 seconds before its slot.
  stack.works.schedules = false;
  await stack.moveTo("2027-03-01T00:34:20Z");
  await stack.deliver("2027-03-01T00:35:00Z", ["report"]);
  stack.works.schedules = true;
  // One that ends after the next slot, whose own run is done before.
  stack.handle(({ slotMs }) => (slotMs === msOf("2027-03-01T00:40:00Z") ? undefined : DONE));
  await stack.playUntil("2027-03-01T00:47:00Z");
  stack.lastAttempt();
  stack.attempts.find(({ request }) => request.slotMs === msOf("2027-03-01T00:40:00Z"))?.end(DONE);
  await stack.playUntil("2027-03-01T01:10:00Z");
  expect(await stack.run(at("report", "2027-03-01T00:35:00Z"))).toMatchObject({ st: "succeeded" });
  expect(await stack.run(at("report", "2027-03-01T00:40:00Z"))).toMatchObject({ st: "succeeded" });
  expect(toldIn(stack)).toEqual([]);
});

test("each run that is not over in time is told of, and later starts do not clear it", async () => {
  const job = hourly({
    schedules: ["*/5 * * * *"],
    overlap: "allow",
    timeoutMs: 10 * HOUR_MS,
    alerts: alerts({ finishWithinMs: 10 * MINUTE_MS }),
  });
  const stack = await started(job);
  stack.handle(() => undefined);
  await stack.playUntil("2027-03-01T00:58:00Z");
  expect(toldIn(stack)).toEqual([
    "03-01T00:46 notify overrun",
    "03-01T00:51 notify overrun",
    "03-01T00:55 notify overrun",
  ]);
  expect(stack.alerts()[0]).toMatchObject({
    runId: "report~20270301T003500Z",
    reason: "its run is not over 11 minutes after its start",
  });
});

test("a run whose worker is gone is told of, sent again, and over when the run is", async () => {
  const stack = await started(hourly());
  stack.works.workers = false;
  await stack.playUntil("2027-03-01T01:00:00Z");
  await startAndVanish(stack, "2027-03-01T01:00:00Z");
  await stack.playUntil("2027-03-01T01:05:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify stuck"]);
  expect(stack.codes()).toContain("stuck");
  stack.works.workers = true;
  await stack.playUntil("2027-03-01T01:20:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify stuck", "03-01T01:07 notify recovered"]);
});

test("a run that waits for a person is told of at once, with what the person can do", async () => {
  const job = hourly({ onUnknown: "park" });
  const stack = await started(job);
  stack.works.workers = false;
  await stack.playUntil("2027-03-01T01:00:00Z");
  await startAndVanish(stack, "2027-03-01T01:00:00Z");
  stack.works.workers = true;
  await stack.playUntil("2027-03-01T01:20:00Z");
  const parked = stack.alerts().find(({ kind }) => kind === "parked");
  expect(parked?.reason).toMatch(/"belfry retry report~20270301T010000Z" or "belfry cancel report~2027/);
  await cancelRun(stack.deps, { job, occurrence: at("report", "2027-03-01T01:00:00Z") }, "not needed");
  await stack.playUntil("2027-03-01T01:30:00Z");
  expect(stack.alerts().map(({ kind }) => kind)).toEqual(["stuck", "parked", "recovered"]);
});

test("a retried run is late from when it was asked for, not from its slot", async () => {
  const job = hourly({ retry: { ...DEFAULTS.retry, retries: 0 } });
  const stack = await started(job);
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T01:40:00Z");
  stack.works.workers = false;
  await retryRun(stack.deps, { job, occurrence: at("report", "2027-03-01T01:00:00Z") });
  await stack.playUntil("2027-03-01T01:44:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1"]);
  await stack.playUntil("2027-03-01T01:48:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1", "03-01T01:46 notify late"]);
});

test("a run that is slow is told once, until one is not", async () => {
  const stack = await started(
    hourly({ alerts: alerts({ slowAfterMs: 10 * MINUTE_MS }), timeoutMs: HOUR_MS }),
  );
  stack.handle(() => undefined);
  const takes = async (hour: string, minutes: number) => {
    await stack.playUntil(`2027-03-01T${hour}:${String(minutes).padStart(2, "0")}:00Z`);
    stack.lastAttempt().end(DONE);
  };
  for (const [hour, minutes] of [
    ["01", 12],
    ["02", 15],
    ["03", 5],
    ["04", 11],
  ] as const)
    await takes(hour, minutes);
  await stack.playUntil("2027-03-01T04:30:00Z");
  expect(stack.alerts().map(({ kind, reason }) => [kind, reason])).toEqual([
    ["slow", "its run took 12 minutes, more than 10 minutes"],
    ["slow", "its run took 11 minutes, more than 10 minutes"],
  ]);
});

test("a job that changes all the time is told to do so, once, and how it is when it is steady", async () => {
  const stack = await started(
    hourly({ schedules: ["*/5 * * * *"], retry: { ...DEFAULTS.retry, retries: 0 } }),
  );
  stack.handle(({ slotMs }) => (slotMs % (10 * MINUTE_MS) === 0 ? failure() : DONE));
  await stack.playUntil("2027-03-01T04:00:00Z");
  const kinds = stack.alerts().map(({ kind }) => kind);
  expect(kinds).toEqual(["failed", "recovered", "failed", "recovered", "failed", "recovered", "flapping"]);
  stack.handle(() => DONE);
  await stack.playUntil("2027-03-01T07:00:00Z");
  expect(toldIn(stack).slice(7)).toEqual(["03-01T06:08 notify recovered"]);
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T07:30:00Z");
  expect(toldIn(stack).slice(8)).toEqual(["03-01T07:08 notify failed x1", "03-01T07:18 page failing x3"]);
});

test("a page comes through while a job flaps", async () => {
  const stack = await started(
    hourly({ schedules: ["*/5 * * * *"], retry: { ...DEFAULTS.retry, retries: 0 } }),
  );
  stack.handle(({ slotMs }) => (slotMs % (10 * MINUTE_MS) === 0 ? failure() : DONE));
  await stack.playUntil("2027-03-01T02:00:00Z");
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T02:30:00Z");
  expect(toldIn(stack).at(-1)).toMatch(/page failing x3$/);
});

test("back from an outage of its own, the watchdog says so once, and judges what happened from the records", async () => {
  const stack = await started(hourly({ retry: { ...DEFAULTS.retry, retries: 0 } }));
  await stack.playUntil("2027-03-01T01:30:00Z");
  stack.works.watchdog = false;
  stack.handle(({ slotMs }) => (slotMs < msOf("2027-03-01T05:00:00Z") ? failure() : DONE));
  await stack.playUntil("2027-03-01T06:30:00Z");
  expect(toldIn(stack)).toEqual([]);
  stack.works.watchdog = true;
  await stack.playUntil("2027-03-01T08:30:00Z");
  expect(stack.alerts().map(({ kind, reason }) => [kind, reason])).toEqual([
    [
      "failed",
      expect.stringMatching(/^3 runs; the newest: the run is dead: .*; a later slot has succeeded$/),
    ],
    [
      "watchdog-back",
      expect.stringMatching(/^the watchdog was away for 5 hours, from 2027-03-01T01:30:00Z /),
    ],
  ]);
});

test("a pass that stood still through the outage, and moves the cursor while another is back already, makes it no second absence", async () => {
  const stack = await started(hourly());
  await stack.playUntil("2027-03-01T01:30:00Z");
  const cursor = await stack.table.get(CURSOR_KEY, { consistent: true });
  stack.works.watchdog = false;
  await stack.playUntil("2027-03-01T01:45:00Z");
  stack.meanwhile(
    "get",
    ({ pk, sk }) => pk === CONTROL_KEY.pk && sk === CONTROL_KEY.sk,
    () => stack.put(CURSOR_KEY, { doneUntilMs: Number(cursor?.["doneUntilMs"]) + MINUTE_MS }),
  );
  stack.works.watchdog = true;
  await stack.playUntil("2027-03-01T01:50:00Z");
  expect(stack.alerts().map(({ kind }) => kind)).toEqual(["watchdog-back"]);
});

test("a failure after a success that nobody saw is another one, and is told", async () => {
  const stack = await started(hourly({ retry: { ...DEFAULTS.retry, retries: 0 } }));
  stack.handle(({ slotMs }) => (slotMs === msOf("2027-03-01T02:00:00Z") ? DONE : failure()));
  await stack.playUntil("2027-03-01T01:30:00Z");
  stack.works.watchdog = false;
  await stack.playUntil("2027-03-01T03:30:00Z");
  stack.works.watchdog = true;
  await stack.playUntil("2027-03-01T03:50:00Z");
  expect(stack.alerts().map(({ kind, slotMs }) => [kind, slotMs])).toEqual([
    ["failed", msOf("2027-03-01T01:00:00Z")],
    ["failed", msOf("2027-03-01T03:00:00Z")],
    ["watchdog-back", undefined],
  ]);
});

test("passes that fail for long are no absence", async () => {
  const stack = await started(hourly());
  await stack.playUntil("2027-03-01T01:01:00Z");
  stack.works.workers = false;
  stack.fail("send", "down", () => true, 25);
  await stack.playUntil("2027-03-01T01:30:00Z");
  expect(stack.alerts().map(({ kind }) => kind)).not.toContain("watchdog-back");
});
