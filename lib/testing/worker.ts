import { callHandler } from "../adapters/thread/call-handler.ts";
import type { Deps } from "../app/deps.ts";
import type { WorkDeps } from "../app/path/visit.ts";
import type { AttemptEnd, AttemptServices, Attempts, RunningAttempt } from "../ports/attempts.ts";
import type { Table } from "../ports/table.ts";
import type { KillPoint, Trap } from "./trap.ts";

const never = <Answer>(): Promise<Answer> => new Promise(() => undefined);

/** What an attempt has left, after its signal was aborted, to end by itself. */
const MERCY_MS = 1_000;

interface Life {
  /** Resolves when the process is killed. */
  readonly killed: Promise<void>;
  /** Kills the process if the trap is set for this point. */
  passes(point: KillPoint): boolean;
  /** Of a dead process nothing is heard any more. */
  guarded<Answer>(call: () => Promise<Answer>): Promise<Answer>;
}

const lifeOf = (trap: Trap): Life => {
  const { promise: killed, resolve } = Promise.withResolvers<void>();
  let alive = true;
  return {
    killed,
    passes: (point) => {
      if (!alive) return false;
      if (!trap.springs(point)) return true;
      alive = false;
      resolve();
      return false;
    },
    guarded: async (call) => {
      if (!alive) return never();
      const answer = await call();
      return alive ? answer : never();
    },
  };
};

const trappedTable = (table: Table, { guarded, passes }: Life): Table => ({
  write: (write) =>
    guarded(async () => {
      const answer = await table.write(write);
      const ended = answer.written && write.key.sk.startsWith("R#") && answer.item["st"] !== "running";
      return ended && !passes("after-record") ? never() : answer;
    }),
  get: (key, options) => guarded(() => table.get(key, options)),
  getMany: (keys) => guarded(() => table.getMany(keys)),
  query: (query) => guarded(() => table.query(query)),
});

const trappedServices = (services: AttemptServices, { passes }: Life): AttemptServices => ({
  ...services,
  saveState: async (state) => {
    await services.saveState(state);
    return passes("after-checkpoint") ? undefined : never();
  },
  recordEffect: (key, effect) => (passes("after-effect") ? services.recordEffect(key, effect) : never()),
});

/** Runs the handler in this thread; one that does not obey its signal is left behind, and no longer heard. */
const attemptsOf = (job: unknown, { clock, timers }: Deps, life: Life): Attempts => ({
  start: (request, services): RunningAttempt => {
    const abort = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<AttemptEnd>();
    let forced: AttemptEnd | undefined;
    const force = (kind: "timed-out" | "stopped", name: string, message: string): void => {
      if (forced !== undefined) return;
      const end: AttemptEnd = { kind, error: { name, message } };
      forced = end;
      abort.abort(new DOMException(message, name));
      timers.after(MERCY_MS, () => resolve(end));
    };
    const limit = `the handler ran longer than its timeout of ${request.timeoutMs / 1_000} seconds`;
    const timeout = timers.after(request.timeoutMs, () => force("timed-out", "TimeoutError", limit));
    if (life.passes("before-handler")) {
      const context = {
        request,
        services: trappedServices(services, life),
        endsAtMs: clock.nowMs() + request.timeoutMs,
        signal: abort.signal,
        now: clock.nowMs,
      };
      void callHandler(job, context).then((end) => {
        timeout.cancel();
        if (life.passes("before-record")) resolve(forced ?? end);
      });
    }
    return { ended, stop: (reason) => force("stopped", "AbortError", reason) };
  },
});

/** One process of a worker: it lives for one message. */
export const workerProcess = (
  job: unknown,
  deps: Deps,
  trap: Trap,
): { readonly deps: WorkDeps; readonly killed: Promise<void> } => {
  const life = lifeOf(trap);
  const own = { ...deps, table: trappedTable(deps.table, life) };
  return { deps: { ...own, attempts: attemptsOf(job, own, life) }, killed: life.killed };
};
