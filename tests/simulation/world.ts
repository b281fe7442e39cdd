import { type MemoryTable, memoryTable } from "../../lib/adapters/memory/memory-table.ts";
import { judgeDeadLetter } from "../../lib/app/dead-letters.ts";
import type { Deps } from "../../lib/app/deps.ts";
import { dispatch } from "../../lib/app/dispatch.ts";
import { cancelRun, type Pointed, pauseJob, resumeJob, retryRun } from "../../lib/app/operator.ts";
import { makeRunByHand } from "../../lib/app/run-by-hand.ts";
import { watch } from "../../lib/app/watch.ts";
import { work } from "../../lib/app/work.ts";
import type { JobDefinition } from "../../lib/core/job.ts";
import { jobList } from "../../lib/core/job-list.ts";
import { parseMessage, type RunMessage } from "../../lib/core/message.ts";
import { schedulerInput } from "../../lib/core/scheduler-event.ts";
import { AWS_TIMINGS } from "../../lib/core/settings.ts";
import { MINUTE_MS, SECOND_MS, shortIsoOf } from "../../lib/core/time.ts";
import type { Journal } from "../../lib/ports/journal.ts";
import type { Settlement } from "../../lib/ports/run-queue.ts";
import type { Table } from "../../lib/ports/table.ts";
import { sideEffects } from "./effects.ts";
import { type Execution, type Handlers, simulatedAttempts } from "./handlers.ts";
import { type Faults, makeProcess, type Process, type Universe } from "./process.ts";
import { makeQueue, type QueuedMessage, queuePort } from "./queues.ts";
import { seededRandom } from "./random.ts";
import { tableProbe } from "./table-probe.ts";
import { virtualTime } from "./virtual-time.ts";

export interface WorldOptions {
  readonly seed: number;
  readonly startMs: number;
  readonly jobs: readonly JobDefinition[];
  readonly faults: Faults;
  /** Off, nothing but retries and redeliveries may be needed. */
  readonly watchdog: boolean;
  /** Default: as deployed for a job of four minutes. */
  readonly queue?: { readonly visibilityMs: number; readonly maxReceives: number };
  /** Messages handled at once; default 3. */
  readonly workers?: number;
  /** Default: handlers that do what `faults` says. */
  readonly handlers?: Handlers;
}

const silent: Journal = { attempt: () => undefined, notice: () => undefined, handlerLine: () => undefined };

const WORKERS = 3;

/** A deployment on a virtual clock: the real use cases, with processes, queues and schedules that fail by seed. */
export const makeWorld = (options: WorldOptions) => {
  const { seed, startMs, jobs: definitions, faults, watchdog, handlers = simulatedAttempts } = options;
  const random = seededRandom(seed);
  const time = virtualTime(startMs);
  // The first minute goes well: a deployment whose definitions are not in the table expects no slots yet.
  let current: Faults = {};
  time.at(startMs + MINUTE_MS, () => {
    current = faults;
  });
  const universe: Universe = { time, random, faults: () => current, hits: new Map() };
  const stored: MemoryTable = memoryTable();
  const probe = tableProbe(stored, definitions);
  const queue = makeQueue(universe, options.queue ?? { visibilityMs: 30 * MINUTE_MS, maxReceives: 28 });
  let workersFailUntilMs = 0;
  let failedStarts = 0;
  const executions: Execution[] = [];
  const effects = sideEffects(stored);
  const jobs = jobList({ jobs: definitions, hash: "simulated" }, "test");
  let made = 0;

  const tablePort = (process: Process): Table => ({
    write: (write) => process.call("table.write", () => probe.write(write)),
    get: (key, options) => process.call("table.get", () => stored.get(key, options)),
    getMany: (keys) => process.call("table.getMany", () => stored.getMany(keys)),
    query: (query) => process.call("table.query", () => stored.query(query)),
  });

  const spawn = (name: string): { readonly process: Process; readonly deps: Deps } => {
    const bound = AWS_TIMINGS.clockBoundMs / 2 - 1;
    const process = makeProcess(universe, `${name}-${made++}`, random.whole(-bound, bound));
    const { clock, timers, randomPort } = process;
    const ports = { table: tablePort(process), queue: queuePort(process, queue), clock, timers };
    const deps = { ...ports, random: randomPort, journal: silent, timings: AWS_TIMINGS, jobs };
    return { process, deps };
  };

  /** Lambda's asynchronous invocation: two more tries with the same request id, whatever became of the first. */
  const invokeDispatcher = (event: unknown, requestId: string, triesLeft: number): void => {
    const { process, deps } = spawn("dispatcher");
    const again = (): void => {
      if (triesLeft > 1) {
        time.at(time.now() + random.whole(1, 2) * MINUTE_MS, () =>
          invokeDispatcher(event, requestId, triesLeft - 1),
        );
      }
    };
    process.onDeath(again);
    dispatch(deps, event, requestId).catch(again);
  };

  /** EventBridge delivers at least once as a rule; sometimes twice, sometimes late, and by fault not at all. */
  const schedule = (job: JobDefinition, slotMs: number): void => {
    const event = { ...schedulerInput([job.subject]), scheduledTime: shortIsoOf(slotMs) };
    const deliver = (): void => invokeDispatcher(event, random.token(), 3);
    if (!random.chance(current["dropped-event"] ?? 0)) {
      const byMinutes = random.chance(current["late-event"] ?? 0) ? random.whole(0, 10) * MINUTE_MS : 0;
      const byHours = random.chance(current["very-late-event"] ?? 0) ? random.whole(30, 200) * MINUTE_MS : 0;
      const late = byMinutes + byHours;
      time.at(slotMs + late + random.whole(0, 59) * SECOND_MS, deliver);
    }
    if (random.chance(current["duplicate-event"] ?? 0)) {
      time.at(slotMs + random.whole(0, 600) * SECOND_MS, deliver);
    }
  };

  const settle = (message: QueuedMessage, messages: Set<QueuedMessage>, settlement: Settlement): void => {
    if (settlement.kind === "delete") messages.delete(message);
    else if (settlement.afterMs !== undefined) {
      queue.show(message, time.now() + Math.max(SECOND_MS, settlement.afterMs));
    }
  };

  const poll = (worker: number): void => {
    const message = queue.receive();
    if (message === undefined) {
      queue.idle.add(() => poll(worker));
      return;
    }
    if (time.now() < workersFailUntilMs) {
      // Lambda gives up the invocation; the message comes back with its visibility.
      failedStarts += 1;
      time.at(time.now() + 1_000, () => poll(worker));
      return;
    }
    const { process, deps } = spawn(`worker${worker}`);
    const next = (): void => time.at(time.now() + 100, () => poll(worker));
    process.onDeath(next);
    const attempts = handlers(universe, process, { executions, effects });
    const judged: RunMessage = parseMessage(message.body);
    work({ ...deps, attempts }, judged).then(
      (settlement) => {
        settle(message, queue.messages, settlement);
        next();
      },
      () => next(),
    );
  };

  const every = (everyMs: number, act: () => void): void => {
    act();
    time.at(time.now() + everyMs, () => every(everyMs, act));
  };

  const judgeDead = (): void => {
    const message = queue.receiveDead();
    if (message === undefined) return;
    const { deps } = spawn("dead-letters");
    judgeDeadLetter(deps, parseMessage(message.body)).then(
      (settlement) => settle(message, queue.dead, settlement),
      () => undefined,
    );
  };

  const byHand: string[] = [];

  /** Somebody at the command line: what is refused, or fails, is told to him and no more. */
  const operate = (atMs: number, act: (deps: Deps) => Promise<unknown>): void =>
    time.at(atMs, () => {
      act(spawn("operator").deps).catch(() => undefined);
    });

  const runByHand = (job: JobDefinition, atMs: number): void =>
    operate(atMs, async (deps) => {
      const answer = await makeRunByHand(deps)({ job, input: { by: "hand" } });
      if (answer.kind === "accepted") byHand.push(answer.runId);
    });

  const retry = (pointed: Pointed, atMs: number): void => operate(atMs, (deps) => retryRun(deps, pointed));
  const cancel = (pointed: Pointed, atMs: number): void =>
    operate(atMs, (deps) => cancelRun(deps, pointed, "by the operator"));
  const pause = (job: JobDefinition, atMs: number, forMs: number): void => {
    operate(atMs, (deps) => pauseJob(deps, job, { reason: "maintenance" }));
    operate(atMs + forMs, (deps) => resumeJob(deps, job));
  };

  const start = (): void => {
    for (let worker = 0; worker < (options.workers ?? WORKERS); worker++) poll(worker);
    every(MINUTE_MS, judgeDead);
    if (watchdog) every(MINUTE_MS, () => void watch(spawn("watchdog").deps).catch(() => undefined));
  };

  return {
    time,
    random,
    hits: universe.hits,
    stored,
    executions,
    effects: effects.done,
    /** Handlers that ended with their process. */
    interrupted: (): number => executions.filter(({ died }) => died).length,
    queue,
    violations: probe.violations,
    spawn,
    schedule,
    byHand,
    runByHand,
    retry,
    cancel,
    pause,
    start,
    /** Until then no worker gets as far as its handler's first line. */
    failWorkersUntil: (untilMs: number): void => {
      workersFailUntilMs = untilMs;
    },
    failedStarts: (): number => failedStarts,
    /** From here on nothing goes wrong any more. */
    endFaults: (): void => {
      current = {};
    },
  };
};

export type World = ReturnType<typeof makeWorld>;
