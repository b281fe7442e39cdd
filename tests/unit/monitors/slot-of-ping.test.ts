import { expect, test } from "vitest";
import { scheduleOfJob } from "../../../lib/core/jobs/job-list.ts";
import { type MonitorDefinition, slotOfPing } from "../../../lib/core/monitors/monitor.ts";
import { HOUR_MS, MINUTE_MS, shortIsoOf } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { msOf } from "../../support/path.ts";

const monitor = (changes: Partial<MonitorDefinition>): MonitorDefinition => ({
  ...definition({ name: "backup", ...changes }),
  monitor: { endWithinMs: HOUR_MS, ...changes.monitor },
});

const slotFor = (job: MonitorDefinition, iso: string): string | undefined => {
  const schedule = scheduleOfJob(job);
  const slotMs = schedule && slotOfPing(job, schedule, msOf(iso));
  return slotMs === undefined ? undefined : shortIsoOf(slotMs);
};

const DAILY = { schedules: ["51 22 * * *"] };

test.each([
  ["a minute early, by a fast clock", "2027-03-01T22:50:00Z", "2027-03-01T22:51:00Z"],
  ["on the slot", "2027-03-01T22:51:00Z", "2027-03-01T22:51:00Z"],
  ["an hour early", "2027-03-01T21:51:00Z", "2027-03-01T22:51:00Z"],
  [
    "more than an hour early, which is late for the slot before",
    "2027-03-01T21:50:59Z",
    "2027-02-28T22:51:00Z",
  ],
  ["late", "2027-03-02T03:00:00Z", "2027-03-01T22:51:00Z"],
])("a daily ping that comes %s counts for the slot it is meant for", (_, atIso, slotIso) => {
  expect(slotFor(monitor(DAILY), atIso)).toBe(slotIso);
});

test.each([
  ["2027-03-01T10:12:30Z", "2027-03-01T10:15:00Z"],
  ["2027-03-01T10:12:29Z", "2027-03-01T10:10:00Z"],
])("of a period under two hours the second half is early for the next slot: %s is %s", (atIso, slotIso) => {
  expect(slotFor(monitor({ schedules: ["*/5 * * * *"] }), atIso)).toBe(slotIso);
});

test("a margin of its own says how early a ping may be", () => {
  const job = monitor({ ...DAILY, monitor: { endWithinMs: HOUR_MS, earlyMs: 3 * MINUTE_MS } });
  expect(slotFor(job, "2027-03-01T22:48:00Z")).toBe("2027-03-01T22:51:00Z");
  expect(slotFor(job, "2027-03-01T22:47:59Z")).toBe("2027-02-28T22:51:00Z");
});

test("before the first slot only an early ping has a slot, after the last one every ping has it", () => {
  const job = monitor({
    ...DAILY,
    startsAtMs: msOf("2027-03-01T00:00:00Z"),
    endsAtMs: msOf("2027-03-02T00:00:00Z"),
  });
  expect(slotFor(job, "2027-03-01T21:00:00Z")).toBeUndefined();
  expect(slotFor(job, "2027-03-01T22:00:00Z")).toBe("2027-03-01T22:51:00Z");
  expect(slotFor(job, "2027-03-09T00:00:00Z")).toBe("2027-03-01T22:51:00Z");
});

test("across a clock change the period is the elapsed one", () => {
  const job = monitor({ schedules: ["0 1,4 * * *"], timezone: "Europe/Berlin" });
  // 01:00 and 04:00 are two hours apart on the day the clocks go forward.
  expect(slotFor(job, "2027-03-28T00:59:59Z")).toBe("2027-03-28T00:00:00Z");
  expect(slotFor(job, "2027-03-28T01:00:00Z")).toBe("2027-03-28T02:00:00Z");
});
