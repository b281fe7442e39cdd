import type { JobDefinition } from "../../core/jobs/job.ts";
import type { UnionSchedule } from "../../core/schedule/schedule.ts";
import { shortIsoOf } from "../../core/time.ts";

/** A job's next slots, in the shape that `next` prints for an expression, and the job's name. */
export interface JobPreview {
  readonly job: string;
  /** Several schedules are a union, written here with ` | ` between them; empty = by hand only. */
  readonly expression: string;
  /** Of the first schedule; null = by hand only. */
  readonly dialect: string | null;
  readonly timezone: string;
  readonly description: string;
  /** ISO 8601 in UTC, ascending, strictly after the instant asked for. */
  readonly occurrences: readonly string[];
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
}

const DEFAULT_COUNT = 5;

const slotsAfter = (schedule: UnionSchedule, fromMs: number, count: number): readonly number[] => {
  const slots: number[] = [];
  let slotMs = schedule.next(fromMs);
  while (slotMs !== undefined && slots.length < count) {
    slots.push(slotMs);
    slotMs = schedule.next(slotMs);
  }
  return slots;
};

export const previewJob = (
  job: JobDefinition,
  schedule: UnionSchedule | undefined,
  { fromMs, count = DEFAULT_COUNT }: { readonly fromMs: number; readonly count?: number | undefined },
): JobPreview => ({
  job: job.name,
  expression: job.schedules.join(" | "),
  dialect: schedule?.schedules[0]?.dialect ?? null,
  timezone: job.timezone,
  description: schedule?.describe("en") ?? "by hand only",
  occurrences: schedule === undefined ? [] : slotsAfter(schedule, fromMs, count).map(shortIsoOf),
  warnings: schedule?.warnings(fromMs).map(({ code, message }) => ({ code, message })) ?? [],
});
