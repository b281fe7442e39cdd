import { durationText } from "../../core/duration.ts";
import { type Occurrence, runIdOf } from "../../core/identity.ts";
import type { MonitorDefinition } from "../../core/monitors/monitor.ts";
import { markDead } from "../../core/runs/marks.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { lookAgain } from "./looks.ts";

type SilentDeps = Pick<Deps, "table" | "clock" | "random" | "journal" | "timings">;

/** A monitor's run that has told its start, as the watchdog found it. */
export interface PingedRun {
  readonly job: MonitorDefinition;
  readonly occurrence: Occurrence;
  readonly run: Item;
}

/**
 * Ends a run that told its start and did not tell its end in time; of one that still may, notes the next look. Answers
 * the record as it is then.
 */
export const endSilentRun = async (deps: SilentDeps, pinged: PingedRun): Promise<Item> => {
  const { job, occurrence, run } = pinged;
  const { clock, random, table, timings } = deps;
  if (run["st"] !== "running") return run;
  const overMs = Number(run["leaseUntilMs"]) + timings.clockBoundMs;
  const nowMs = clock.nowMs();
  if (nowMs <= overMs) {
    await lookAgain(deps, pinged, overMs + 1);
    return run;
  }
  const message = `it started, and its end was not told within ${durationText(job.monitor.endWithinMs)}`;
  const answer = await table.write(
    markDead({
      occurrence,
      epoch: Number(run["ep"]),
      token: random.token(),
      nowMs,
      clockBoundMs: timings.clockBoundMs,
      state: "dead",
      reason: "no end was told",
      error: { name: "NoEnd", message },
    }),
  );
  if (answer.written) {
    deps.journal.notice("error", "dead", { runId: runIdOf(occurrence), job: job.name, reason: message });
  }
  return answer.item ?? run;
};
