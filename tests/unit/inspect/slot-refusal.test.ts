import { expect, test } from "vitest";
import { previewJob } from "../../../lib/app/inspect/preview-job.ts";
import { slotRefusal } from "../../../lib/app/watchdog/check-slot.ts";
import { scheduleOfJob } from "../../../lib/core/jobs/job-list.ts";
import { jobOf, msOf, NOW } from "./setup.ts";

const REPORT = jobOf({ name: "report", schedules: ["0 2 * * *"] });

const judge = (slotIso: string, job = REPORT, nowIso = NOW) =>
  slotRefusal(job, scheduleOfJob(job), { slotMs: msOf(slotIso), nowMs: msOf(nowIso) });

test("a slot that the schedule names and that has passed is not refused, from its very instant on", () => {
  expect(judge("2026-10-08T02:00:00Z")).toBeUndefined();
  expect(judge("2026-10-08T02:00:00Z", REPORT, "2026-10-08T02:00:00Z")).toBeUndefined();
});

test("a slot in the future is refused with the last two that passed", () => {
  expect(judge("2026-10-09T02:00:00Z")).toMatchObject({
    code: "slot_in_future",
    field: "slot",
    hint: "nearest slots: 2026-10-08T02:00:00Z, 2026-10-07T02:00:00Z",
  });
  expect(judge("2026-10-08T02:00:00Z", REPORT, "2026-10-08T01:59:59.999Z")).toMatchObject({
    code: "slot_in_future",
  });
});

test("a slot that is passing now is the nearest to one in the future", () => {
  expect(judge("2026-10-09T02:00:00Z", REPORT, "2026-10-08T02:00:00Z")).toMatchObject({
    hint: "nearest slots: 2026-10-08T02:00:00Z, 2026-10-07T02:00:00Z",
  });
});

test("a slot off the schedule is refused with the one before and the one after", () => {
  expect(judge("2026-10-07T03:00:00Z")).toMatchObject({
    code: "slot_off_schedule",
    hint: "nearest slots: 2026-10-07T02:00:00Z, 2026-10-08T02:00:00Z",
  });
});

test("a slot off the schedule is never answered with one in the future", () => {
  expect(judge("2026-10-08T03:00:00Z")).toMatchObject({ hint: "nearest slots: 2026-10-08T02:00:00Z" });
});

test("a slot older than any record is sure to be kept is refused", () => {
  expect(judge("2026-09-08T02:00:00Z")).toMatchObject({ code: "slot_too_old" });
  expect(judge("2026-09-09T02:00:00Z")).toBeUndefined();
});

test("a job without a schedule has no slots", () => {
  expect(judge("2026-10-08T02:00:00Z", jobOf({ name: "report", schedules: [] }))).toMatchObject({
    code: "no_schedule",
  });
});

test("the preview of a job has its slots strictly after the instant, and fewer when the schedule ends", () => {
  const job = jobOf({ name: "report", schedules: ["0 2 * * *"], endsAtMs: msOf("2026-10-11T00:00:00Z") });
  expect(previewJob(job, scheduleOfJob(job), { fromMs: msOf("2026-10-08T02:00:00Z") })).toMatchObject({
    job: "report",
    expression: "0 2 * * *",
    occurrences: ["2026-10-09T02:00:00Z", "2026-10-10T02:00:00Z"],
  });
});

test("the preview of a job without a schedule is empty, and says so in words", () => {
  const job = jobOf({ name: "report", schedules: [] });
  expect(previewJob(job, undefined, { fromMs: msOf(NOW) })).toMatchObject({
    expression: "",
    description: "by hand only",
    occurrences: [],
  });
});
