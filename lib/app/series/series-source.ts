import { slotKeyOf, slotMsOf } from "../../core/identity.ts";
import { OLDEST_DELIVERY_MS, runKey, slotKeyInSortKey, subjectInPartitionKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { AT_END, type Handed, type Series } from "../../core/runs/series.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { stateOf } from "../inspect/run-view.ts";
import { isLocked, listedInLock } from "../path/lock-keeper.ts";

type SourceDeps = Pick<Deps, "table" | "clock" | "jobs">;

/** What a series hands out next. */
export interface Page {
  readonly runs: readonly Pick<Handed, "slotKey" | "epoch">[];
  /** How many were passed over on the way. */
  readonly left: number;
  readonly cursor: string;
}

/** So many slots or dead runs are looked at at once. */
const PAGE = 100;

/**
 * The attempt set in which a series may ask for a run; undefined = it is left alone. One that succeeded, is on its way
 * or is parked always is, and so is one so old that what lies beside its record may be gone.
 */
export const epochToAsk = (
  run: Item | undefined,
  redo: readonly string[],
  nowMs: number,
): number | undefined => {
  const state = stateOf(run);
  if (run === undefined || state === undefined) return 1;
  const isOld = nowMs - Number(run["claimedAtMs"]) > OLDEST_DELIVERY_MS;
  return redo.includes(state) && !isOld ? Number(run["ep"]) + 1 : undefined;
};

/** Past slots in order, from the cursor on. */
const nextSlots = async (
  deps: SourceDeps,
  job: JobDefinition,
  series: Series,
  most: number,
): Promise<Page> => {
  const { table, jobs, clock } = deps;
  const untilMs = slotMsOf(series.until);
  const slots: number[] = [];
  for (const slotMs of jobs.scheduleOf(job)?.slots(slotMsOf(series.cursor), untilMs) ?? []) {
    slots.push(slotMs);
    if (slots.length === PAGE) break;
  }
  const items = await table.getMany(
    slots.map((slotMs) => runKey({ subject: job.subject, slotKey: slotKeyOf(slotMs) })),
  );
  const recorded = new Map(items.map((item) => [slotKeyInSortKey(String(item["sk"])), item]));
  // Claimed by its schedule, and without a record before it starts.
  const claimed = isLocked(job) ? await listedInLock(table, job.subject) : new Set<string>();
  const runs: { slotKey: string; epoch: number }[] = [];
  let left = 0;
  for (const slotMs of slots) {
    const slotKey = slotKeyOf(slotMs);
    const epoch = claimed.has(slotKey)
      ? undefined
      : epochToAsk(recorded.get(slotKey), series.redo, clock.nowMs());
    if (epoch === undefined) left += 1;
    else if (runs.length === most) return { runs, left, cursor: slotKey };
    else runs.push({ slotKey, epoch });
  }
  const last = slots.at(-1);
  const isLast = slots.length < PAGE || last === undefined;
  return { runs, left, cursor: isLast ? AT_END : slotKeyOf(last + 1) };
};

const monthAfter = (month: string): string => {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return number === 12 ? `${year + 1}-01` : `${year}-${String(number + 1).padStart(2, "0")}`;
};

/** Dead runs by the instant of their end, from the cursor (already looked at) on. */
export const nextDead = async (
  deps: SourceDeps,
  job: JobDefinition,
  series: Pick<Series, "cursor" | "until" | "redo">,
  most: number,
): Promise<Page> => {
  const { table, clock } = deps;
  const month = series.cursor.slice(0, 7);
  const items = await table.query({
    index: "bad",
    pk: month,
    first: series.cursor,
    last: series.until,
    limit: PAGE,
  });
  const runs: { slotKey: string; epoch: number }[] = [];
  let cursor = series.cursor;
  for (const item of items) {
    const badKey = String(item["badKey"]);
    // Bounds are inclusive: the page begins with the item that ended the last one.
    if (badKey === series.cursor) continue;
    const epoch =
      subjectInPartitionKey(String(item["pk"])) === job.subject
        ? epochToAsk(item, series.redo, clock.nowMs())
        : undefined;
    if (epoch !== undefined && runs.length === most) return { runs, left: 0, cursor };
    if (epoch !== undefined) runs.push({ slotKey: slotKeyInSortKey(String(item["sk"])), epoch });
    cursor = badKey;
  }
  if (items.length === PAGE) return { runs, left: 0, cursor };
  const next = monthAfter(month);
  return { runs, left: 0, cursor: next > series.until.slice(0, 7) ? AT_END : next };
};

/** The next runs of the series, at most so many. */
export const nextRuns = (
  deps: SourceDeps,
  job: JobDefinition,
  series: Series,
  most: number,
): Promise<Page> =>
  series.kind === "backfill" ? nextSlots(deps, job, series, most) : nextDead(deps, job, series, most);
