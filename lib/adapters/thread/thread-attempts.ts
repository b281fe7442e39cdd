import { pathToFileURL } from "node:url";
import { durationText } from "../../core/duration.ts";
import type {
  AttemptEnd,
  AttemptRequest,
  AttemptServices,
  Attempts,
  RunningAttempt,
} from "../../ports/attempts.ts";
import type { Clock, Timers } from "../../ports/clock.ts";
import { idleThreads } from "./idle-threads.ts";
import { startThread, type Thread, type ThreadDeath } from "./thread-handle.ts";

const MERCY_MS = 1_000;
/** What a thread has left to end after it was told to by force; some loops have no point at which V8 can stop them. */
const UNSTOPPABLE_MS = 5_000;
/** After a burst so many stay. */
const STAY = 4;

export interface ThreadAttemptsOptions {
  /** The bundle: its default export maps a job's name to what `defineJob` made. */
  readonly jobsFile: string | URL;
  /** The module that runs in the thread, where it does not lie beside this one (in a bundle). */
  readonly threadFile?: URL;
  /** Memory of the function or pool that the threads stand for; none = no limit of ours. */
  readonly memoryMb?: number;
  /** `process` = a child process for each, which not even a fatal error of V8 can harm; default `thread`. */
  readonly isolation?: "thread" | "process";
  /** What handlers find in `process.env` beside this process's own variables. */
  readonly environment?: { readonly [variable: string]: string };
  readonly clock: Clock;
  readonly timers: Timers;
  /** What an attempt has left, after its signal was aborted, to end by itself; default 1 s. */
  readonly mercyMs?: number;
  /**
   * A thread did not end by force, and will not. Whoever owns the process should end it: the lease then ends too, and
   * the run is charged a crash. A child process always ends.
   */
  readonly onUnstoppable?: () => void;
  /** Threads that are kept ready, at least; default 1. More are made as attempts need them. */
  readonly warm?: number;
  /** Each line that job code prints, and the run that printed it where one is known. Default: to stderr. */
  readonly onOutput?: (line: string, run?: { readonly job: string; readonly runId: string }) => void;
}

export interface ThreadAttempts extends Attempts {
  /** Resolves when the warm threads have loaded the jobs. Rejects with what a job file threw. */
  ready(): Promise<void>;
  /** Ends all threads, running attempts included (they end `stopped`). */
  close(): Promise<void>;
}

/**
 * Runs each attempt alone in a worker thread. A thread is used again after a handler that ended by itself, and
 * replaced after any other end.
 */
export const makeThreadAttempts = (options: ThreadAttemptsOptions): ThreadAttempts => {
  const { warm = 1 } = options;
  const jobsFile = typeof options.jobsFile === "string" ? pathToFileURL(options.jobsFile) : options.jobsFile;
  const onOutput = options.onOutput ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const threads = new Set<Thread>();
  const idle = idleThreads<Thread>(Math.max(warm, STAY), {
    timers: options.timers,
    end: (thread) => void thread.end(),
  });
  let closed = false;

  const spawn = (): Thread => {
    const thread: Thread = startThread({ ...options, jobsFile, onOutput }, () => {
      // In the middle of an attempt, the end of that says so too.
      if (idle.remove(thread)) void thread.end();
    });
    threads.add(thread);
    void thread.died.then((death) => {
      threads.delete(thread);
      idle.remove(thread);
      // Jobs that cannot be loaded would be loaded for ever.
      if (!closed && death.wasReady && threads.size < warm) idle.add(spawn());
    });
    return thread;
  };
  for (let n = 0; n < warm; n++) idle.add(spawn());

  const start = (request: AttemptRequest, services: AttemptServices): RunningAttempt => {
    if (closed) return { ended: Promise.resolve(stoppedEnd("the worker is closed")), stop: () => undefined };
    const thread = idle.take() ?? spawn();
    const { ended, stop } = runOn(thread, request, services, options);
    return {
      stop,
      ended: ended.then(async ({ end, reusable }) => {
        if (reusable && !closed) idle.add(thread);
        else await thread.end();
        return end;
      }),
    };
  };

  return {
    start,
    ready: async () => {
      await Promise.all([...threads].map((thread) => thread.ready));
    },
    close: async () => {
      closed = true;
      idle.clear();
      await Promise.all([...threads].map((thread) => thread.end()));
    },
  };
};

const stoppedEnd = (reason: string): AttemptEnd => ({
  kind: "stopped",
  error: { name: "AbortError", message: reason },
});

interface Ended {
  readonly end: AttemptEnd;
  /** The handler ended by itself, and left nothing broken behind. */
  readonly reusable: boolean;
}

const runOn = (
  thread: Thread,
  request: AttemptRequest,
  services: AttemptServices,
  { clock, timers, mercyMs = MERCY_MS, onUnstoppable }: ThreadAttemptsOptions,
): { readonly ended: Promise<Ended>; stop(reason: string): void } => {
  let forced: Extract<AttemptEnd, { readonly kind: "timed-out" | "stopped" }> | undefined;
  let mercy: { cancel(): void } | undefined;
  let over = false;
  const endByForce = (): void => {
    void thread.end();
    mercy = timers.after(UNSTOPPABLE_MS, () => onUnstoppable?.());
  };
  const force = (
    kind: "timed-out" | "stopped",
    name: "TimeoutError" | "AbortError",
    message: string,
  ): void => {
    // The thread may have another attempt by now.
    if (forced || over) return;
    forced = { kind, error: { name, message } };
    thread.send({ kind: "abort", name, message });
    mercy = timers.after(mercyMs, endByForce);
  };
  const limit = `the handler ran longer than its timeout of ${durationText(request.timeoutMs)}`;
  const timeout = timers.after(request.timeoutMs, () => force("timed-out", "TimeoutError", limit));
  const handler = thread.run(request, clock.nowMs() + request.timeoutMs, services);
  const ended = Promise.race([handler, thread.died]).then((how): Ended => {
    over = true;
    timeout.cancel();
    mercy?.cancel();
    if (how.kind === "died") return { end: forced ?? endOfDeath(how), reusable: false };
    if (forced === undefined) return { end: how.end, reusable: !how.worn };
    // Where it was when the signal came tells more than the signal. What it gave up on may still be running.
    const stack = how.end.kind === "threw" ? how.end.error.stack : undefined;
    return { end: { ...forced, error: { ...forced.error, ...(stack && { stack }) } }, reusable: false };
  });
  return { ended, stop: (reason) => force("stopped", "AbortError", reason) };
};

const endOfDeath = ({ error, exitCode, outOfMemory, asked }: ThreadDeath): AttemptEnd => {
  if (asked) return stoppedEnd("the worker is closed");
  if (outOfMemory)
    return {
      kind: "out-of-memory",
      error: { name: "OutOfMemory", message: "the handler used up the memory that its pool gives it" },
    };
  const exit = { name: "ProcessExit", message: `the handler called process.exit(${exitCode})` };
  return { kind: "exited", error: error ?? exit };
};
