import { expect, test } from "vitest";
import { DEFAULTS } from "../../../lib/core/jobs/job.ts";
import { checkMonitor } from "../../../lib/core/monitors/monitor-options.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/core/time.ts";

test("a monitor needs a schedule and no more; the rest has defaults", () => {
  const checked = checkMonitor({ schedule: "0 2 * * *" }, "backup");
  expect(checked).toMatchObject({
    ok: true,
    value: {
      name: "backup",
      subject: "backup",
      schedules: ["0 2 * * *"],
      timezone: "UTC",
      graceMs: DEFAULTS.graceMs,
      misfire: { policy: "skip" },
      overlap: "allow",
      monitor: { endWithinMs: HOUR_MS },
    },
  });
});

test("its options are those of any job that say when and whom to tell, and two of its own", () => {
  const checked = checkMonitor(
    {
      name: "nightly",
      schedule: ["0 2 * * *", "0 14 * * *"],
      timezone: "Asia/Shanghai",
      grace: "2 hours",
      early: "10 minutes",
      endWithin: "6 hours",
      owner: "team-a",
      alerts: { pageAfter: 2 },
      ownAlarms: true,
      stages: ["prod"],
      renamedFrom: "old-backup",
    },
    "backup",
  );
  expect(checked).toMatchObject({
    ok: true,
    value: {
      name: "nightly",
      subject: "old-backup",
      owner: "team-a",
      graceMs: 2 * HOUR_MS,
      alerts: { pageAfter: 2 },
      ownAlarms: true,
      stages: ["prod"],
      monitor: { endWithinMs: 6 * HOUR_MS, earlyMs: 10 * MINUTE_MS },
    },
  });
});

test.each([
  [{}, "schedule", /no schedule/],
  [{ schedule: "0 2 * * *", handler: () => undefined }, "handler", /no such option/],
  [{ schedule: "0 2 * * *", retry: {} }, "retry", /no such option/],
  [{ schedule: "0 2 * *" }, "schedule", /./],
  [{ schedule: "0 2 * * *", early: "8 days" }, "early", /too long/],
  [{ schedule: "0 2 * * *", endWithin: "1 second" }, "endWithin", /too short/],
])("%j names the one fault", (options, field, message) => {
  expect(checkMonitor(options, "backup")).toEqual({
    ok: false,
    faults: [expect.objectContaining({ field, message: expect.stringMatching(message) })],
  });
});
