import { expect, test } from "vitest";
import { diffJobs } from "../../../lib/core/jobs/diff.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { jobList } from "../../../lib/core/jobs/job-list.ts";
import { jobOf, msOf } from "../inspect/setup.ts";

const NOW_MS = msOf("2026-10-08T12:30:00Z");

const listOf = (...jobs: readonly JobDefinition[]) => jobList({ jobs, hash: "x" }, "prod");

const report = jobOf({ name: "report", schedules: ["0 2 * * *"] });

test("two equal versions differ in nothing", () => {
  expect(diffJobs(listOf(report), listOf({ ...report }), NOW_MS)).toEqual([]);
});

test("a job that comes and one that goes are told with their next slots", () => {
  const added = jobOf({ name: "added", schedules: ["0 * * * *"] });
  expect(diffJobs(listOf(report), listOf(added), NOW_MS)).toEqual([
    {
      job: "added",
      change: "added",
      options: [],
      nextBefore: [],
      nextAfter: ["2026-10-08T13:00:00Z", "2026-10-08T14:00:00Z", "2026-10-08T15:00:00Z"],
    },
    {
      job: "report",
      change: "removed",
      options: [],
      nextBefore: ["2026-10-09T02:00:00Z", "2026-10-10T02:00:00Z", "2026-10-11T02:00:00Z"],
      nextAfter: [],
    },
  ]);
});

test("a changed job is told with the options that differ, and its slots before and after", () => {
  const changed = { ...report, schedules: ["30 2 * * *"], timeoutMs: 1_000 };
  const [change] = diffJobs(listOf(report), listOf(changed), NOW_MS);
  expect(change).toMatchObject({ job: "report", change: "changed", options: ["schedules", "timeoutMs"] });
  expect(change?.nextBefore[0]).toBe("2026-10-09T02:00:00Z");
  expect(change?.nextAfter[0]).toBe("2026-10-09T02:30:00Z");
});

test("a renamed job is one that changed its name, and has the slots it had", () => {
  const [change, ...others] = diffJobs(listOf(report), listOf({ ...report, name: "bill" }), NOW_MS);
  expect(others).toEqual([]);
  expect(change).toMatchObject({ job: "bill", change: "changed", options: ["name"] });
  expect(change?.nextAfter).toEqual(change?.nextBefore);
});

test("a stage where the job does not fire has no slots", () => {
  const [change] = diffJobs(listOf(report), listOf({ ...report, stages: ["dev"] }), NOW_MS);
  expect(change).toMatchObject({ options: ["stages"], nextAfter: [] });
});
