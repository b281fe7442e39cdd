import type { Clock, Timers } from "../../../lib/ports/clock.ts";

export interface HandClock extends Clock, Timers {
  /** Moves on, calling back whatever falls due on the way, in order. */
  advance(ms: number): void;
  /** Another time on the wall, while no time passes for timers: sleep, a step of NTP, a hand on the clock. */
  step(ms: number): void;
  /** The waits that are armed. */
  waits(): readonly number[];
}

/** A wall clock and a timer's clock, moved by hand and apart from each other. */
export const handClock = (start: string): HandClock => {
  let wallMs = Date.parse(start);
  let awakeMs = 0;
  let timers: { dueMs: number; callback: () => void }[] = [];
  return {
    nowMs: () => wallMs,
    after: (waitMs, callback) => {
      const timer = { dueMs: awakeMs + waitMs, callback };
      timers.push(timer);
      return {
        cancel: () => {
          timers = timers.filter((other) => other !== timer);
        },
      };
    },
    advance: (ms) => {
      const untilMs = awakeMs + ms;
      for (;;) {
        const due = timers.filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
        if (due === undefined) break;
        timers = timers.filter((timer) => timer !== due);
        wallMs += due.dueMs - awakeMs;
        awakeMs = due.dueMs;
        due.callback();
      }
      wallMs += untilMs - awakeMs;
      awakeMs = untilMs;
    },
    step: (ms) => {
      wallMs += ms;
    },
    waits: () => timers.map(({ dueMs }) => dueMs - awakeMs),
  };
};
