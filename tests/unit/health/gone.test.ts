import { expect, test } from "vitest";
import { cancelRun } from "../../../lib/app/operate/operator.ts";
import type { Alerts, JobDefinition } from "../../../lib/core/jobs/job.ts";
import { DEFAULTS } from "../../../lib/core/jobs/job.ts";
import { start } from "../../../lib/core/runs/transitions.ts";
import { AWS_TIMINGS } from "../../../lib/core/settings.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, shortIsoOf } from "../../../lib/core/time.ts";
import type { Key } from "../../../lib/core/write.ts";
import { definition } from "../../support/definitions.ts";
import { type LiveStack, liveStack, toldIn } from "../../support/live-stack.ts";
import { at, failure } from "../../support/path.ts";

// A deploy that removes a job while something of it is told and not over.

const START = "2027-03-01T00:30:00Z";
const once = { ...DEFAULTS.retry, retries: 0 };

const report = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "report", schedules: ["0 * * * *"], retry: once, owner: "team-a", ...changes });
const other = definition({ name: "other" });

const alerts = (changes: Partial<Alerts>): Alerts => ({ ...DEFAULTS.alerts, ...changes });

/** The deployment after this one, over the same table. */
const deployed = (before: LiveStack, jobs: readonly JobDefinition[]): Promise<LiveStack> =>
  liveStack({ now: shortIsoOf(before.now()), jobs, table: before.table, name: "new" });

/** Three slots have failed, which is told as a page. */
const paged = async (job = report()): Promise<LiveStack> => {
  const stack = await liveStack({ now: START, jobs: [job, other] });
  stack.handle(() => failure("no such host"));
  await stack.playUntil("2027-03-01T03:30:00Z");
  return stack;
};

const kinds = (stack: LiveStack) => stack.alerts().map(({ kind }) => kind);

test("what is open of a removed job is told to be over, once, to whom it was told", async () => {
  const before = await paged();
  const after = await deployed(before, [other]);
  await after.playFor(2 * DAY_MS);
  expect(toldIn(after)).toEqual([
    "03-01T01:03 notify failed x1",
    "03-01T03:03 page failing x3",
    "03-01T03:33 page removed",
  ]);
  expect(after.alerts().at(-1)).toEqual({
    id: "flip~report~3",
    topic: "page",
    kind: "removed",
    atMs: expect.any(Number),
    job: "report",
    owner: "team-a",
    timezone: "UTC",
    reason: expect.stringMatching(/^nobody watches it any more; what was told: 3 failures in a row since /),
  });
});

test("what is told of a renamed job names both, so that it is known for the same matter", async () => {
  const before = await paged();
  const after = await deployed(before, [report({ name: "daily-report", subject: "report" }), other]);
  after.handle(() => ({ kind: "returned" }));
  await after.playUntil("2027-03-01T04:10:00Z");
  expect(kinds(after)).toEqual(["failed", "failing", "recovered"]);
  const [first, , last] = after.alerts();
  expect(first).not.toHaveProperty("subject");
  expect(last).toMatchObject({ kind: "recovered", job: "daily-report", subject: "report" });
});

test("a removed job that was well, or whose recoveries nobody wants to hear of, is told of in no way", async () => {
  const well = await liveStack({ now: START, jobs: [report(), other] });
  well.handle(() => ({ kind: "returned" }));
  await well.playUntil("2027-03-01T03:30:00Z");
  const without = await deployed(well, [other]);
  await without.playFor(HOUR_MS);
  expect(kinds(without)).toEqual([]);

  const silent = await deployed(await paged(report({ alerts: alerts({ recovery: false }) })), [other]);
  await silent.playFor(2 * DAY_MS);
  expect(kinds(silent)).toEqual(["failed", "failing"]);
});

test("a job that comes back is judged anew: its next failure is told with all that came before", async () => {
  const removed = await deployed(await paged(), [other]);
  await removed.playFor(10 * MINUTE_MS);
  const back = await deployed(removed, [report(), other]);
  back.handle(() => failure("no such host"));
  await back.playUntil("2027-03-01T04:10:00Z");
  expect(toldIn(back).slice(2)).toEqual(["03-01T03:33 page removed", "03-01T04:03 page failing x4"]);
});

test("a job that is back before older code can be gone is not taken for removed", async () => {
  const removed = await deployed(await paged(), [other]);
  await removed.playFor(MINUTE_MS);
  const back = await deployed(removed, [report(), other]);
  back.handle(() => ({ kind: "returned" }));
  await back.playUntil("2027-03-01T05:10:00Z");
  expect(kinds(back)).toEqual(["failed", "failing", "recovered"]);
});

test.each([
  ["its health", ({ pk, sk }: Key) => pk === "H" && sk === "report"],
  ["the flip", ({ sk }: Key) => sk.startsWith("F#")],
  ["the alert", ({ pk }: Key) => pk.startsWith("A#flip~report")],
] as const)(
  "a fault at the write of %s neither loses the end of it nor tells it twice",
  async (_, isMeant) => {
    for (const fault of ["down", "lost", "repeated"] as const) {
      const after = await deployed(await paged(), [other]);
      let met = 0;
      after.fail("write", fault, (key) => isMeant(key) && ++met > 0);
      await after.playFor(HOUR_MS);
      expect(met).toBeGreaterThan(0);
      expect([fault, ...kinds(after)]).toEqual([fault, "failed", "failing", "removed"]);
    }
  },
);

test("while a run of it waits for a person, what was told of it stays open; the person can end the run", async () => {
  const job = report({ onUnknown: "park" });
  const before = await liveStack({ now: START, jobs: [job, other] });
  before.works.workers = false;
  await before.playUntil("2027-03-01T01:00:00Z");
  const occurrence = at("report", "2027-03-01T01:00:00Z");
  // A worker that starts the run and is gone.
  const nowMs = before.now();
  const lease = { nowMs, leaseUntilMs: nowMs + AWS_TIMINGS.leaseMs, queuedAtMs: nowMs };
  const run = { occurrence, epoch: 1, locked: true, trigger: "schedule" } as const;
  await before.table.write(start({ ...run, ...lease, token: "gone" }));
  before.works.workers = true;
  await before.playUntil("2027-03-01T01:20:00Z");
  expect(kinds(before)).toContain("parked");

  const after = await deployed(before, [other]);
  await after.playFor(HOUR_MS);
  expect(kinds(after)).not.toContain("removed");
  await cancelRun(after.deps, { job, occurrence }, "not needed");
  expect(await after.lock("report")).toMatchObject({ held: 0 });
  await after.playFor(DAY_MS);
  expect(kinds(after).filter((kind) => kind === "removed")).toEqual(["removed"]);
});
