/** One schedule as far as the local scheduler knows it: when it strikes next, strictly after an instant. */
export interface SlotSource {
  readonly name: string;
  /** Undefined = never again. */
  next(afterMs: number): number | undefined;
}

export interface ScheduleState {
  /** The next slot that has not been looked at; undefined = none. */
  readonly nextMs: number | undefined;
  /** Slots struck, so that a clock put back strikes none of them again. Oldest first, bounded. */
  readonly struckMs: readonly number[];
}

export interface DueSlots {
  readonly due: readonly number[];
  readonly state: ScheduleState;
}

/** Older slots than that are the watchdog's: it knows the job's policy for what was slept through. */
export const LATE_MS = 60_000;
/** A week of minutes: more than any step that a clock is put back. */
const REMEMBERED = 10_080;

/** A schedule that begins now: its first slot is strictly later. */
export const begin = (source: SlotSource, nowMs: number): ScheduleState => ({
  nextMs: source.next(nowMs),
  struckMs: [],
});

const nextNotStruck = (
  source: SlotSource,
  afterMs: number,
  struck: readonly number[],
): number | undefined => {
  let slotMs = source.next(afterMs);
  while (slotMs !== undefined && struck.includes(slotMs)) slotMs = source.next(slotMs);
  return slotMs;
};

/**
 * The slots to strike at `nowMs`, and the state after it. Never before its time, never twice; a slot passed by
 * more than a minute (sleep, a clock put forward) is left out. `beforeMs` = when the schedule was last looked at:
 * where the clock has been put back since, the slots between are found again, but for those struck.
 */
export const dueSlots = (
  source: SlotSource,
  { nextMs, struckMs }: ScheduleState,
  { beforeMs, nowMs }: { readonly beforeMs: number; readonly nowMs: number },
): DueSlots => {
  if (nowMs < beforeMs) {
    return { due: [], state: { nextMs: nextNotStruck(source, nowMs, struckMs), struckMs } };
  }
  if (nextMs === undefined || nowMs < nextMs) return { due: [], state: { nextMs, struckMs } };
  const oldestMs = nowMs - LATE_MS;
  const due: number[] = [];
  let slotMs = nextMs < oldestMs ? nextNotStruck(source, oldestMs - 1, struckMs) : nextMs;
  while (slotMs !== undefined && slotMs <= nowMs) {
    due.push(slotMs);
    slotMs = nextNotStruck(source, slotMs, struckMs);
  }
  return { due, state: { nextMs: slotMs, struckMs: [...struckMs, ...due].slice(-REMEMBERED) } };
};
