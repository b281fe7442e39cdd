import type { AttemptEnd, AttemptServices, Attempts } from "../../lib/ports/attempts.ts";
import type { SideEffects } from "./effects.ts";
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

/** What handlers leave behind for those who judge the story. */
export interface Traces {
  readonly executions: Execution[];
  readonly effects: SideEffects;
}

export type Handlers = (universe: Universe, process: Process, traces: Traces) => Attempts;

export const notedExecution = (
  { executions }: Traces,
  { time }: Universe,
  process: Process,
  request: { readonly runId: string; readonly job: string; readonly attempt: number },
) => {
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
  const number = executions.push(execution);
  const { promise: ended, resolve } = Promise.withResolvers<AttemptEnd>();
  const end = (answer: AttemptEnd): void => {
    if (execution.endedAtMs !== undefined) return;
    execution.endedAtMs = time.now();
    execution.completed = answer.kind === "returned" || answer.kind === "continue";
    if (process.alive()) resolve(answer);
  };
  process.onDeath(() => {
    if (execution.endedAtMs !== undefined) return;
    execution.endedAtMs = time.now();
    execution.died = true;
  });
  return { number, ended, end };
};

const STEPS = 3;

/** Work of several steps: each is remembered, and saved, and some are left to the next invocation. */
const workInSteps = async (
  { random }: Universe,
  services: AttemptServices,
  once: (key: string) => Promise<void>,
): Promise<AttemptEnd | undefined> => {
  let step = Number((await services.loadState()) ?? 0);
  while (step < STEPS) {
    await once(`step ${step}`);
    step += 1;
    services.progress({ done: step, total: STEPS });
    if (random.chance(0.5)) return { kind: "continue", state: step };
    await services.saveState(step);
  }
  return undefined;
};

export const FAILURE = {
  name: "Error",
  message: "the handler failed",
  stack: "Error: the handler failed\n    at x",
};

/** Handlers that take some time, and then return, throw, continue later, or never end; they die with their process. */
export const simulatedAttempts: Handlers = (universe, process, traces) => ({
  start(request, services) {
    const { random } = universe;
    const { number, ended, end } = notedExecution(traces, universe, process, request);
    const hangs = random.chance(universe.faults()["hang"] ?? 0);
    const lasts = hangs ? Number.POSITIVE_INFINITY : random.whole(10, random.chance(0.2) ? 200_000 : 5_000);
    const throws = random.chance(universe.faults()["throw"] ?? 0);
    const failed = (): void => end({ kind: "threw", error: FAILURE, permanent: false });
    const last = (): void => (throws ? failed() : end({ kind: "returned", result: number }));
    const once = (key: string) => traces.effects.once(request.runId, services, process, { key });
    const inSteps = (): void =>
      void workInSteps(universe, services, once).then(
        (left) => (left === undefined ? last() : end(left)),
        failed,
      );
    const long = random.chance(universe.faults()["continue"] ?? 0);
    if (lasts < request.timeoutMs) process.timers.after(lasts, long ? inSteps : last);
    else process.timers.after(request.timeoutMs, () => end({ kind: "timed-out", error: FAILURE }));
    return {
      ended,
      // Time to obey the signal; the lease's stop margin is longer than that.
      stop: () =>
        process.timers.after(random.whole(1, 1_000), () => end({ kind: "stopped", error: FAILURE })),
    };
  },
});
