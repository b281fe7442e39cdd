import { DEFAULTS, type JobDefinition } from "../../lib/core/jobs/job.ts";

/** A checked definition with the defaults, but for what the test is about. */
export const definition = (changes: Partial<JobDefinition> & { readonly name: string }): JobDefinition => ({
  subject: changes.name,
  schedules: [],
  timezone: DEFAULTS.timezone,
  dst: { gap: "skip", repeat: "first" },
  input: null,
  overlap: DEFAULTS.overlap,
  misfire: { policy: "latest", max: 1 },
  startDeadlineMs: DEFAULTS.startDeadlineMs,
  timeoutMs: DEFAULTS.timeoutMs,
  retry: { ...DEFAULTS.retry, jitter: 0 },
  onUnknown: "retry",
  graceMs: DEFAULTS.graceMs,
  alerts: DEFAULTS.alerts,
  pool: DEFAULTS.pool,
  ...changes,
});
