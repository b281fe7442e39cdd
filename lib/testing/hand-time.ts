import type { Timers } from "../ports/clock.ts";

interface Event {
  readonly atMs: number;
  readonly act: () => void;
}

/** Lets everything happen that waits for no time of ours: promises, and what the host has ready. */
export const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** A clock that moves when it is told to; what falls due on the way happens in its order. */
export const handTime = (startMs: number) => {
  let nowMs = startMs;
  const events = new Set<Event>();
  /** The earliest, and of those the one made first. */
  const next = (): Event | undefined =>
    [...events].reduce<Event | undefined>(
      (first, event) => (first === undefined || event.atMs < first.atMs ? event : first),
      undefined,
    );
  const timers: Timers = {
    after: (waitMs, act) => {
      const event = { atMs: nowMs + Math.max(0, waitMs), act };
      events.add(event);
      return { cancel: () => void events.delete(event) };
    },
  };
  /** Moves to the next thing due, at `untilMs` at the latest; false where nothing is due until then. */
  const step = async (untilMs: number): Promise<boolean> => {
    const event = next();
    if (event === undefined || event.atMs > untilMs) return false;
    events.delete(event);
    nowMs = Math.max(nowMs, event.atMs);
    event.act();
    await settle();
    return true;
  };
  const moveTo = async (untilMs: number): Promise<void> => {
    await settle();
    while (await step(untilMs));
    nowMs = Math.max(nowMs, untilMs);
  };
  return { now: (): number => nowMs, timers, step, moveTo };
};

export type HandTime = ReturnType<typeof handTime>;
