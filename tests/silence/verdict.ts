import type { Alert, AlertKind } from "../../lib/core/alerts/alert.ts";
import { MINUTE_MS, shortIsoOf } from "../../lib/core/time.ts";
import type { JobPlan, Silence, SilenceKind } from "./plan.ts";

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
  /** From the slot, beyond the grace; the longest. */
  readonly longestMs: number;
  /** In words: false, missed, late and doubled alerts. */
  readonly wrong: readonly string[];
}

const isExpected = ({ place }: Silence): boolean => place !== "in a pause";

/** Reminders repeat what is known, and are no alerts of their own. */
const isNews = ({ kind }: Alert): boolean => kind !== "reminder";

/** Compares what was told of a job with what should have been: one alert and one recovery a silence, nothing else. */
export const judgePlan = ({ job, silences }: JobPlan, alerts: readonly Alert[]): Verdict => {
  const wrong: string[] = [];
  const say = (silence: Silence, what: string): void => {
    wrong.push(
      `${job.timezone} ${job.name} ${shortIsoOf(silence.slotMs)} (${silence.kind}, ${silence.place}): ${what}`,
    );
  };
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
    const isIts = alert.slotMs === silence.slotMs && alert.kind === TOLD_AS[silence.kind];
    if (!isIts) say(silence, `told was ${alert.kind} of ${shortIsoOf(alert.slotMs ?? 0)}: ${alert.reason}`);
    else if (afterMs > 2 * MINUTE_MS) say(silence, `told ${afterMs / MINUTE_MS} minutes after its grace`);
    const recovery = rest.shift();
    if (recovery?.kind !== "recovered") say(silence, `no recovery, but ${recovery?.kind ?? "nothing"}`);
  }
  for (const { kind, atMs, reason } of rest)
    wrong.push(`${job.timezone} ${job.name}: a false alarm at ${shortIsoOf(atMs)}: ${kind}, ${reason}`);
  return {
    silences: silences.size,
    told: expected.length,
    inPause: silences.size - expected.length,
    longestMs,
    wrong,
  };
};
