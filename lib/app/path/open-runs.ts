import { lockKey, runRange, slotKeyInSortKey } from "../../core/items.ts";
import { holdersOf, waitersOf } from "../../core/runs/lock.ts";
import { isTerminal } from "../../core/runs/run.ts";
import type { Deps } from "../deps.ts";
import { lookAt } from "../watchdog/looks.ts";

/** How many of a job's newest runs are searched for those that are not over; older ones have a note. */
const NEWEST_RUNS = 100;

/** Notes every run of a job that may not be over, when a deploy changes what the watchdog expects of it. */
export const noteOpenRuns = async (deps: Pick<Deps, "table" | "clock">, subject: string): Promise<void> => {
  const runs = await deps.table.query({ ...runRange(subject), descending: true, limit: NEWEST_RUNS });
  const lock = await deps.table.get(lockKey(subject), { consistent: true });
  const open = runs.filter((run) => !isTerminal(String(run["st"])));
  const slotKeys = new Set([
    ...open.map((run) => slotKeyInSortKey(String(run["sk"]))),
    ...[...holdersOf(lock), ...waitersOf(lock)].map(({ slotKey }) => slotKey),
  ]);
  for (const slotKey of slotKeys) await lookAt(deps, { subject, slotKey }, { atMs: deps.clock.nowMs() });
};
