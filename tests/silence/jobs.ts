import { DEFAULTS, type JobDefinition } from "../../lib/core/jobs/job.ts";
import { HOUR_MS } from "../../lib/core/time.ts";
import { definition } from "../support/definitions.ts";

/** All change their clocks: by an hour and by half of one, at midnight and in the night, north and south. */
export const ZONES = [
  "Europe/London",
  "America/New_York",
  "Australia/Lord_Howe",
  "Africa/Cairo",
  "America/Santiago",
  "Asia/Beirut",
  "Pacific/Chatham",
  "America/St_Johns",
  "Asia/Jerusalem",
  "Atlantic/Azores",
  "Australia/Sydney",
  "Europe/Berlin",
] as const;

/** One attempt a run: what fails is told at once, and by no retry made good. */
const once = { ...DEFAULTS.retry, retries: 0, jitter: 0 };

/** Every kind of period, with slots in the hours that clock changes skip or repeat, and every policy. */
export const jobsIn = (timezone: string): readonly JobDefinition[] => {
  const job = (name: string, schedule: string, changes: Partial<JobDefinition> = {}): JobDefinition =>
    definition({ name, schedules: [schedule], timezone, retry: once, ...changes });
  return [
    job("every-5-minutes", "*/5 * * * *", { overlap: "allow" }),
    job("daily", "30 2 * * *"),
    job("daily-after-the-gap", "30 0 * * *", { dst: { gap: "run-after", repeat: "last" }, overlap: "queue" }),
    job("daily-not-caught-up", "30 1 * * *", { misfire: { policy: "skip", max: 1 } }),
    job("weekdays", "15 9 * * 1-5", {
      overlap: "allow",
      misfire: { policy: "latest", max: 1, withinMs: 2 * HOUR_MS },
    }),
    job("weekly", "0 3 * * 0", { overlap: "replace" }),
    job("monthly", "0 0 1 * *"),
  ];
};
