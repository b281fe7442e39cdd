import { Conflict, InvalidInput } from "../errors.ts";
import type { JobDefinition } from "../jobs/job.ts";
import type { Slots } from "../schedule/schedule.ts";
import { HOUR_MS } from "../time.ts";

/** A job that runs elsewhere: its slots are expected, and only pings tell of its runs. */
export type MonitorDefinition = JobDefinition & { readonly monitor: NonNullable<JobDefinition["monitor"]> };

export const isMonitor = (job: JobDefinition): job is MonitorDefinition => job.monitor !== undefined;

/** What the path of every ping by HTTP begins with. */
export const PINGS = "/ping/";

/** @throws InvalidInput (`no_monitor`) for a job that runs here */
export const mustBeMonitor = (job: JobDefinition): MonitorDefinition => {
  if (isMonitor(job)) return job;
  const message = `${job.name} is no monitor: it runs here, and its own runs tell of it`;
  const hint = "export default monitor({ ... }) for a job that runs elsewhere";
  throw new InvalidInput("no_monitor", message, { field: "job", hint });
};

/** @throws Conflict (`runs_elsewhere`) for a monitor: nobody here can start, repeat or stop what it watches */
export const mustRunHere = (job: JobDefinition): void => {
  if (!isMonitor(job)) return;
  throw new Conflict(
    "runs_elsewhere",
    `${job.name} is a monitor: it runs elsewhere, and only a ping (belfry heartbeat ${job.name}) tells of its runs`,
  );
};

/** Earlier than that, a ping is more likely to be a second one of the slot before. */
const MOST_EARLY_MS = HOUR_MS;

/** Before the first slot there is only the period after it; a slot that is alone has none. */
const earlyMsOf = (
  { monitor }: MonitorDefinition,
  [pastMs, nextMs, followingMs]: readonly [number | undefined, number, number | undefined],
): number => {
  const periodMs =
    pastMs === undefined ? (followingMs ?? Number.POSITIVE_INFINITY) - nextMs : nextMs - pastMs;
  return monitor.earlyMs ?? Math.min(periodMs / 2, MOST_EARLY_MS);
};

/**
 * The slot that a ping at the instant counts for: the next one, where the ping is early for it, else the one before,
 * however late that is. Undefined = the schedule has no slot near it.
 */
export const slotOfPing = (
  job: MonitorDefinition,
  schedule: Pick<Slots, "next" | "previous">,
  atMs: number,
): number | undefined => {
  const pastMs = schedule.previous(atMs + 1);
  const nextMs = schedule.next(atMs);
  if (nextMs === undefined) return pastMs;
  const earlyMs = earlyMsOf(job, [pastMs, nextMs, schedule.next(nextMs)]);
  return nextMs - atMs <= earlyMs ? nextMs : pastMs;
};

/** From then on a slot without a ping is missed. */
export const pingDueMs = ({ graceMs }: MonitorDefinition, slotMs: number): number => slotMs + graceMs;
