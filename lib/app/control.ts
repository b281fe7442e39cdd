import { slotKeyOf } from "../core/identity.ts";
import type { JobDefinition } from "../core/job.ts";
import type { Item, Value } from "../core/write.ts";

const isMap = (value: Value | undefined): value is { readonly [name: string]: Value } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Set);

const entryOf = (control: Item | undefined, prefix: string, subject: string) => {
  const entry = control?.[`${prefix}#${subject}`];
  return isMap(entry) ? entry : undefined;
};

/**
 * Why this slot must not be claimed, as the control item says it: `p#<subject>` = `{at, until?, reason}` for a paused
 * job (until = the first slot that fires again), `n#<subject>` = `{slot}` for the one slot to skip. Undefined = claim.
 */
export const reasonNotToClaim = (
  control: Item | undefined,
  job: JobDefinition,
  slotMs: number,
): string | undefined => {
  const paused = entryOf(control, "p", job.subject);
  if (paused !== undefined && slotMs < Number(paused["until"] ?? Number.POSITIVE_INFINITY)) return "paused";
  const next = entryOf(control, "n", job.subject);
  return next?.["slot"] === slotKeyOf(slotMs) ? "skipped by hand" : undefined;
};
