import type { Alert, AlertKind } from "../../lib/core/alerts/alert.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { MINUTE_MS, shortIsoOf } from "../../lib/core/time.ts";
import { isMadeGood, type JobPlan, type Silence, type SilenceKind } from "./plan.ts";

/** What may be told of each kind of silence. */
const TOLD_AS: { readonly [kind in SilenceKind]: AlertKind } = {
  "not-started": "late",
  lost: "late",
  "not-struck": "missed",
  vanished: "stuck",
  failed: "failed",
};

export interface Verdict {
  readonly silences: number;
  readonly told: number;
  readonly inPause: number;
  /** Slots that nothing struck and the watchdog made up for: nothing is told of them. */
  readonly madeGood: number;
  /** From the slot, beyond the grace; the longest. */
  readonly longestMs: number;
  /** In words: false, missed, late and doubled alerts. */
  readonly wrong: readonly string[];
}

const isExpected = (silence: Silence): boolean => silence.place !== "in a pause" && !isMadeGood(silence);

/** Reminders repeat what is known, and are no alerts of their own. */
const isNews = ({ kind }: Alert): boolean => kind !== "reminder";

/** Of a slot that was made up for late: where the next one has succeeded before the failure is seen, nothing is left to recover. */
const needsNoRecovery = ({ place }: Silence, { passing }: Alert): boolean =>
  place === "in a misfire window" && passing === true;

/** What is wrong with the alert of a silence, and with the recovery that is to follow it. */
const faultsOf = (
  silence: Silence,
  { afterMs, alert, recovery }: { afterMs: number; alert: Alert; recovery: Alert | undefined },
): readonly string[] => {
  const isIts = alert.slotMs === silence.slotMs && alert.kind === TOLD_AS[silence.kind];
  const faults: string[] = [];
  if (!isIts) faults.push(`told was ${alert.kind} of ${shortIsoOf(alert.slotMs ?? 0)}: ${alert.reason}`);
  else if (afterMs > 2 * MINUTE_MS) faults.push(`told ${afterMs / MINUTE_MS} minutes after its grace`);
  if (!needsNoRecovery(silence, alert) && recovery?.kind !== "recovered")
    faults.push(`no recovery, but ${recovery?.kind ?? "nothing"}`);
  return faults;
};

/** Compares what was told of a job with what should have been: one alert and one recovery a silence, nothing else. */
export const judgePlan = (
  { job, silences }: JobPlan,
  alerts: readonly Alert[],
  hasSucceeded: (job: JobDefinition, slotMs: number) => boolean,
): Verdict => {
  const wrong: string[] = [];
  const say = (silence: Silence, what: string): void => {
    wrong.push(
      `${job.timezone} ${job.name} ${shortIsoOf(silence.slotMs)} (${silence.kind}, ${silence.place}): ${what}`,
    );
  };
  const madeGood = [...silences.values()].filter(isMadeGood);
  for (const silence of madeGood.filter(({ slotMs }) => !hasSucceeded(job, slotMs)))
    say(silence, "nothing made up for it");
  const rest = alerts.filter((alert) => alert.job === job.name && isNews(alert));
  const expected = [...silences.values()].filter(isExpected).sort((one, other) => one.slotMs - other.slotMs);
  let longestMs = 0;
  for (const silence of expected) {
    const alert = rest.shift();
    if (alert === undefined) {
      say(silence, "nothing was told");
      continue;
    }
    const afterMs = alert.atMs - silence.slotMs - job.graceMs;
    longestMs = Math.max(longestMs, afterMs);
    const recovery = needsNoRecovery(silence, alert) ? undefined : rest.shift();
    for (const fault of faultsOf(silence, { afterMs, alert, recovery })) say(silence, fault);
  }
  for (const { kind, atMs, reason } of rest)
    wrong.push(`${job.timezone} ${job.name}: a false alarm at ${shortIsoOf(atMs)}: ${kind}, ${reason}`);
  return {
    silences: silences.size,
    told: expected.length,
    inPause: silences.size - expected.length - madeGood.length,
    madeGood: madeGood.length,
    longestMs,
    wrong,
  };
};
