import type { Item } from "../../core/write.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import { DELETE, leave, type Visit, type WorkDeps } from "../path/visit.ts";
import { lookAt } from "../watchdog/looks.ts";
import { stopShards } from "./stop-shards.ts";

/** A worker's part in the end of a run whose shards may be at work; the watchdog has the rest. */
export const leaveStopping = async (
  deps: WorkDeps,
  visit: Visit,
  run: Item | undefined,
): Promise<Settlement> => {
  const { occurrence } = visit;
  const stop = await stopShards(deps, { occurrence, run });
  if (stop.kind === "ended") return leave(deps, visit);
  await lookAt(deps, occurrence, { atMs: stop.quietAtMs });
  return DELETE;
};
