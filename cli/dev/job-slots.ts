import type { JobDefinition, Manifest } from "../../lib/core/jobs/job.ts";
import { parseSchedule, unionOf } from "../../lib/core/schedule/schedule.ts";
import type { SlotSource } from "./due-slots.ts";
import { STAGE } from "./resources.ts";

const firesHere = ({ monitor, schedules, stages }: JobDefinition): boolean =>
  monitor === undefined && schedules.length > 0 && (stages === undefined || stages.includes(STAGE));

const sourceOf = (job: JobDefinition): SlotSource => {
  const { dst, endsAtMs, schedules, startsAtMs, subject, timezone } = job;
  const union = unionOf(
    schedules.map((expression) =>
      parseSchedule(expression, {
        timezone,
        dst,
        ...(startsAtMs === undefined ? {} : { startsAtMs }),
        ...(endsAtMs === undefined ? {} : { endsAtMs }),
      }),
    ),
  );
  return { name: subject, next: union.next };
};

export interface ScheduledJob {
  readonly job: JobDefinition;
  readonly source: SlotSource;
}

/** The jobs whose schedules fire on a laptop, in the manifest's order. */
export const scheduledJobs = (manifest: Manifest): readonly ScheduledJob[] =>
  manifest.jobs.filter(firesHere).map((job) => ({ job, source: sourceOf(job) }));
