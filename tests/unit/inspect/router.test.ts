import { expect, test } from "vitest";
import { syncDefinitions } from "../../../lib/app/definitions.ts";
import { makeInspect } from "../../../lib/app/inspect/inspect.ts";
import { makePing } from "../../../lib/app/monitors/ping.ts";
import { makeListAlerts } from "../../../lib/app/notify/list-alerts.ts";
import { makeOperator } from "../../../lib/app/operate/operator.ts";
import type { RunByHandAnswer, RunByHandRequest } from "../../../lib/app/operate/run-by-hand.ts";
import { makeSeriesActs } from "../../../lib/app/series/series-acts.ts";
import { BelfryError, Unavailable } from "../../../lib/core/errors.ts";
import { CONTROL_KEY, CURSOR_KEY } from "../../../lib/core/items.ts";
import { jobList } from "../../../lib/core/jobs/job-list.ts";
import { markAbsent } from "../../../lib/core/runs/marks.ts";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { AWS_TIMINGS } from "../../../lib/core/settings.ts";
import { set } from "../../../lib/core/write.ts";
import { operateRouter } from "../../../lib/inbound/operate/router.ts";
import type { Table } from "../../../lib/ports/table.ts";
import { oneByOne } from "../../support/one-by-one.ts";
import { jobOf, msOf, setup, slotOf } from "./setup.ts";

const DAILY = jobOf({
  name: "daily",
  schedules: ["0 2 * * *"],
  timezone: "Asia/Shanghai",
  input: { limit: 10 },
});
const SLOT = slotOf("daily", "2026-10-07T18:00:00Z");

interface Options {
  readonly answer?: RunByHandAnswer;
  readonly table?: Partial<Table>;
}

/** What the tests look into; all else is matched as a whole. */
interface Body {
  readonly hint?: string;
  readonly runs?: readonly unknown[];
}

const serve = (options: Options = {}) => {
  const fixture = setup([DAILY, jobOf({ name: "report" })]);
  const requests: RunByHandRequest[] = [];
  const reported: unknown[] = [];
  const sent: RunMessage[] = [];
  const deps = {
    ...fixture,
    table: { ...fixture.table, ...options.table },
    queue: oneByOne({ send: async (_pool, message) => void sent.push(message) }),
    random: { token: () => `token-${sent.length}-${reported.length}`, fraction: () => 0 },
    journal: { attempt: () => undefined, notice: () => undefined, handlerLine: () => undefined },
    timings: AWS_TIMINGS,
  };
  const app = operateRouter({
    inspect: makeInspect({ ...fixture, table: { ...fixture.table, ...options.table } }),
    runByHand: async (request) => {
      requests.push(request);
      return options.answer ?? { kind: "accepted", runId: "daily~20261007T180000Z" };
    },
    operator: makeOperator(deps),
    ping: makePing(deps),
    pingAddress: async ({ subject }) => `https://pings.example/ping/${subject}/key`,
    series: makeSeriesActs(deps),
    jobs: fixture.jobs,
    clock: fixture.clock,
    listAlerts: makeListAlerts(fixture),
    testAlert: async (topic) => ({ id: "test-1", topic, ok: true, hops: [] }),
    report: (error) => reported.push(error),
  });
  const ask = async (path: string, body?: unknown) => {
    const init =
      body === undefined
        ? {}
        : { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) };
    const response = await app.request(path, init);
    return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
  };
  return { ...fixture, ask, requests, reported };
};

const RUNS = "/v1/jobs/daily/runs";

test("a run by hand is accepted with its address and the run as it is", async () => {
  const { ask, runTo, requests } = serve();
  await runTo(SLOT, "queued");
  const answer = await ask(RUNS, { reason: "asked for", input: { limit: 3 } });
  expect(answer).toMatchObject({
    status: 202,
    body: { run: { runId: "daily~20261007T180000Z", state: "queued" }, timezone: "Asia/Shanghai" },
  });
  expect(answer.headers.get("location")).toBe("/v1/runs/daily~20261007T180000Z");
  expect(requests).toMatchObject([{ job: DAILY, reason: "asked for", input: { limit: 3 } }]);
  expect(requests[0]).not.toHaveProperty("slotMs");
});

test("a slot without a zone is read on the clock of the job's zone", async () => {
  const { ask, runTo, requests } = serve();
  await runTo(SLOT, "queued");
  await ask(RUNS, { slot: "2026-10-08T02:00" });
  await ask(RUNS, { slot: "2026-10-07T18:00:00Z" });
  await ask(RUNS, { slot: "2026-10-08T03:00+09:00" });
  expect(requests.map(({ slotMs }) => slotMs)).toEqual(Array(3).fill(msOf("2026-10-07T18:00:00Z")));
});

test("an occurrence that is done is refused as already done, one that is not over as in flight", async () => {
  const refused = { kind: "refused", runId: "daily~20261007T180000Z" } as const;
  const done = serve({ answer: { ...refused, state: "succeeded", reason: "already done" } });
  expect(await done.ask(RUNS, {})).toMatchObject({
    status: 409,
    body: { code: "already_done", detail: "already done: run daily~20261007T180000Z is succeeded" },
  });
  const blocked = serve({ answer: { ...refused, state: "queued", reason: "already in flight" } });
  expect(await blocked.ask(RUNS, {})).toMatchObject({
    status: 409,
    body: { code: "in_flight", detail: "already in flight" },
  });
});

test("a deployed stage's alarms are CloudWatch's to show", async () => {
  expect(await serve().ask("/v1/alarms")).toMatchObject({ status: 200, body: { alarms: null } });
});

test("a dry run goes through the checks and asks for nothing", async () => {
  const { ask, runTo, requests } = serve();
  expect(await ask(RUNS, { dryRun: true, slot: "2026-10-08T02:00" })).toMatchObject({
    status: 200,
    body: {
      dryRun: true,
      job: "daily",
      slot: "2026-10-07T18:00:00Z",
      runId: "daily~20261007T180000Z",
      input: { limit: 10 },
    },
  });
  expect(await ask(RUNS, { dryRun: true, input: 1 })).toMatchObject({
    body: { slot: null, runId: null, input: 1 },
  });
  await runTo(SLOT, "succeeded");
  expect(await ask(RUNS, { dryRun: true, slot: "2026-10-08T02:00" })).toMatchObject({
    status: 409,
    body: { code: "already_done" },
  });
  expect(requests).toEqual([]);
});

const refusals: readonly (readonly [
  why: string,
  path: string,
  body: unknown,
  status: number,
  problem: object,
])[] = [
  [
    "an unknown job",
    "/v1/jobs/dayly/runs",
    {},
    404,
    { code: "unknown_job", field: "job", hint: "jobs: daily, report" },
  ],
  ["a body that is no JSON", RUNS, "{", 400, { code: "invalid_request" }],
  ["a body that is no object", RUNS, [1], 400, { code: "invalid_request" }],
  ["an unknown member", RUNS, { solt: "x" }, 400, { code: "invalid_request", field: "solt" }],
  ["a reason without text", RUNS, { reason: "" }, 400, { code: "invalid_request", field: "reason" }],
  ["an input over 128 KiB", RUNS, { input: "x".repeat(131_072) }, 400, { field: "input" }],
  ["a slot that is no time", RUNS, { slot: "noon" }, 400, { code: "invalid_time", field: "slot" }],
  [
    "a slot in the future",
    RUNS,
    { slot: "2026-10-09T02:00" },
    400,
    { code: "slot_in_future", field: "slot" },
  ],
  ["a slot off the schedule", RUNS, { slot: "2026-10-08T02:01" }, 400, { code: "slot_off_schedule" }],
  ["an unknown run", "/v1/runs/daily~20261007T180000Z", undefined, 404, { code: "unknown_run" }],
  ["an unknown filter", "/v1/runs?stat=dead", undefined, 400, { code: "invalid_request", field: "stat" }],
  ["an unknown state", "/v1/runs?state=deed", undefined, 400, { code: "invalid_request", field: "state" }],
  ["a limit of none", "/v1/runs?limit=0", undefined, 400, { code: "invalid_request", field: "limit" }],
  ["a since that is no time", "/v1/runs?since=may", undefined, 400, { code: "invalid_time", field: "since" }],
  ["a wait beyond the bound", "/v1/runs/x?waitMs=25001", undefined, 400, { field: "waitMs" }],
  ["an unknown address", "/v2/jobs", undefined, 404, { code: "unknown_route" }],
];

test.each(refusals)(
  "%s is refused as a problem that says what to mend",
  async (_, path, body, status, problem) => {
    const { ask, requests } = serve();
    const answer = await ask(path, body);
    expect(answer).toMatchObject({ status, body: { type: "about:blank", status, ...problem } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(requests).toEqual([]);
  },
);

test("a job's slot without a run says why there is none", async () => {
  const { ask } = serve();
  const show = async (slot: string) => (await ask(`/v1/jobs/daily/run?slot=${slot}`)).body.hint;
  expect(await show("2026-10-08T02:00")).toContain("nothing has triggered it");
  expect(await show("2026-10-09T02:00")).toContain("has not come yet");
  expect(await show("2026-10-08T03:00")).toContain("nearest slots: 2026-10-07T18:00:00Z");
  expect(await show("2026-08-20T02:00")).toContain("nothing has triggered it");
  expect(await show("2026-06-08T02:00")).toBe(
    "records are kept for 90 days, so whether it ran can no longer be told",
  );
});

test("why a slot has no run is told apart: not looked at yet, paused, recorded with others", async () => {
  const { ask, table } = serve();
  const show = async () => (await ask("/v1/jobs/daily/run?slot=2026-10-08T02:00")).body.hint;
  const doneUntilMs = msOf("2026-10-07T17:58:00Z");
  await table.write({ key: CURSOR_KEY, changes: [set("doneUntilMs", doneUntilMs)] });
  expect(await show()).toBe(
    "the slot has passed, and nothing has triggered it so far; the watchdog has looked at slots before 2026-10-07T17:58:00Z so far",
  );
  const pause = { sinceMs: msOf("2026-10-01T00:00:00Z"), reason: "database moves" };
  await table.write({ key: CONTROL_KEY, changes: [set("p#daily", pause)] });
  expect(await show()).toBe(
    "the job is paused since 2026-10-01T00:00:00Z: database moves; the watchdog is about to record the slot as skipped",
  );
  await table.write(
    markAbsent({
      occurrence: slotOf("daily", "2026-10-08T18:00:00Z"),
      state: "missed",
      reason: "nothing dispatched it in time",
      nowMs: 0,
      trigger: "watchdog",
      range: { count: 1_200, fromMs: msOf("2023-06-27T18:00:00Z") },
    }),
  );
  expect(await show()).toBe(
    "it was missed (nothing dispatched it in time), one of 1200 slots in a row that share the record daily~20261008T180000Z",
  );
});

test("the run of a job's slot, and its last run, are shown with the job's zone", async () => {
  const { ask, runTo } = serve();
  await runTo(SLOT, "succeeded");
  const expected = { status: 200, body: { run: { state: "succeeded" }, timezone: "Asia/Shanghai" } };
  expect(await ask("/v1/jobs/daily/run?slot=2026-10-08T02:00")).toMatchObject(expected);
  expect(await ask("/v1/jobs/daily/run")).toMatchObject(expected);
});

test("the list of runs comes with the zones of their jobs, and reads since on the job's clock", async () => {
  const { ask, runTo } = serve();
  await runTo(SLOT, "succeeded");
  await runTo(slotOf("report", "2026-10-08T02:00:00Z"), "dead");
  expect(await ask("/v1/runs")).toMatchObject({
    body: {
      runs: [{ job: "report" }, { job: "daily" }],
      timezones: { daily: "Asia/Shanghai", report: "UTC" },
    },
  });
  expect((await ask("/v1/runs?job=daily&since=2026-10-08T02:00")).body.runs).toHaveLength(1);
  expect((await ask("/v1/runs?job=daily&since=2026-10-08T02:01")).body.runs).toEqual([]);
  expect((await ask("/v1/runs?since=2026-10-08T02:01")).body.runs).toEqual([]);
});

test("the runs of a job that a deploy removed are listed, read since on its last clock, and its last one shown", async () => {
  const { ask, runTo, table, clock } = serve();
  const gone = jobOf({ name: "gone", schedules: ["0 2 * * *"], timezone: "Asia/Shanghai" });
  for (const [jobs, hash] of [
    [[gone], "before"],
    [[DAILY], "after"],
  ] as const)
    await syncDefinitions({ table, clock, jobs: jobList({ jobs, hash }, "dev") });
  await runTo(slotOf("gone", "2026-10-07T18:00:00Z"), "succeeded");
  const run = { job: "gone", state: "succeeded" };
  expect(await ask("/v1/runs?job=gone&since=2026-10-08T02:00")).toMatchObject({ body: { runs: [run] } });
  expect((await ask("/v1/runs?job=gone&since=2026-10-08T02:01")).body.runs).toEqual([]);
  expect(await ask("/v1/jobs/gone/run")).toMatchObject({ status: 200, body: { run } });
  expect(await ask("/v1/runs?job=never-there")).toMatchObject({
    body: { code: "unknown_job", field: "job" },
  });
});

test("a run of a job that a deploy removed can be cancelled and dismissed, and not retried", async () => {
  const { ask, runTo, table, clock } = serve();
  const gone = jobOf({ name: "gone" });
  await syncDefinitions({ table, clock, jobs: jobList({ jobs: [gone], hash: "before" }, "dev") });
  await runTo(slotOf("gone", "2026-10-08T10:00:00Z"), "dead");
  await runTo(slotOf("gone", "2026-10-08T11:00:00Z"), "queued");
  const cancel = () => ask("/v1/runs/gone~20261008T110000Z/cancel", {});
  // It may be a job of newer code.
  expect(await cancel()).toMatchObject({ status: 404, body: { code: "unknown_run" } });
  await syncDefinitions({ table, clock, jobs: jobList({ jobs: [DAILY], hash: "after" }, "dev") });
  expect(await ask("/v1/runs/gone~20261008T100000Z/retry", {})).toMatchObject({
    body: { code: "unknown_run", detail: "the job of gone~20261008T100000Z is not in this deployment" },
  });
  expect((await ask("/v1/runs/gone~20261008T100000Z/dismiss", {})).status).toBe(200);
  expect(await cancel()).toMatchObject({ status: 200, body: { run: { state: "cancelled" } } });
  expect(await ask("/v1/runs?state=dead&job=gone")).toMatchObject({ body: { runs: [] } });
});

test("a job's next slots are those after the instant on its own clock", async () => {
  const { ask } = serve();
  expect(await ask("/v1/jobs/daily/next?from=2026-10-08T02:00&count=2")).toMatchObject({
    body: { timezone: "Asia/Shanghai", occurrences: ["2026-10-08T18:00:00Z", "2026-10-09T18:00:00Z"] },
  });
  expect(await ask("/v1/jobs")).toMatchObject({ body: { jobs: [{ name: "daily" }, { name: "report" }] } });
});

test("a table that does not answer is a reason to come back, and nothing of its inside is told", async () => {
  const get = async () => {
    throw new Unavailable("store_unavailable", "the table does not answer");
  };
  const { ask } = serve({ table: { get } });
  const answer = await ask("/v1/runs/daily~20261007T180000Z");
  expect(answer).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
  expect(answer.headers.get("retry-after")).toBe("1");
});

test("a bug is told to whoever runs the router, and not to the caller", async () => {
  class Unmapped extends BelfryError {
    readonly retryable = false;
  }
  for (const bug of [new TypeError("secret of the inside"), new Unmapped("secret", "secret of the inside")]) {
    const get = async () => {
      throw bug;
    };
    const { ask, reported } = serve({ table: { get } });
    const answer = await ask("/v1/runs/daily~20261007T180000Z");
    expect(answer).toMatchObject({ status: 500, body: { code: "internal_error" } });
    expect(JSON.stringify(answer.body)).not.toContain("secret");
    expect(reported).toEqual([bug]);
  }
});

// Many runs at once.

const BACKFILL = "/v1/jobs/daily/backfill";
const RANGE = { from: "2026-09-01", to: "2026-09-04" };

test("a backfill is planned, begun, taken up, shown and stopped", async () => {
  const { ask } = serve();
  const plan = await ask(BACKFILL, { ...RANGE, dryRun: true });
  expect(plan).toMatchObject({
    status: 200,
    body: { dryRun: true, slots: 3, toRun: 3, from: "2026-08-31T16:00:00Z", timezone: "Asia/Shanghai" },
  });
  expect(await ask("/v1/jobs/daily/series/backfill")).toMatchObject({
    status: 404,
    body: { code: "unknown_series" },
  });
  const begun = await ask(BACKFILL, RANGE);
  expect(begun).toMatchObject({
    status: 202,
    body: { takenUp: false, series: { state: "open", outstanding: [{ state: "queued" }] } },
  });
  expect(await ask(BACKFILL, RANGE)).toMatchObject({ status: 202, body: { takenUp: true } });
  expect(await ask(BACKFILL, { ...RANGE, to: "2026-09-05" })).toMatchObject({
    status: 409,
    body: { code: "in_flight" },
  });
  expect(await ask("/v1/series")).toMatchObject({ status: 200, body: { series: [{ job: "daily" }] } });
  expect(await ask("/v1/jobs/daily/series/backfill/stop", {})).toMatchObject({
    status: 200,
    body: { series: { state: "stopping", reason: "stopped by hand" } },
  });
  expect(await ask("/v1/jobs/daily/series/retry/stop", {})).toMatchObject({
    status: 409,
    body: { code: "not_open" },
  });
});

test("all dead runs of a job are retried as one series, and none where there are none", async () => {
  const { ask, runTo } = serve();
  const path = "/v1/jobs/daily/retry-dead";
  expect(await ask(path, {})).toMatchObject({ status: 202, body: { series: null } });
  await runTo(SLOT, "dead");
  expect(await ask(path, { parallel: 2 })).toMatchObject({
    status: 202,
    body: { series: { kind: "retry", total: 1, asked: 1, parallel: 2 } },
  });
});

test.each([
  [BACKFILL, { to: "2026-09-04" }, "from"],
  [BACKFILL, { ...RANGE, to: "soon" }, "to"],
  [BACKFILL, { ...RANGE, parallel: 0 }, "parallel"],
  [BACKFILL, { ...RANGE, parallel: 1.5 }, "parallel"],
  [BACKFILL, { ...RANGE, redo: ["running"] }, "redo.0"],
  [BACKFILL, { ...RANGE, slots: 3 }, "slots"],
  ["/v1/jobs/daily/retry-dead", { parallel: "2" }, "parallel"],
])("%s with %j is refused, and names the field", async (path, body, field) => {
  const { ask } = serve();
  expect(await ask(path, body)).toMatchObject({ status: 400, body: { field } });
});

test("a kind of series that does not exist is no address", async () => {
  const { ask } = serve();
  expect(await ask("/v1/jobs/daily/series/replay")).toMatchObject({
    status: 404,
    body: { code: "unknown_route" },
  });
});
