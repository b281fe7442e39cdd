/** Events in order of their instant, then of their making; nothing else decides what happens next. */
export const virtualTime = (startMs: number) => {
  let nowMs = startMs;
  let made = 0;
  let events: { readonly atMs: number; readonly order: number; readonly act: () => void }[] = [];

  const at = (atMs: number, act: () => void): void => {
    events.push({ atMs: Math.max(atMs, nowMs), order: made++, act });
  };

  /** Everything that follows without waiting has happened once the microtasks are done. */
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  const takeNext = () => {
    let first = events[0];
    for (const event of events) {
      if (first === undefined || event.atMs < first.atMs) first = event;
      else if (event.atMs === first.atMs && event.order < first.order) first = event;
    }
    events = events.filter((event) => event !== first);
    return first;
  };

  /** Plays until the instant, or until nothing is left to happen. */
  const playUntil = async (untilMs: number): Promise<void> => {
    for (;;) {
      const next = takeNext();
      if (next === undefined) break;
      if (next.atMs > untilMs) {
        events.push(next);
        break;
      }
      nowMs = next.atMs;
      next.act();
      await settle();
    }
    nowMs = Math.max(nowMs, untilMs);
  };

  return { now: (): number => nowMs, at, playUntil };
};

export type VirtualTime = ReturnType<typeof virtualTime>;
