import { slotKeyOf } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { shortIsoOf } from "../../core/time.ts";
import { type Item, isMap } from "../../core/write.ts";

/** Attributes of the control item. */
export const pauseEntry = ({ subject }: JobDefinition): string => `p#${subject}`;
export const skipEntry = ({ subject }: JobDefinition): string => `n#${subject}`;

const entryOf = (control: Item | undefined, name: string) => {
  const entry = control?.[name];
  return isMap(entry) ? entry : undefined;
};

/**
 * Why this slot must not be claimed, as the control item says it: `p#<subject>` = `{sinceMs, untilMs?, reason}` for a
 * paused job (untilMs = the first slot that fires again), `n#<subject>` = `{slot}` for the one slot to skip.
 * Undefined = claim.
 */
export const reasonNotToClaim = (
  control: Item | undefined,
  job: JobDefinition,
  slotMs: number,
): string | undefined => {
  const paused = entryOf(control, pauseEntry(job));
  if (paused !== undefined && slotMs < Number(paused["untilMs"] ?? Number.POSITIVE_INFINITY)) return "paused";
  const next = entryOf(control, skipEntry(job));
  return next?.["slot"] === slotKeyOf(slotMs) ? "skipped by hand" : undefined;
};

export const muteEntry = ({ subject }: JobDefinition): string => `m#${subject}`;

/** Is it paused at the instant, and did it pause itself? */
export const pausedBy = (
  control: Item | undefined,
  job: JobDefinition,
  nowMs: number,
): { readonly byItself: boolean; readonly untilMs?: number } | undefined => {
  const entry = entryOf(control, pauseEntry(job));
  const untilMs = entry?.["untilMs"];
  if (entry === undefined || (typeof untilMs === "number" && untilMs <= nowMs)) return undefined;
  return { byItself: entry["byItself"] === true, ...(typeof untilMs === "number" ? { untilMs } : {}) };
};

/** The end of its planned silence, `m#<subject>` = `{sinceMs, untilMs, reason?}`; undefined = alerts are told. */
export const mutedUntilMs = (
  control: Item | undefined,
  job: JobDefinition,
  nowMs: number,
): number | undefined => {
  const untilMs = Number(entryOf(control, muteEntry(job))?.["untilMs"] ?? 0);
  return untilMs > nowMs ? untilMs : undefined;
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
  const { sinceMs, untilMs, reason } = entry;
  if (typeof untilMs === "number" && untilMs <= nowMs) return undefined;
  return {
    since: shortIsoOf(Number(sinceMs)),
    reason: String(reason),
    ...(typeof untilMs === "number" ? { until: shortIsoOf(untilMs) } : {}),
  };
};

export interface MuteView {
  readonly since: string;
  readonly until: string;
  readonly reason?: string;
}

/** The planned silence of a job; undefined = alerts are told. */
export const muteOf = (
  control: Item | undefined,
  job: JobDefinition,
  nowMs: number,
): MuteView | undefined => {
  const untilMs = mutedUntilMs(control, job, nowMs);
  if (untilMs === undefined) return undefined;
  const { sinceMs, reason } = entryOf(control, muteEntry(job)) ?? {};
  return {
    since: shortIsoOf(Number(sinceMs)),
    until: shortIsoOf(untilMs),
    ...(typeof reason === "string" ? { reason } : {}),
  };
};
