import { alertsOf } from "../alerts/alert-options.ts";
import { DEFAULTS, type JobDefinition } from "../jobs/job.ts";
import { COMMON_OPTIONS, name, timingOf } from "../jobs/job-options.ts";
import { type Checked, defined, duration, type Fault, placeOf, record } from "../read-options.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../time.ts";

const options = record({
  ...COMMON_OPTIONS,
  early: duration({ maxMs: 7 * DAY_MS, why: "a ping that early says little of its slot" }),
  endWithin: duration({
    minMs: MINUTE_MS,
    maxMs: 14 * DAY_MS,
    why: "what has not ended by then is to be looked at",
  }),
});

/**
 * The definition that `monitor`'s options describe, with every default filled in, or all that is wrong with them.
 * @param fallbackName the monitor's name where the options give none: its file's.
 */
export const checkMonitor = (given: unknown, fallbackName: string): Checked<JobDefinition> => {
  const faults: Fault[] = [];
  const place = placeOf("", faults);
  const read = options(given, place) ?? {};
  const monitorName = read.name ?? name(fallbackName, place.inner("name"));
  if (read.schedule === undefined && !faults.some(({ field }) => field === "schedule"))
    place
      .inner("schedule")
      .fault("the monitor has no schedule, so no ping is expected", "schedule: '0 2 * * *'");
  const timing = timingOf(read, place);
  const alerts = alertsOf(read.alerts ?? {}, place.inner("alerts"));
  if (faults.length > 0 || monitorName === undefined) return { ok: false, faults };
  const { description, owner, runbook, stages, early: earlyMs, endWithin } = read;
  const { retry, overlap: _, ...defaults } = DEFAULTS;
  const value: JobDefinition = {
    ...defaults,
    name: monitorName,
    subject: read.renamedFrom?.[0] ?? monitorName,
    ...defined({ description, owner, runbook, stages }),
    schedules: timing.schedules.map(({ expression }) => expression),
    timezone: timing.timezone,
    dst: timing.dst,
    ...timing.bounds,
    input: {},
    // Nothing here runs it: there is nothing to catch up, to line up or to try again.
    misfire: { policy: "skip", max: 1 },
    overlap: "allow",
    retry: { ...retry, retries: 0 },
    onUnknown: "retry",
    graceMs: read.grace ?? DEFAULTS.graceMs,
    alerts,
    ...(read.ownAlarms === true && { ownAlarms: true }),
    monitor: { endWithinMs: endWithin ?? HOUR_MS, ...defined({ earlyMs }) },
  };
  return { ok: true, value };
};
