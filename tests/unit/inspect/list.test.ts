import { expect, test } from "vitest";
import { unknownHealth } from "../../../lib/core/health/health.ts";
import { writeHealth } from "../../../lib/core/health/health-items.ts";
import { CONTROL_KEY, definitionKey, runKey } from "../../../lib/core/items.ts";
import { claimLock } from "../../../lib/core/runs/lock.ts";
import { markAbsent } from "../../../lib/core/runs/marks.ts";
import { finish } from "../../../lib/core/runs/transitions.ts";
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
      healthSince: null,
      failuresInARow: 0,
      paused: null,
      muted: null,
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

test("a monitor is known from a job of ours, and says where it pings while it has not", async () => {
  const { inspect } = setup([
    jobOf({ name: "backup", monitor: { endWithinMs: 3_600_000 } }),
    jobOf({ name: "report" }),
  ]);
  const [backup, report] = await inspect.listJobs();
  expect(backup).toMatchObject({ name: "backup", monitor: true });
  expect(report).not.toHaveProperty("monitor");
  const hint = expect.stringContaining('"belfry heartbeat backup --url"');
  await expect(inspect.lastRun("backup")).rejects.toMatchObject({ code: "unknown_run", hint });
  await expect(inspect.lastRun("report")).rejects.not.toHaveProperty("hint", expect.any(String));
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

test("a slot whose grace is over and that nobody triggered makes its job late", async () => {
  const fixture = setup();
  await since(fixture, "2026-10-01T00:00:00Z");
  await fixture.runTo(slotOf("report", "2026-10-08T11:00:00Z"), "succeeded");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "late" }]);
});

test("a slot within its grace does not make its job late, and at the end of the grace it does", async () => {
  const fixture = setup([jobOf({ name: "report", graceMs: 1_800_001 })]);
  await since(fixture, "2026-10-08T11:30:00Z");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "new" }]);
  fixture.advance(1);
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "late" }]);
});

test("a slot before the definition held is nobody's to run, and the one at that very instant is", async () => {
  const later = setup();
  await since(later, "2026-10-08T12:00:00.001Z");
  expect(await later.inspect.listJobs()).toMatchObject([{ health: "new" }]);
  const same = setup();
  await since(same, "2026-10-08T12:00:00Z");
  expect(await same.inspect.listJobs()).toMatchObject([{ health: "late" }]);
});

test("a job that fires in other stages is not late here", async () => {
  const fixture = setup([jobOf({ name: "report", stages: ["prod"] })]);
  await since(fixture, "2026-10-01T00:00:00Z");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "new" }]);
});

test("a run that is recorded and not started when its grace is over is late", async () => {
  const fixture = setup();
  await since(fixture, "2026-10-01T00:00:00Z");
  await fixture.runTo(LAST_SLOT, "queued");
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "late" }]);
});

test("a run that is claimed and not started when its grace is over is late", async () => {
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
  expect(await fixture.inspect.listJobs()).toMatchObject([{ health: "late" }]);
});

test("a slot that was decided on, even as missed, is not late", async () => {
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

test("failures in a row are counted since the last success, with the slot that they began at", async () => {
  const { runTo, inspect } = setup();
  await runTo(slotOf("report", "2026-10-08T08:00:00Z"), "succeeded");
  for (const hour of ["09", "10", "11"]) await runTo(slotOf("report", `2026-10-08T${hour}:00:00Z`), "dead");
  expect(await inspect.listJobs()).toMatchObject([
    { health: "down", failuresInARow: 3, healthSince: "2026-10-08T09:00:00Z" },
  ]);
});

test("a run that waits for a person makes its job fail, however many runs have succeeded since", async () => {
  const { runTo, write, inspect } = setup();
  const parked = slotOf("report", "2026-10-07T01:00:00Z");
  await runTo(parked, "running");
  await write({ key: runKey(parked), changes: [set("st", "parked")] });
  for (let hour = 2; hour < 24; hour++)
    await runTo(slotOf("report", `2026-10-07T${String(hour).padStart(2, "0")}:00:00Z`), "succeeded");
  const trouble = { kind: "parked", slotKey: parked.slotKey, epoch: 1, sinceMs: 0, known: true } as const;
  const health = { ...unknownHealth(0), state: "failing", troubles: [trouble] } as const;
  await write(writeHealth("report", { seenRevision: undefined, health, flips: [] }));
  expect(await inspect.listJobs()).toMatchObject([{ health: "failing", failuresInARow: 0 }]);
});

test("a paused job is paused, and a muted one says until when and why", async () => {
  const { write, inspect } = setup();
  const untilMs = msOf("2026-10-09T00:00:00Z");
  await write({
    key: CONTROL_KEY,
    changes: [
      set("p#report", { sinceMs: 0, reason: "holiday" }),
      set("m#report", { sinceMs: msOf(NOW), untilMs, reason: "database moves" }),
    ],
  });
  expect(await inspect.listJobs()).toMatchObject([
    {
      health: "paused",
      paused: { reason: "holiday" },
      muted: { since: NOW, until: "2026-10-09T00:00:00Z", reason: "database moves" },
    },
  ]);
});
