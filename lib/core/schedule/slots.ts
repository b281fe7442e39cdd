import { DAY_MS, HOUR_MS } from "../time.ts";
import { dayNumberOf } from "./calendar.ts";
import { LAST_YEAR } from "./pattern.ts";
import type { Transition, Zone } from "./zone.ts";

/**
 * What happens to a fixed local time where a clock change takes it away (`gap`) or brings it twice (`repeat`).
 * The defaults are what EventBridge Scheduler documents: skipped, and once at the first pass.
 */
export interface DstPolicy {
  /** `run-after` = one slot at the first instant after the gap, however many local times fell into it. */
  readonly gap: "skip" | "run-after";
  readonly repeat: "first" | "last" | "both";
}

/** The first wall time at or after `fromMs` that a schedule names; undefined = none is left. */
export type NextWall = (fromMs: number) => number | undefined;

export interface SlotSearch {
  readonly zone: Zone;
  readonly dst: DstPolicy;
  readonly nextWall: NextWall;
}

/** No UTC offset is larger; before (wall time - this) no clock shows the wall time. */
const LARGEST_OFFSET_MS = 16 * HOUR_MS;

/** Local 1970 begins, and local 2199 is over, everywhere. */
const FIRST_MS = -DAY_MS;
const END_MS = dayNumberOf({ year: LAST_YEAR + 1, month: 1, day: 2 }) * DAY_MS;

/** How far transitions are looked at one by one; longer than any of them moves a clock. */
const NEAR_MS = 2 * DAY_MS;

/** The stretches of one offset around a start. */
interface Stretches {
  readonly offsetMs: number;
  /** The last transition at or before the start. */
  readonly previous: Transition | undefined;
  readonly following: readonly Transition[];
}

/**
 * The first slot in [fromMs, untilMs), walking the stretches between transitions: within one, local time runs
 * straight, so its slots are the schedule's wall times less the offset.
 */
const firstInStretches = (
  { dst, nextWall }: SlotSearch,
  [fromMs, untilMs]: readonly [number, number],
  { offsetMs, previous, following }: Stretches,
): number | undefined => {
  let startMs = fromMs;
  let offset = offsetMs;
  let before = previous;
  for (const next of [...following, undefined]) {
    const late = slotAfterGap(dst, nextWall, before, startMs);
    if (late !== undefined) return late;
    // No wall time left still leaves those that a later stretch brings again.
    const wall = nextWall(firstWall(dst, before, startMs + offset)) ?? Number.POSITIVE_INFINITY;
    if (wall < wallEnd(dst, next, untilMs + offset)) return wall - offset;
    if (next === undefined || next.atMs >= untilMs) return undefined;
    startMs = next.atMs;
    offset = next.afterMs;
    before = next;
  }
  return undefined;
};

const slotAfterGap = (
  dst: DstPolicy,
  nextWall: NextWall,
  change: Transition | undefined,
  startMs: number,
): number | undefined => {
  if (dst.gap === "skip" || change === undefined || change.atMs !== startMs) return undefined;
  if (change.afterMs < change.beforeMs) return undefined;
  const wall = nextWall(change.atMs + change.beforeMs);
  return wall !== undefined && wall < change.atMs + change.afterMs ? change.atMs : undefined;
};

/** With `first`, what a clock set back shows again has had its slots. */
const firstWall = (dst: DstPolicy, change: Transition | undefined, wallMs: number): number =>
  dst.repeat === "first" && change !== undefined ? Math.max(wallMs, change.atMs + change.beforeMs) : wallMs;

/** With `last`, what the clock is about to show again has its slots then. */
const wallEnd = (dst: DstPolicy, next: Transition | undefined, wallMs: number): number => {
  if (next === undefined) return wallMs;
  const end = dst.repeat === "last" ? Math.min(next.beforeMs, next.afterMs) : next.beforeMs;
  return Math.min(wallMs, next.atMs + end);
};

const stretchesFrom = (zone: Zone, fromMs: number, untilMs: number): Stretches => {
  const transitions = zone.transitionsIn(fromMs - NEAR_MS, untilMs + NEAR_MS);
  const split = transitions.findIndex(({ atMs }) => atMs > fromMs);
  const past = split === -1 ? transitions : transitions.slice(0, split);
  return {
    offsetMs: zone.offsetAt(fromMs),
    previous: past.at(-1),
    following: split === -1 ? [] : transitions.slice(split),
  };
};

/**
 * The first slot at or after `fromMs`.
 *
 * Each turn either answers or moves on to the next wall time that the schedule names (or two days), so the turns
 * are bounded by the wall times that clock changes swallow, not by the time until the next slot.
 */
export const slotFrom = (search: SlotSearch, fromMs: number): number | undefined => {
  const { zone, nextWall } = search;
  let from = Math.max(fromMs, FIRST_MS);
  while (from < END_MS) {
    const calm = zone.calmAt(from);
    let doneUntil: number;
    let wall: number | undefined;
    if (calm === undefined) {
      doneUntil = from + NEAR_MS;
      const slot = firstInStretches(search, [from, doneUntil], stretchesFrom(zone, from, doneUntil));
      if (slot !== undefined) return slot;
      wall = nextWall(doneUntil + zone.offsetAt(doneUntil) - DAY_MS);
    } else {
      doneUntil = calm.untilMs;
      wall = nextWall(from + calm.offsetMs);
      if (wall !== undefined && wall - calm.offsetMs < doneUntil) return wall - calm.offsetMs;
    }
    if (wall === undefined) return undefined;
    from = Math.max(doneUntil, wall - LARGEST_OFFSET_MS);
  }
  return undefined;
};
