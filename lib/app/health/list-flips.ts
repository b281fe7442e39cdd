import type { Flip, HealthState } from "../../core/health/health.ts";
import { flipIn } from "../../core/health/health-items.ts";
import { flipRange } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Table } from "../../ports/table.ts";

/** A change of a job's health as `show --flips` has it. */
export interface FlipView {
  readonly n: number;
  readonly at: string;
  readonly from: HealthState;
  readonly to: HealthState;
  /** What was told of it; absent = nothing, in a planned silence for example. */
  readonly alert?: { readonly topic: string; readonly kind: string; readonly reason: string };
}

const viewOf = ({ n, atMs, from, to, alert }: Flip): FlipView => ({
  n,
  at: shortIsoOf(atMs),
  from,
  to,
  ...(alert === undefined ? {} : { alert: { topic: alert.topic, kind: alert.kind, reason: alert.reason } }),
});

/** The newest flips of a job, newest first. */
export const makeListFlips =
  ({ table }: { readonly table: Table }) =>
  async ({ subject }: JobDefinition, limit: number): Promise<readonly FlipView[]> => {
    const items = await table.query({ ...flipRange(subject), descending: true, limit });
    return items.map((item) => viewOf(flipIn(item)));
  };
