import { InvalidInput } from "../errors.ts";
import { DAY_MS, LAST_INSTANT_MS, MINUTE_MS } from "../time.ts";
import { wallText } from "./calendar.ts";
import { finderOf, nextWall } from "./pattern.ts";
import type { Rule } from "./rule.ts";
import { type DstPolicy, slotFrom } from "./slots.ts";
import type { Zone } from "./zone.ts";

/** The instants at which a job is due, in whole milliseconds. The same question has the same answer for ever. */
export interface Slots {
  /** The slots in [fromMs, untilMs), ascending, each once. */
  slots(fromMs: number, untilMs: number): Iterable<number>;
  /** The first slot strictly after; undefined when there is none. */
  next(afterMs: number): number | undefined;
  /** The last slot strictly before; undefined when there is none since 1970. */
  previous(beforeMs: number): number | undefined;
  has(atMs: number): boolean;
}

/** The first slot at or after an instant. */
export type FirstFrom = (fromMs: number) => number | undefined;

/** No slot is earlier than this, though local 1970 begins half a day before it in the east. */
const EARLIEST_MS = -DAY_MS;

const lastBefore = (firstFrom: FirstFrom, beforeMs: number): number | undefined => {
  const slotIn = (fromMs: number): number | undefined => {
    const slot = firstFrom(fromMs);
    return slot !== undefined && slot < beforeMs ? slot : undefined;
  };
  let reachMs = MINUTE_MS;
  let low = slotIn(beforeMs - reachMs);
  while (low === undefined) {
    if (beforeMs - reachMs <= EARLIEST_MS) return undefined;
    reachMs *= 4;
    low = slotIn(beforeMs - reachMs);
  }
  // `low` is a slot and none is in [high, beforeMs). Asking for the slot after `low` ends it early where slots are
  // rare, and that is where a question is dear.
  let high = beforeMs;
  for (;;) {
    const following = slotIn(low + 1);
    if (following === undefined) return low;
    const middle = Math.ceil((following + high) / 2);
    const slot = slotIn(middle);
    if (slot === undefined) high = middle;
    low = slot ?? following;
  }
};

const check = (name: string, atMs: number | undefined): void => {
  if (atMs !== undefined && !Number.isSafeInteger(atMs)) {
    throw new InvalidInput("invalid_schedule", `${name} is not an instant in whole milliseconds`, {
      field: name,
      hint: "milliseconds since 1970-01-01T00:00Z",
    });
  }
};

/** `[startsAtMs, endsAtMs)`; open where undefined. */
export interface Bounds {
  readonly startsAtMs?: number | undefined;
  readonly endsAtMs?: number | undefined;
}

/** @throws InvalidInput when the bounds are not instants, or leave no time between them. */
export const checkBounds = ({ startsAtMs, endsAtMs }: Bounds): void => {
  check("startsAt", startsAtMs);
  check("endsAt", endsAtMs);
  if (startsAtMs !== undefined && endsAtMs !== undefined && endsAtMs <= startsAtMs) {
    throw new InvalidInput("invalid_schedule", "endsAt is not after startsAt", {
      field: "endsAt",
      hint: "slots are in [startsAt, endsAt)",
    });
  }
};

/** All questions, answered from one. */
export const slotsFrom = (firstFrom: FirstFrom, { startsAtMs, endsAtMs }: Bounds = {}): Slots => {
  const isBounded = startsAtMs !== undefined || endsAtMs !== undefined;
  const bounded: FirstFrom = (fromMs) => {
    const slot = firstFrom(startsAtMs === undefined ? fromMs : Math.max(fromMs, startsAtMs));
    return slot !== undefined && (endsAtMs === undefined || slot < endsAtMs) ? slot : undefined;
  };
  const first = isBounded ? bounded : firstFrom;
  return {
    *slots(fromMs, untilMs) {
      let slot = first(Math.ceil(fromMs));
      while (slot !== undefined && slot < untilMs) {
        yield slot;
        slot = first(slot + 1);
      }
    },
    next: (afterMs) => first(Math.floor(afterMs) + 1),
    previous: (beforeMs) => lastBefore(first, Math.ceil(beforeMs)),
    has: (atMs) => Number.isInteger(atMs) && first(atMs) === atMs,
  };
};

/** The instants at which a zone's clocks show a wall time, ascending: none in a gap, two in a repeat. */
export const instantsOf = (zone: Zone, wallMs: number): readonly number[] => {
  const around = [-DAY_MS, 0, DAY_MS].map((distance) => wallMs - zone.offsetAt(wallMs + distance));
  return [...new Set(around)].filter((atMs) => atMs + zone.offsetAt(atMs) === wallMs).sort((a, b) => a - b);
};

const onceFrom = (zone: Zone, wallMs: number, { repeat }: DstPolicy): FirstFrom => {
  const instants = instantsOf(zone, wallMs);
  // `both` makes two slots of a recurring local time; one instant stays one slot.
  const slot = repeat === "last" ? instants.at(-1) : instants[0];
  if (slot === undefined) {
    throw new InvalidInput(
      "never_fires",
      `${wallText(wallMs)} does not exist in ${zone.name}: its clocks skip it`,
      {
        field: "expression",
        hint: "a local time before or after the clock change",
      },
    );
  }
  return (fromMs) => (slot >= fromMs ? slot : undefined);
};

/** Intervals and interval-like patterns follow elapsed time: whatever the clock shows, through both passes. */
const ELAPSED: DstPolicy = { gap: "skip", repeat: "both" };

/** @throws InvalidInput for one local time that the zone's clocks skip, and for an anchor that is no instant. */
export const firstFromOf = (rule: Rule, zone: Zone, dst: DstPolicy, anchorMs: number): FirstFrom => {
  if (rule.kind === "once") return onceFrom(zone, rule.wallMs, dst);
  if (rule.kind === "interval") {
    check("anchor", anchorMs);
    const { everyMs } = rule;
    return (fromMs) => {
      const slot = anchorMs + Math.ceil((fromMs - anchorMs) / everyMs) * everyMs;
      return slot > LAST_INSTANT_MS ? undefined : slot;
    };
  }
  const finder = finderOf(rule.pattern);
  const search = {
    zone,
    dst: rule.pattern.isIntervalLike ? ELAPSED : dst,
    nextWall: (fromMs: number) => nextWall(finder, fromMs),
  };
  return (fromMs) => slotFrom(search, fromMs);
};
