import type { JobDefinition } from "../jobs/job.ts";
import { type Flip, type Health, unknownHealth } from "./health.ts";
import { alertOf } from "./judge-health.ts";

/**
 * Of a job or run-time schedule that is there no more: no success will come that could heal it, so what people know of
 * it is told to be over. Told once: afterwards nothing is known.
 * @param job as it was last deployed
 */
export const healthOfGone = (
  job: JobDefinition,
  before: Health,
  nowMs: number,
): { readonly after: Health; readonly flips: readonly Flip[] } => {
  const { known, state } = before;
  if (known === undefined && state === "up") return { after: before, flips: [] };
  const flip = { n: before.flips + 1, atMs: nowMs, from: state, to: "up" } as const;
  const after = { ...unknownHealth(nowMs), flips: flip.n, noted: before.noted };
  if (known === undefined || !job.alerts.recovery) return { after, flips: [flip] };
  const reason = `nobody watches it any more; what was told: ${known.what}`;
  const alert = alertOf(job, { kind: "removed", topic: known.topic, reason }, flip);
  return { after, flips: [{ ...flip, alert }] };
};
