import { expect, test } from "vitest";
import { definitionKey } from "../../../lib/core/items.ts";
import { claimLock } from "../../../lib/core/lock.ts";
import { markAbsent } from "../../../lib/core/marks.ts";
import { finish } from "../../../lib/core/transitions.ts";
import { set } from "../../../lib/core/write.ts";
import { jobOf, msOf, NOW, setup, slotOf } from "./setup.ts";

const LAST_SLOT = slotOf("report", "2026-10-08T12:00:00Z");

/** A job whose definition has been in the table for so long. */
const since = async (fixture: ReturnType<typeof setup>, iso: string): Promise<void> => {
  await fixture.write({ key: definitionKey("report"), changes: [set("sinceMs", msOf(iso))] });
};

test("a job is shown with its schedule in words, its next slot and its last outcome", async () => {
  const { runTo, inspect } = setup([
    jobOf({ name: "report", schedules: ["0 9 * * *"], timezone: "Asia/Shanghai", owner: "team-a" }),
  ]);
  await runTo(slotOf("report", "2026-10-08T01:00:00Z"), "succeeded");
  expect(await inspect.listJobs()).toEqual([
    {
      name: "report",
      owner: "team-a",
      schedules: ["0 9 * * *"],
      inWords: expect.stringContaining("09:00"),
      timezone: "Asia/Shanghai",
      pool: "default",
      overlap: "allow",
      nextSlot: "2026-10-09T01:00:00Z",
      lastRun: {
        runId: "report~20261008T010000Z",
        slot: "2026-10-08T01:00:00Z",
        state: "succeeded",
        finishedAt: "2026-10-08T01:00:05Z",
      },
      health: "up",
      paused: null,
    },
  ]);
});

test("a job that runs by hand only, or fires in other stages, has no next slot", async () => {
  const { inspect } = setup([
    jobOf({ name: "elsewhere", stages: ["prod"] }),
    jobOf({ name: "manual", schedules: [] }),
  ]);
  expect(await inspect.listJobs()).toMatchObject([
    { nextSlot: null, inWords: expect.any(String), health: "new" },
    { nextSlot: null, inWords: null, health: "new" },
  ]);
});

test("the outcome of the newest run that ended decides between up and failing", async () => {
  const { runTo, inspect } = setup();
  await runTo(slotOf("report", "2026-10-08T10:00:00Z"), "succeeded");
  await runTo(slotOf("report", "2026-10-08T11:00:00Z"), "dead");
  await runTo(LAST_SLOT, "running");
  expect(await inspect.listJobs()).toMatchObject([{ health: "failing", lastRun: { state: "dead" } }]);
});

test("a cancelled run is the last outcome, and says nothing of the job's health", async () => {
  const { runTo, write, inspect } = setup();
  await runTo(slotOf("report", "2026-10-08T11:00:00Z"), "succeeded");
  await runTo(LAST_SLOT, "running");
  const end = { state: "cancelled", nowMs: msOf(NOW), tries: [], failed: false } as const;
  await write(finish({ occurrence: LAST_SLOT, fence: 1 }, end));
  expect(await inspect.listJobs()).toMatchObject([{ health: "up", lastRun: { state: "cancelled" } }]);
});

test("a slot whose grace is over and that nobody triggered makes its job overdue", async () => {
  const fixture = setup();
  await since(fixture, "2026-10-01T00:00:00Z");
  await fixture.runTo(slotOf("report", "2026-10-08T11:00:00Z"), "succeeded");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "overdue" }]);
});

test("a slot within its grace does not make its job overdue, and at the end of the grace it does", async () => {
  const fixture = setup([jobOf({ name: "report", graceMs: 1_800_001 })]);
  await since(fixture, "2026-10-08T11:30:00Z");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "new" }]);
  fixture.advance(1);
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "overdue" }]);
});

test("a slot before the definition held is nobody's to run, and the one at that very instant is", async () => {
  const later = setup();
  await since(later, "2026-10-08T12:00:00.001Z");
  expect(await later.inspect.listJobs()).toMatchObject([{ health: "new" }]);
  const same = setup();
  await since(same, "2026-10-08T12:00:00Z");
  expect(await same.inspect.listJobs()).toMatchObject([{ health: "overdue" }]);
});

test("a job that fires in other stages is not overdue here", async () => {
  const fixture = setup([jobOf({ name: "report", stages: ["prod"] })]);
  await since(fixture, "2026-10-01T00:00:00Z");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "new" }]);
});

test("a run that is recorded and not started when its grace is over is overdue", async () => {
  const fixture = setup();
  await since(fixture, "2026-10-01T00:00:00Z");
  await fixture.runTo(LAST_SLOT, "queued");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "overdue" }]);
});

test("a run that is claimed and not started when its grace is over is overdue", async () => {
  const fixture = setup([jobOf({ name: "report", overlap: "skip" })]);
  await since(fixture, "2026-10-01T00:00:00Z");
  await fixture.write(
    claimLock({
      contender: { occurrence: LAST_SLOT, epoch: 1, class: 0 },
      token: "dispatcher",
      nowMs: msOf(NOW),
      max: 1,
      newestOnly: true,
    }),
  );
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "overdue" }]);
});

test("a slot that was decided on, even as missed, is not overdue", async () => {
  const fixture = setup();
  await since(fixture, "2026-10-01T00:00:00Z");
  await fixture.write(
    markAbsent({
      occurrence: LAST_SLOT,
      state: "missed",
      trigger: "watchdog",
      nowMs: msOf(NOW),
      reason: "outage",
    }),
  );
  expect(await fixture.inspect.listJobs()).toMatchObject([
    { health: "failing", lastRun: { state: "missed" } },
  ]);
});
