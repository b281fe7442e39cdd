import { InvalidInput } from "../../lib/core/errors.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { scheduleOfJob } from "../../lib/core/jobs/job-list.ts";
import { DAY_MS, shortIsoOf } from "../../lib/core/time.ts";
import { readTime } from "../../lib/inbound/operate/times.ts";

export interface Range {
  readonly fromMs: number;
  /** Not included. */
  readonly toMs: number;
}

const MOST_DAYS = 366;
/** More take minutes, and gigabytes. */
const MOST_SLOTS = 250_000;

/** @throws InvalidInput for texts that are no times, a range that is empty or longer than a year */
export const readRange = (from: string, to: string, zone: string): Range => {
  const [fromMs, toMs] = [readTime(from, zone, "from"), readTime(to, zone, "to")];
  if (toMs <= fromMs) {
    throw new InvalidInput(
      "invalid_range",
      `--to ${shortIsoOf(toMs)} is not after --from ${shortIsoOf(fromMs)}`,
      { field: "to", hint: "slots from --from on are played, those before --to" },
    );
  }
  if (toMs - fromMs > MOST_DAYS * DAY_MS) {
    const days = Math.ceil((toMs - fromMs) / DAY_MS);
    throw new InvalidInput("invalid_range", `the range has ${days} days, more than ${MOST_DAYS}`, {
      field: "to",
      hint: "simulate a year at most",
    });
  }
  return { fromMs, toMs };
};

/** @throws InvalidInput for no slot at all, and for more than fit */
export const checkSlots = (jobs: readonly JobDefinition[], { fromMs, toMs }: Range): void => {
  let count = 0;
  for (const job of jobs) {
    for (const _ of scheduleOfJob(job)?.slots(fromMs, toMs) ?? []) {
      count += 1;
      if (count > MOST_SLOTS) {
        throw new InvalidInput("too_many_slots", `the range has more than ${MOST_SLOTS} slots`, {
          field: "to",
          hint: "take a shorter range, or name fewer jobs",
        });
      }
    }
  }
  if (count > 0) return;
  throw new InvalidInput("no_slots", "no schedule names a slot in that range", {
    field: "to",
    hint: "see the next slots with: belfry next '<expression>'",
  });
};
