import type { Timers } from "../ports/clock.ts";

interface Event {
  readonly atMs: number;
  act: (() => void) | undefined;
}

/** Everything that follows without waiting has happened once the microtasks are done. */
const oneTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * A clock that moves to what is due next: events in order of their instant, then of their making; nothing else decides
 * what happens next.
 * @param settle lets everything happen that an event brings about without waiting for this clock
 */
export const virtualTime = (startMs: number, settle: () => Promise<void> = oneTurn) => {
  let nowMs = startMs;
  /** Latest first, so that the next one is popped. */
  const events: Event[] = [];

  const at = (atMs: number, act: () => void): { cancel(): void } => {
    const event: Event = { atMs: Math.max(atMs, nowMs), act };
    let [low, high] = [0, events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = events[middle];
      if (other !== undefined && other.atMs > event.atMs) low = middle + 1;
      else high = middle;
    }
    events.splice(low, 0, event);
    return {
      cancel: () => {
        event.act = undefined;
      },
    };
  };

  /** When something is due next; undefined = never. */
  const nextMs = (): number | undefined => {
    while (events.length > 0 && events.at(-1)?.act === undefined) events.pop();
    return events.at(-1)?.atMs;
  };

  /** Moves to the next thing due, at `untilMs` at the latest; false where nothing is due until then. */
  const step = async (untilMs: number): Promise<boolean> => {
    const dueMs = nextMs();
    if (dueMs === undefined || dueMs > untilMs) return false;
    const event = events.pop();
    nowMs = dueMs;
    event?.act?.();
    await settle();
    return true;
  };

  /** Plays until the instant; also when nothing is left to happen, it is that instant then. */
  const playUntil = async (untilMs: number): Promise<void> => {
    while (await step(untilMs));
    nowMs = Math.max(nowMs, untilMs);
  };

  const timers: Timers = { after: (waitMs, act) => at(nowMs + Math.max(0, waitMs), act) };

  return { now: (): number => nowMs, at, timers, nextMs, step, playUntil };
};

export type VirtualTime = ReturnType<typeof virtualTime>;
