import type { AttemptEnd, AttemptServices } from "../../lib/ports/attempts.ts";
import { type Handlers, notedExecution } from "../../lib/simulation/attempts.ts";
import type { Universe } from "../../lib/simulation/process.ts";

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
