import { expect, test } from "vitest";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../lib/core/time.ts";
import type { AttemptEnd, AttemptRequest, AttemptServices, Attempts } from "../../../lib/ports/attempts.ts";
import { absentHandlers, calledHandlers } from "../../../lib/simulation/called-handlers.ts";
import { type JobReport, reportOf } from "../../../lib/simulation/report.ts";
import { playStory, type StoryOptions } from "../../../lib/simulation/story.ts";
import { definition } from "../../support/definitions.ts";

const POOLS = { default: { memoryMb: 256, concurrency: 5 } };

const range = (from: string, to: string) => ({ fromMs: Date.parse(from), toMs: Date.parse(to) });
const DAY = range("2026-10-08T00:00Z", "2026-10-09T00:00Z");

const play = async (
  jobs: readonly JobDefinition[],
  options: Partial<StoryOptions> & { readonly handlers: StoryOptions["handlers"] },
) => {
  const { fromMs, toMs } = { ...DAY, ...options };
  const story = await playStory({ ...DAY, ...options, manifest: { jobs, pools: POOLS } });
  const report = await reportOf(story, { fromMs, toMs });
  return { story, report };
};

const dry = (lastsMs = SECOND_MS) => ({ handlers: absentHandlers(lastsMs) });

const only = (jobs: readonly JobReport[]): JobReport => {
  const [job] = jobs;
  if (job === undefined) throw new Error("there is no report");
  return job;
};

/** What a handler does and answers, in real time that the test measures. */
type Script = (request: AttemptRequest, services: AttemptServices) => Promise<AttemptEnd>;

const failedBy = (error: unknown): AttemptEnd => ({
  kind: "threw",
  error: { name: "Error", message: String(error) },
  permanent: false,
});

/** Handlers of this thread; each works for so long by the clock that measures it. */
const scripted = (script: Script, worksMs = 0) => {
  let realMs = 0;
  const clock = { nowMs: () => realMs };
  const attempts = (): Attempts => ({
    start: (request, services) => {
      const { promise: stopped, resolve: stop } = Promise.withResolvers<AttemptEnd>();
      const works = script(request, services)
        .catch(failedBy)
        .finally(() => {
          realMs += worksMs;
        });
      return {
        ended: Promise.race([works, stopped]),
        stop: (message) => stop({ kind: "stopped", error: { name: "AbortError", message } }),
      };
    },
  });
  return { attempts, clock };
};

const returned = async (): Promise<AttemptEnd> => ({ kind: "returned", result: 1 });

test("a month of five jobs has every slot once, and nothing is missed, skipped or late by more than a minute", {
  timeout: 300_000,
}, async () => {
  const jobs = ["*/15 * * * *", "0 * * * *", "0 2 * * *", "0 3 * * 0", "30 9 1 * *"].map((schedule, n) =>
    definition({ name: `job-${n}`, schedules: [schedule] }),
  );
  const month = range("2026-10-01T00:00Z", "2026-11-01T00:00Z");
  const { report } = await play(jobs, { ...dry(), ...month });
  expect(report.jobs.map(({ slots, succeeded }) => [slots, succeeded])).toEqual([
    [2_976, 2_976],
    [744, 744],
    [31, 31],
    [4, 4],
    [1, 1],
  ]);
  expect(report).toMatchObject({ deadRuns: [], faults: {}, broken: [] });
  for (const { longestWaitMs, catchUps, failures } of report.jobs) {
    expect(longestWaitMs).toBeLessThan(MINUTE_MS);
    expect({ catchUps, failures }).toEqual({ catchUps: 0, failures: 0 });
  }
});

test("slots lie from the start on and before the end, and none of another time is expected", async () => {
  const job = definition({ name: "hourly", schedules: ["0 * * * *"] });
  const { story, report } = await play([job], {
    ...dry(),
    ...range("2026-10-08T02:00Z", "2026-10-08T05:00Z"),
  });
  const runs = story.world.stored.items().filter(({ sk }) => String(sk).startsWith("R#"));
  expect(runs.map(({ sk }) => sk)).toEqual([
    "R#2026-10-08T02:00:00.000Z",
    "R#2026-10-08T03:00:00.000Z",
    "R#2026-10-08T04:00:00.000Z",
  ]);
  expect(only(report.jobs)).toMatchObject({ slots: 3, succeeded: 3, missed: 0 });
});

test("what lasts longer than its period skips the slots in between, and the report says why", async () => {
  const job = definition({
    name: "slow",
    schedules: ["0 * * * *"],
    overlap: "skip",
    timeoutMs: 14 * MINUTE_MS,
  });
  const often = { ...job, schedules: ["*/5 * * * *"] };
  const { report } = await play([often], dry(12 * MINUTE_MS));
  const { slots, succeeded, skipped, reasons } = only(report.jobs);
  expect([slots, succeeded + skipped]).toEqual([288, 288]);
  expect(reasons).toEqual({ "skipped: the run before it is not over": skipped });
  expect(skipped).toBeGreaterThan(succeeded);
});

test("what lasts longer than its timeout is timed out, tried again, and dead", async () => {
  const job = definition({
    name: "slow",
    schedules: ["0 2 * * *"],
    timeoutMs: 5 * MINUTE_MS,
    retry: { ...definition({ name: "x" }).retry, retries: 2 },
  });
  const { report } = await play([job], dry(HOUR_MS));
  expect(only(report.jobs)).toMatchObject({ dead: 1, calls: 3, failures: 3 });
  expect(report.deadRuns).toEqual([
    {
      runId: "slow~20261008T020000Z",
      job: "slow",
      slot: "2026-10-08T02:00:00Z",
      reason: expect.any(String),
      error: { name: "TimeoutError", message: "the handler ran longer than its timeout of 5 minutes" },
    },
  ]);
});

test("a clock change that a schedule meets is named; one that it does not meet is not", async () => {
  const nightly = definition({ name: "nightly", schedules: ["30 2 * * *"], timezone: "Europe/Berlin" });
  const noon = definition({ name: "noon", schedules: ["0 12 * * *"], timezone: "Europe/Berlin" });
  const spring = range("2026-03-28T00:00Z", "2026-03-31T00:00Z");
  const { report } = await play([nightly, noon], { ...dry(), ...spring });
  expect(report.jobs.map(({ slots, clockChanges }) => ({ slots, clockChanges }))).toEqual([
    { slots: 2, clockChanges: [expect.stringMatching(/^2026-03-29 02:30 does not exist in Europe\/Berlin/)] },
    { slots: 3, clockChanges: [] },
  ]);
});

test("a handler is called at its instant, and lasts as long as it worked, in whole seconds", async () => {
  const job = definition({ name: "works", schedules: ["0 2 * * *"] });
  const { attempts, clock } = scripted(returned, 2_300);
  const { report } = await play([job], { handlers: calledHandlers({ attempts, clock }) });
  expect(only(report.jobs)).toMatchObject({ succeeded: 1, calls: 1, longestRunMs: 3_000 });
});

test("the clock stands while a handler works: it waits for nothing but itself", async () => {
  const job = definition({ name: "waits", schedules: ["0 * * * *"], overlap: "skip" });
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const { attempts, clock } = scripted(async () => {
    await turns();
    return returned();
  });
  const { report } = await play([job], { handlers: calledHandlers({ attempts, clock }) });
  expect(only(report.jobs)).toMatchObject({ slots: 24, succeeded: 24, skipped: 0 });
});

test("what a handler says of its slot is told: a skip of its own is no broken promise", async () => {
  const job = definition({ name: "chooses", schedules: ["0 * * * *"] });
  const { attempts, clock } = scripted(async () => ({ kind: "skip", reason: "nothing to do" }));
  const { report } = await play([job], { handlers: calledHandlers({ attempts, clock }) });
  expect(only(report.jobs)).toMatchObject({ skipped: 24, reasons: { "skipped: nothing to do": 24 } });
  expect(report.broken).toEqual([]);
});

test("a run that waits beyond the end is open, and no broken promise", async () => {
  const job = definition({ name: "later", schedules: ["0 2 * * *"] });
  const { attempts, clock } = scripted(async () => ({ kind: "snooze", waitMs: 90 * 24 * HOUR_MS }));
  const { report } = await play([job], { handlers: calledHandlers({ attempts, clock }) });
  expect(only(report.jobs)).toMatchObject({ slots: 1, succeeded: 0, open: 1 });
  expect(report.broken).toEqual([]);
});

/** Pieces that are effects of their own, and saved one by one. */
const inPieces: Script = async (_request, services) => {
  const done = Number((await services.loadState()) ?? 0);
  if (done === 4) return { kind: "returned", result: done };
  const key = `piece ${done}`;
  if ((await services.recallEffect(key)) === undefined) await services.recordEffect(key, { result: done });
  await services.saveState(done + 1);
  return { kind: "continue", state: done + 1 };
};

test("under faults every promise holds, and the same seed plays the same story", {
  timeout: 300_000,
}, async () => {
  const jobs = [
    definition({ name: "pieces", schedules: ["0 * * * *"], overlap: "queue" }),
    definition({ name: "beside", schedules: ["*/30 * * * *"], overlap: "allow" }),
  ];
  const days = range("2026-10-23T00:00Z", "2026-10-26T00:00Z");
  const once = async (faultSeed: number) => {
    const { attempts, clock } = scripted(inPieces);
    const handlers = calledHandlers({ attempts, clock });
    return (await play(jobs, { handlers, ...days, faultSeed })).report;
  };
  const report = await once(7);
  expect(report.broken).toEqual([]);
  expect(report.jobs.map(({ succeeded, dead }) => ({ succeeded, dead }))).toEqual([
    { succeeded: 72, dead: 0 },
    { succeeded: expect.any(Number), dead: 0 },
  ]);
  // A story in which little goes wrong would show little.
  expect(Object.keys(report.faults).length).toBeGreaterThan(10);
  const crashes = report.jobs.reduce((sum, job) => sum + job.crashes, 0);
  expect(crashes).toBeGreaterThan(4);
  expect(only(report.jobs)).toMatchObject({ effects: 288 });
  expect(report.jobs.reduce((sum, job) => sum + job.duplicates, 0)).toBeGreaterThan(0);
  expect(await once(7)).toEqual(report);
  expect(await once(8)).not.toEqual(report);
});
