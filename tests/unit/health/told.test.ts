import { expect, test } from "vitest";
import { pauseJob, resumeJob, retryRun } from "../../../lib/app/operate/operator.ts";
import { makeRunByHand } from "../../../lib/app/operate/run-by-hand.ts";
import type { Alerts, JobDefinition } from "../../../lib/core/jobs/job.ts";
import { DEFAULTS } from "../../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS, shortIsoOf } from "../../../lib/core/time.ts";
import type { AttemptEnd } from "../../../lib/ports/attempts.ts";
import { definition } from "../../support/definitions.ts";
import { type LiveStack, liveStack, toldIn } from "../../support/live-stack.ts";
import { at, failure, msOf } from "../../support/path.ts";

const START = "2027-03-01T00:30:00Z";
const DONE: AttemptEnd = { kind: "returned" };

const alerts = (changes: Partial<Alerts>): Alerts => ({ ...DEFAULTS.alerts, ...changes });

/** Three attempts within five minutes. */
const hourly = (changes: Partial<JobDefinition> = {}) =>
  definition({
    name: "report",
    schedules: ["0 * * * *"],
    retry: { ...DEFAULTS.retry, jitter: 0, retries: 2, firstWaitMs: MINUTE_MS },
    ...changes,
  });

const started = async (job: JobDefinition, now = START): Promise<LiveStack> => {
  const stack = await liveStack({ now, jobs: [job] });
  stack.handle(() => DONE);
  return stack;
};

test("a job whose runs succeed in time is told of in no way", async () => {
  const stack = await started(hourly());
  await stack.playUntil("2027-03-02T00:30:00Z");
  expect(stack.events.length).toBe(24);
  expect(toldIn(stack)).toEqual([]);
  expect(stack.table.items().filter(({ pk }) => pk === "H")).toEqual([]);
});

test("six failures in a row are one notice, one page at the third, and one recovery", async () => {
  const stack = await started(hourly({ owner: "team-a", runbook: "https://example.com/report" }));
  stack.handle(() => failure("no such host"));
  await stack.playUntil("2027-03-01T06:30:00Z");
  stack.handle(() => DONE);
  await stack.playUntil("2027-03-01T09:30:00Z");
  expect(stack.events.filter(({ outcome }) => outcome === "threw").length).toBe(18);
  expect(toldIn(stack)).toEqual([
    "03-01T01:03 notify failed x1",
    "03-01T03:03 page failing x3",
    "03-01T07:03 page recovered",
  ]);
  expect(stack.alerts()[1]).toMatchObject({
    id: "flip~report~2",
    job: "report",
    owner: "team-a",
    runbook: "https://example.com/report",
    timezone: "UTC",
    slotMs: msOf("2027-03-01T03:00:00Z"),
    runId: "report~20270301T030000Z",
    error: { name: "TypeError", message: "no such host" },
    reason: expect.stringMatching(
      /^3 failures in a row since 2027-03-01T01:00:00Z; the newest: the run is dead: 3 attempts failed: TypeError/,
    ),
  });
  expect(stack.codes().filter((code) => code === "page-threshold")).toEqual(["page-threshold"]);
});

test("a pass that is made again tells nothing again", async () => {
  const stack = await started(hourly());
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T03:30:00Z");
  const told = toldIn(stack);
  for (let n = 0; n < 3; n++) await stack.pass();
  expect(toldIn(stack)).toEqual(told);
});

test("what stays wrong is told again at an interval, and no more often", async () => {
  const stack = await started(hourly({ alerts: alerts({ remindEveryMs: 6 * HOUR_MS }) }));
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T22:30:00Z");
  expect(toldIn(stack)).toEqual([
    "03-01T01:03 notify failed x1",
    "03-01T03:03 page failing x3",
    "03-01T09:03 notify reminder x9",
    "03-01T15:03 notify reminder x15",
    "03-01T21:03 notify reminder x21",
  ]);
});

test("a job that has no slot for long is reminded of between its slots too", async () => {
  const stack = await started(
    hourly({ schedules: ["0 1 * * *"], alerts: alerts({ remindEveryMs: 6 * HOUR_MS }) }),
  );
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T14:30:00Z");
  expect(toldIn(stack)).toEqual([
    "03-01T01:03 notify failed x1",
    "03-01T07:04 notify reminder x1",
    "03-01T13:05 notify reminder x1",
  ]);
});

test("so many failures as the job says are the first notice, and a page for nobody is none", async () => {
  const stack = await started(
    hourly({ alerts: { notifyAfter: 2, remindEveryMs: HOUR_MS * 24, recovery: false } }),
  );
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T07:30:00Z");
  stack.handle(() => DONE);
  await stack.playUntil("2027-03-01T09:30:00Z");
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T10:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T02:03 notify failing x2"]);
  await stack.playUntil("2027-03-01T11:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T02:03 notify failing x2", "03-01T11:03 notify failing x2"]);
});

test("a run that was skipped neither heals nor hides a failure", async () => {
  const stack = await started(hourly());
  const ends: { readonly [hour: string]: AttemptEnd } = { "02": { kind: "skip", reason: "nothing to do" } };
  stack.handle(({ slotMs }) => ends[shortIsoOf(slotMs).slice(11, 13)] ?? failure());
  await stack.playUntil("2027-03-01T02:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1"]);
  await stack.playUntil("2027-03-01T04:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1", "03-01T04:03 page failing x3"]);
});

test("failures in a row are counted in the order of the slots, not of the ends", async () => {
  const slow = {
    ...DEFAULTS.retry,
    jitter: 0,
    retries: 1,
    firstWaitMs: 150 * MINUTE_MS,
    maxWaitMs: 150 * MINUTE_MS,
  };
  const stack = await started(hourly({ overlap: "allow", retry: slow }));
  // The run of 01:00 ends last of all, dead; those of 02:00 and 03:00 have succeeded by then.
  stack.handle(({ slotMs }) => (shortIsoOf(slotMs).slice(11, 13) === "01" ? failure() : DONE));
  await stack.playUntil("2027-03-01T06:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T03:32 notify failed x1"]);
  expect(stack.alerts()[0]?.reason).toMatch(/a later slot has succeeded$/);
});

test("a retry that succeeds heals its slot", async () => {
  const job = hourly();
  const stack = await started(job);
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T01:30:00Z");
  stack.handle(() => DONE);
  await retryRun(stack.deps, { job, occurrence: at("report", "2027-03-01T01:00:00Z") });
  await stack.playUntil("2027-03-01T01:50:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1", "03-01T01:33 notify recovered"]);
});

test("a run by hand says nothing of the schedule: it neither fails nor heals it", async () => {
  const job = hourly();
  const stack = await started(job);
  const byHand = async (end: AttemptEnd) => {
    stack.handle(() => end);
    await makeRunByHand(stack.deps)({ job, input: { any: 1 } });
    await stack.playFor(20 * MINUTE_MS);
  };
  await byHand(failure());
  expect(toldIn(stack)).toEqual([]);
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T01:10:00Z");
  await byHand(DONE);
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1"]);
});

test("of a job that runs by hand only, runs by hand say everything", async () => {
  const job = hourly({ schedules: [] });
  const stack = await started(job);
  stack.handle(() => failure());
  await makeRunByHand(stack.deps)({ job });
  await stack.playFor(20 * MINUTE_MS);
  stack.handle(() => DONE);
  await makeRunByHand(stack.deps)({ job });
  await stack.playFor(20 * MINUTE_MS);
  expect(stack.alerts().map(({ kind }) => kind)).toEqual(["failed", "recovered"]);
});

test("a paused job is not told of for its skipped slots, and a resumed one is as it was", async () => {
  const job = hourly({ alerts: alerts({ remindEveryMs: 2 * HOUR_MS }) });
  const stack = await started(job);
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T01:30:00Z");
  await pauseJob(stack.deps, job, { reason: "database moves" });
  await stack.playUntil("2027-03-01T12:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1"]);
  await resumeJob(stack.deps, job);
  stack.handle(() => DONE);
  await stack.playUntil("2027-03-01T13:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1", "03-01T13:03 notify recovered"]);
});

test("time-outs count like any failure, and a job that pauses itself says why, and how it is resumed", async () => {
  const job = hourly({ alerts: alerts({ pauseAfter: 4 }) });
  const stack = await started(job);
  const timedOut: AttemptEnd = { kind: "timed-out", error: { name: "TimeoutError", message: "5 minutes" } };
  stack.handle(() => timedOut);
  await stack.playUntil("2027-03-01T09:30:00Z");
  expect(toldIn(stack)).toEqual([
    "03-01T01:03 notify failed x1",
    "03-01T03:03 page failing x3",
    "03-01T04:03 notify paused x4",
  ]);
  expect(stack.alerts().at(-1)?.reason).toMatch(
    /^it paused itself after 4 failures in a row .*TimeoutError: 5 minutes; "belfry resume report" lets it fire again$/,
  );
  expect(await stack.run(at("report", "2027-03-01T05:00:00Z"))).toMatchObject({
    st: "skipped",
    reason: "paused",
  });
  await resumeJob(stack.deps, job);
  await stack.playUntil("2027-03-01T12:30:00Z");
  expect(toldIn(stack).length).toBe(3);
  await stack.playUntil("2027-03-01T13:30:00Z");
  expect(toldIn(stack).at(-1)).toBe("03-01T13:03 notify paused x8");
});

test("a job pauses itself although a pause of former days, which is over, stands in its control item", async () => {
  const job = hourly({ alerts: alerts({ pauseAfter: 2 }) });
  const stack = await started(job);
  await pauseJob(stack.deps, job, { reason: "database moves", untilMs: msOf("2027-03-01T01:00:00Z") });
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T05:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:03 notify failed x1", "03-01T02:03 notify paused x2"]);
  expect(await stack.run(at("report", "2027-03-01T03:00:00Z"))).toMatchObject({
    st: "skipped",
    reason: "paused",
  });
});

const passingIn = (stack: LiveStack): readonly string[] =>
  stack.alerts().map(({ kind, passing }) => `${kind}${passing === true ? ", passing" : ""}`);

test("an alert says when its end will not be told: it is over already, or nobody wants to hear of ends", async () => {
  const slow = await started(hourly({ alerts: alerts({ slowAfterMs: 1 }) }));
  slow.handle(undefined);
  await slow.playUntil("2027-03-01T01:02:00Z");
  slow.attempts.at(-1)?.end(DONE);
  slow.handle(() => failure());
  await slow.playUntil("2027-03-01T02:30:00Z");
  slow.handle(() => DONE);
  await slow.playUntil("2027-03-01T03:30:00Z");
  expect(passingIn(slow)).toEqual(["slow, passing", "failed", "recovered"]);

  const endless = await started(hourly({ alerts: alerts({ recovery: false }) }));
  endless.handle(() => failure());
  await endless.playUntil("2027-03-01T01:30:00Z");
  expect(passingIn(endless)).toEqual(["failed, passing"]);
});
