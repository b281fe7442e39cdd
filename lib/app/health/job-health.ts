import type { Health, HealthState } from "../../core/health/health.ts";
import { unknownHealth } from "../../core/health/health.ts";
import { type Fact, factOf } from "../../core/health/health-facts.ts";
import { judgeHealth } from "../../core/health/judge-health.ts";
import { type Occurrence, slotMsOf } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import { mutedUntilMs, pausedBy } from "../operate/control.ts";

/** `new`: nothing has ended yet, and nothing is wrong. */
export type JobHealth = HealthState | "new";

export interface HealthView {
  readonly health: JobHealth;
  /** Of failures, the slot of the first in the row; null = for as long as anything is known, or just now. */
  readonly healthSince: string | null;
  /** Since the last success, by slot. */
  readonly failuresInARow: number;
}

export interface Known {
  readonly stored: Health | undefined;
  /** The newest runs, those in trouble, and the one whose start is due; without a record when nobody started it. */
  readonly runs: readonly { readonly occurrence: Occurrence; readonly run: Item | undefined }[];
  readonly fires: boolean;
  readonly control: Item | undefined;
  readonly nowMs: number;
}

/** A lease says nothing to who only looks: that a worker is gone the watchdog finds, and it has been told by then. */
const NEVER_STUCK = Number.POSITIVE_INFINITY;

/**
 * The job's health at this instant: as the watchdog left it, judged on by what its next pass would find. Nothing is
 * written, and nobody told.
 */
export const healthNow = (job: JobDefinition, known: Known): HealthView => {
  const { stored, control, nowMs, fires } = known;
  const looking = { fires, clockBoundMs: NEVER_STUCK };
  const runs: readonly Fact[] = known.runs.map(({ occurrence, run }) => factOf(occurrence, run, looking));
  const paused = pausedBy(control, job, nowMs);
  const mutedMs = mutedUntilMs(control, job, nowMs);
  const { after } = judgeHealth(job, stored ?? unknownHealth(nowMs), {
    nowMs,
    fresh: [],
    runs,
    ...(paused === undefined ? {} : { paused }),
    ...(mutedMs === undefined ? {} : { mutedUntilMs: mutedMs }),
  });
  const { state, streak, sinceMs } = after;
  const hasEnded =
    stored !== undefined ||
    runs.some(({ endedAtMs, state: of }) => endedAtMs !== undefined && of !== "cancelled");
  const isNew = state === "up" && !hasEnded;
  const failingSinceMs = streak === undefined ? undefined : slotMsOf(streak.firstSlotKey);
  const changedMs = stored?.state === state ? sinceMs : undefined;
  const since = failingSinceMs ?? changedMs;
  return {
    health: isNew ? "new" : state,
    healthSince: since === undefined ? null : shortIsoOf(since),
    // Of a long row only the newest runs are read here.
    failuresInARow: Math.max(streak?.count ?? 0, streak === undefined ? 0 : (stored?.streak?.count ?? 0)),
  };
};
