import { slotKeyOf } from "../core/identity.ts";
import type { JobDefinition } from "../core/job.ts";
import { shortIsoOf } from "../core/time.ts";
import type { Item, Value } from "../core/write.ts";

const isMap = (value: Value | undefined): value is { readonly [name: string]: Value } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Set);

/** Attributes of the control item. */
export const pauseEntry = ({ subject }: JobDefinition): string => `p#${subject}`;
export const skipEntry = ({ subject }: JobDefinition): string => `n#${subject}`;

const entryOf = (control: Item | undefined, name: string) => {
  const entry = control?.[name];
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
  const paused = entryOf(control, pauseEntry(job));
  if (paused !== undefined && slotMs < Number(paused["until"] ?? Number.POSITIVE_INFINITY)) return "paused";
  const next = entryOf(control, skipEntry(job));
  return next?.["slot"] === slotKeyOf(slotMs) ? "skipped by hand" : undefined;
};

export interface PauseView {
  readonly since: string;
  readonly reason: string;
  readonly until?: string;
}

/** The pause of a job as the control item has it; undefined = not paused at the instant. */
export const pauseOf = (
  control: Item | undefined,
  job: JobDefinition,
  nowMs: number,
): PauseView | undefined => {
  const entry = entryOf(control, pauseEntry(job));
  if (entry === undefined) return undefined;
  const { at, until, reason } = entry;
  if (typeof until === "number" && until <= nowMs) return undefined;
  return {
    since: shortIsoOf(Number(at)),
    reason: String(reason),
    ...(typeof until === "number" ? { until: shortIsoOf(until) } : {}),
  };
};
