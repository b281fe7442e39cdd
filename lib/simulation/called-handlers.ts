import { durationText } from "../core/duration.ts";
import { SECOND_MS } from "../core/time.ts";
import type { AttemptEnd, AttemptServices, Attempts, ErrorFacts, RunningAttempt } from "../ports/attempts.ts";
import type { Clock } from "../ports/clock.ts";
import { type Handlers, notedExecution, type Traces } from "./attempts.ts";
import { type Process, strikes, type Universe } from "./process.ts";

export interface CalledHandlersOptions {
  /** What really calls the handlers, by the virtual clock. Asked for once. */
  readonly attempts: (virtual: Clock) => Attempts;
  /** In real time: how long a handler works is measured with it. */
  readonly clock: Clock;
  /** How long each attempt lasts on the virtual clock; default: as long as it really worked, in whole seconds. */
  readonly lastsMs?: number;
}

/**
 * Measures how long a handler works. While it waits for an answer of the simulated deployment the virtual clock moves;
 * while it works, it stands.
 */
const workMeter = ({ work }: Universe, clock: Clock) => {
  let workedMs = 0;
  let waits = 0;
  let stop: (() => void) | undefined;
  const go = (): void => {
    const startedAtMs = clock.nowMs();
    const over = work.begin();
    stop = () => {
      workedMs += clock.nowMs() - startedAtMs;
      over();
    };
  };
  go();
  return {
    workedMs: (): number => workedMs,
    waiting: async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
      waits += 1;
      if (waits === 1) stop?.();
      try {
        return await ask();
      } finally {
        waits -= 1;
        if (waits === 0 && stop !== undefined) go();
      }
    },
    end: (): void => {
      if (waits === 0) stop?.();
      stop = undefined;
    },
  };
};

type Meter = ReturnType<typeof workMeter>;

const meteredServices = (
  services: AttemptServices,
  { waiting }: Meter,
  act: (key: string) => Promise<void>,
): AttemptServices => ({
  ...services,
  previous: () => waiting(() => services.previous()),
  loadState: () => waiting(() => services.loadState()),
  addShards: (shards) => waiting(() => services.addShards(shards)),
  saveState: (state) => waiting(() => services.saveState(state)),
  recallEffect: (key) => waiting(() => services.recallEffect(key)),
  recordEffect: (key, effect) =>
    waiting(async () => {
      await act(key);
      return services.recordEffect(key, effect);
    }),
});

const timedOut = (timeoutMs: number): AttemptEnd => ({
  kind: "timed-out",
  error: {
    name: "TimeoutError",
    message: `the handler ran longer than its timeout of ${durationText(timeoutMs)}`,
  },
});

/** The end of an attempt that began at `startMs`, as late on the virtual clock as it should be; or its process's. */
const endInTime = (
  universe: Universe,
  process: Process,
  { startMs, lastsMs, timeoutMs }: Readonly<Record<"startMs" | "lastsMs" | "timeoutMs", number>>,
  end: (answer: AttemptEnd) => void,
) => {
  const { time, random } = universe;
  return (answer: AttemptEnd): void => {
    const isLate = lastsMs >= timeoutMs;
    const leftMs = Math.max(0, startMs + Math.min(lastsMs, timeoutMs) - time.now());
    if (strikes(universe, "kill", "handler")) process.timers.after(random.whole(0, leftMs), process.kill);
    process.timers.after(leftMs, () => end(isLate ? timedOut(timeoutMs) : answer));
  };
};

/** Of real work, the virtual clock knows whole seconds only, so that a seed plays the same story again. */
const roundedUp = (workedMs: number): number => Math.max(1, Math.ceil(workedMs / SECOND_MS)) * SECOND_MS;

const stoppedBy = (reason: string): { readonly kind: "stopped"; readonly error: ErrorFacts } => ({
  kind: "stopped",
  error: { name: "AbortError", message: reason },
});

/** Users' own handlers: really called, in real time, at their instant of the virtual clock. For one world. */
export const calledHandlers = ({ attempts: make, clock, lastsMs }: CalledHandlersOptions): Handlers => {
  let made: Attempts | undefined;
  return (universe, process, traces) => {
    made ??= make({ nowMs: universe.time.now });
    const attempts = made;
    return {
      start(request, services) {
        const { ended, end } = notedExecution(traces, universe, process, request);
        const { timeoutMs } = request;
        const startMs = universe.time.now();
        if (strikes(universe, "kill", "before handler")) {
          process.kill();
          return { ended, stop: () => undefined };
        }
        const meter = workMeter(universe, clock);
        const act = (key: string) => traces.effects.act(request, process, key);
        const running = attempts.start(request, meteredServices(services, meter, act));
        let isOver = false;
        void running.ended.then((answer) => {
          isOver = true;
          meter.end();
          const lasts = answer.kind === "timed-out" ? timeoutMs : (lastsMs ?? roundedUp(meter.workedMs()));
          endInTime(universe, process, { startMs, lastsMs: lasts, timeoutMs }, end)(answer);
        });
        process.onDeath(() => {
          if (!isOver) untilGone(universe, running);
        });
        return {
          ended,
          stop: (reason) => {
            if (isOver) end(stoppedBy(reason));
            else running.stop(reason);
          },
        };
      },
    };
  };
};

/** Code of a killed process must be over before anything else happens, or what comes after would find it at work. */
const untilGone = ({ work }: Universe, running: RunningAttempt): void => {
  const over = work.begin();
  running.stop("its process was killed");
  void running.ended.then(over);
};

/** Handlers that are not called: each attempt ends well after a while. */
export const absentHandlers =
  (lastsMs: number): Handlers =>
  (universe: Universe, process: Process, traces: Traces) => ({
    start(request) {
      const { ended, end } = notedExecution(traces, universe, process, request);
      const { timeoutMs } = request;
      const startMs = universe.time.now();
      endInTime(universe, process, { startMs, lastsMs, timeoutMs }, end)({ kind: "returned" });
      return { ended, stop: (reason) => end(stoppedBy(reason)) };
    },
  });
