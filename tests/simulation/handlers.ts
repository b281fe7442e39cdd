import type { AttemptEnd, AttemptServices } from "../../lib/ports/attempts.ts";
import { type Handlers, notedExecution } from "../../lib/simulation/attempts.ts";
import type { Process, Universe } from "../../lib/simulation/process.ts";

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

/** Not the same list in each attempt: whichever is complete first is the one that counts. */
const listSome = async (services: AttemptServices): Promise<AttemptEnd> => {
  await services.addShards(["eu", "us"].map((key) => ({ key, input: { key } })));
  await services.addShards([{ key: "cn" }]);
  return { kind: "returned", result: 3 };
};

export const FAILURE = {
  name: "Error",
  message: "the handler failed",
  stack: "Error: the handler failed\n    at x",
};

interface Work {
  readonly number: number;
  readonly timeoutMs: number;
  act(): void;
  end(answer: AttemptEnd): void;
}

/** Takes its time, and then does what the work is; or never ends: then its thread is ended, or its function at its limit. */
const timed = (universe: Universe, process: Process, { number, timeoutMs, act, end }: Work): void => {
  const { random, faults, hits } = universe;
  const hangs = random.chance(faults()["hang"] ?? 0);
  const lasts = hangs ? Number.POSITIVE_INFINITY : random.whole(10, random.chance(0.2) ? 200_000 : 5_000);
  if (lasts < timeoutMs) {
    process.timers.after(lasts, act);
    return;
  }
  process.timers.after(timeoutMs, () => {
    if (number % 2 === 0) return end({ kind: "timed-out", error: FAILURE });
    hits.set(KILLED, (hits.get(KILLED) ?? 0) + 1);
    process.kill();
  });
};

const KILLED = "killed-at-limit handler";

/** Handlers that take some time, and then return, throw, continue later, or never end; they die with their process. */
export const simulatedAttempts: Handlers = (universe, process, traces) => ({
  start(request, services) {
    const { random } = universe;
    const { number, ended, end } = notedExecution(traces, universe, process, request);
    const throws = random.chance(universe.faults()["throw"] ?? 0);
    const failed = (): void => end({ kind: "threw", error: FAILURE, permanent: false });
    const last = (answer: AttemptEnd = { kind: "returned", result: number }): void =>
      throws ? failed() : end(answer);
    const once = (key: string) => traces.effects.once(request, services, process, { key });
    const inSteps = (): void =>
      void workInSteps(universe, services, once).then(
        (left) => (left === undefined ? last() : end(left)),
        failed,
      );
    const inList = (): void => void listSome(services).then(last, failed);
    const long = random.chance(universe.faults()["continue"] ?? 0);
    const act = request.part?.kind === "list" ? inList : long ? inSteps : () => last();
    timed(universe, process, { number, timeoutMs: request.timeoutMs, act, end });
    return {
      ended,
      // Time to obey the signal; the lease's stop margin is longer than that.
      stop: () =>
        process.timers.after(random.whole(1, 1_000), () => end({ kind: "stopped", error: FAILURE })),
    };
  },
});
