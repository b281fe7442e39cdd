interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly act: () => void;
}

/** Events in order of their instant, then of their making; nothing else decides what happens next. */
export const virtualTime = (startMs: number) => {
  let nowMs = startMs;
  let made = 0;
  /** Latest first, so that the next one is popped. */
  const events: Event[] = [];

  const at = (atMs: number, act: () => void): void => {
    const event = { atMs: Math.max(atMs, nowMs), order: made++, act };
    let [low, high] = [0, events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = events[middle];
      if (other !== undefined && other.atMs > event.atMs) low = middle + 1;
      else high = middle;
    }
    events.splice(low, 0, event);
  };

  /** Everything that follows without waiting has happened once the microtasks are done. */
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  /** Plays until the instant, or until nothing is left to happen. */
  const playUntil = async (untilMs: number): Promise<void> => {
    for (let next = events.at(-1); next !== undefined && next.atMs <= untilMs; next = events.at(-1)) {
      events.pop();
      nowMs = next.atMs;
      next.act();
      await settle();
    }
    nowMs = Math.max(nowMs, untilMs);
  };

  return { now: (): number => nowMs, at, playUntil };
};

export type VirtualTime = ReturnType<typeof virtualTime>;
