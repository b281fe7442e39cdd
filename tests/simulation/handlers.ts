import type { AttemptEnd, Attempts } from "../../lib/ports/attempts.ts";
import type { Process, Universe } from "./process.ts";

/** An execution of a handler, as the outside world would have seen it. */
export interface Execution {
  readonly runId: string;
  readonly job: string;
  readonly attempt: number;
  readonly startedAtMs: number;
  endedAtMs: number | undefined;
  /** The handler came to its end and answered. */
  completed: boolean;
  /** Its process died under it. */
  died: boolean;
  /** Its process slept meanwhile. */
  slept(): boolean;
}

const failure = {
  name: "Error",
  message: "the handler failed",
  stack: "Error: the handler failed\n    at x",
};

/** Handlers that take some time, and then return, throw, or never end; they die with their process. */
export const simulatedAttempts = (universe: Universe, process: Process, log: Execution[]): Attempts => ({
  start(request) {
    const { time, random } = universe;
    const execution: Execution = {
      runId: request.runId,
      job: request.job,
      attempt: request.attempt,
      startedAtMs: time.now(),
      endedAtMs: undefined,
      completed: false,
      died: false,
      slept: process.slept,
    };
    const number = log.push(execution);
    let resolve: (end: AttemptEnd) => void = () => undefined;
    const ended = new Promise<AttemptEnd>((done) => {
      resolve = done;
    });
    const end = (answer: AttemptEnd): void => {
      if (execution.endedAtMs !== undefined) return;
      execution.endedAtMs = time.now();
      execution.completed = answer.kind === "returned";
      if (process.alive()) resolve(answer);
    };
    process.onDeath(() => {
      if (execution.endedAtMs !== undefined) return;
      execution.endedAtMs = time.now();
      execution.died = true;
    });
    const hangs = random.chance(universe.faults()["hang"] ?? 0);
    const lasts = hangs ? Number.POSITIVE_INFINITY : random.whole(10, random.chance(0.2) ? 200_000 : 5_000);
    const throws = random.chance(universe.faults()["throw"] ?? 0);
    if (lasts < request.timeoutMs) {
      process.timers.after(lasts, () =>
        end(
          throws ? { kind: "threw", error: failure, permanent: false } : { kind: "returned", result: number },
        ),
      );
    } else process.timers.after(request.timeoutMs, () => end({ kind: "timed-out", error: failure }));
    return {
      ended,
      // Time to obey the signal; the lease's stop margin is longer than that.
      stop: () =>
        process.timers.after(random.whole(1, 1_000), () => end({ kind: "stopped", error: failure })),
    };
  },
});
