import type { Faults } from "./process.ts";

/** What goes wrong around handlers: at every call of a port, with messages and with events. */
export const SURROUNDING_FAULTS: Faults = {
  "crash-before": 0.01,
  "crash-after": 0.01,
  throttled: 0.02,
  "lost-answer": 0.02,
  repeated: 0.02,
  pause: 0.01,
  duplicate: 0.1,
  "duplicate-event": 0.2,
  "late-event": 0.1,
  "very-late-event": 0.01,
  "dropped-event": 0.05,
  "early-visibility": 0.1,
};

/**
 * What a user's jobs are played under: the same kinds, seldom enough that a run does not die of them, and often enough
 * that a week meets each. And by chance a process is killed before its handler is called, while it runs, or after.
 */
export const GENTLE_FAULTS: Faults = {
  "crash-before": 0.002,
  "crash-after": 0.002,
  throttled: 0.005,
  "lost-answer": 0.005,
  repeated: 0.005,
  pause: 0.002,
  duplicate: 0.05,
  "duplicate-event": 0.1,
  "late-event": 0.05,
  "very-late-event": 0.005,
  "dropped-event": 0.02,
  "early-visibility": 0.02,
  kill: 0.01,
};
