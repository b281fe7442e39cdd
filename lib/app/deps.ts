import type { JobList } from "../core/jobs/job-list.ts";
import type { Timings } from "../core/settings.ts";
import type { Clock, Random, Timers } from "../ports/clock.ts";
import type { Journal } from "../ports/journal.ts";
import type { RunQueue } from "../ports/run-queue.ts";
import type { Table } from "../ports/table.ts";

/** What the use cases are made from; each names the part it needs. */
export interface Deps {
  readonly table: Table;
  readonly queue: RunQueue;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly journal: Journal;
  readonly timings: Timings;
  readonly jobs: JobList;
}
