import { type MemoryTable, memoryTable } from "../adapters/memory/memory-table.ts";
import { watch } from "../app/watch.ts";
import type { JobDefinition } from "../core/job.ts";
import { jobList } from "../core/job-list.ts";
import { MINUTE_MS } from "../core/time.ts";
import type { Execution, Handlers } from "./attempts.ts";
import { sideEffects } from "./effects.ts";
import { makePeople } from "./people.ts";
import type { Faults, Universe } from "./process.ts";
import { makeSpawn } from "./processes.ts";
import { makeQueue, type QueueSettings, type SimulatedQueue } from "./queues.ts";
import { seededRandom } from "./random.ts";
import { makeSchedule } from "./schedules.ts";
import { tableProbe } from "./table-probe.ts";
import { virtualTime } from "./virtual-time.ts";
import { judgeDeadOf, makeWorkers } from "./workers.ts";

export interface SimulatedPool extends QueueSettings {
  /** Messages handled at once. */
  readonly workers: number;
}

export interface WorldOptions {
  readonly seed: number;
  readonly startMs: number;
  readonly jobs: readonly JobDefinition[];
  readonly faults: Faults;
  /** Off, nothing but retries and redeliveries may be needed. */
  readonly watchdog: boolean;
  /** By name: those of all jobs. */
  readonly pools: { readonly [pool: string]: SimulatedPool };
  readonly handlers: Handlers;
}

/** A deployment on a virtual clock: the real use cases, with processes, queues and schedules that fail by seed. */
export const makeWorld = (options: WorldOptions) => {
  const { startMs, jobs: definitions, watchdog } = options;
  const time = virtualTime(startMs);
  // The first minute goes well: a deployment whose definitions are not in the table expects no slots yet.
  let current: Faults = {};
  time.at(startMs + MINUTE_MS, () => {
    current = options.faults;
  });
  const random = seededRandom(options.seed);
  const universe: Universe = { time, random, faults: () => current, hits: new Map() };
  const stored: MemoryTable = memoryTable();
  const { violations, write } = tableProbe(stored, definitions);
  const queues = queuesOf(universe, options);
  const spawn = makeSpawn(universe, {
    table: { ...stored, write },
    queueOf: (pool) => queueNamed(queues, pool),
    jobs: jobList({ jobs: definitions, hash: "simulated" }, "test"),
  });
  const executions: Execution[] = [];
  const effects = sideEffects(stored);
  const workers = makeWorkers(universe, spawn, options.handlers, { executions, effects });

  const every = (everyMs: number, act: () => void): void => {
    act();
    time.at(time.now() + everyMs, () => every(everyMs, act));
  };

  const start = (): void => {
    for (const [pool, queue] of queues) workers.start(queue, options.pools[pool]?.workers ?? 0);
    for (const queue of queues.values()) every(MINUTE_MS, () => judgeDeadOf(universe, spawn, queue));
    if (watchdog) every(MINUTE_MS, () => void watch(spawn("watchdog").deps).catch(() => undefined));
  };

  return {
    ...makePeople(time, spawn),
    time,
    random,
    hits: universe.hits,
    stored,
    executions,
    effects: effects.done,
    /** Handlers that ended with their process. */
    interrupted: (): number => executions.filter(({ died }) => died).length,
    queues,
    violations,
    spawn,
    schedule: makeSchedule(universe, spawn),
    start,
    failWorkersUntil: workers.failUntil,
    failedStarts: workers.failedStarts,
    /** From here on nothing goes wrong any more. */
    endFaults: (): void => {
      current = {};
    },
  };
};

export type World = ReturnType<typeof makeWorld>;

type Queues = ReadonlyMap<string, SimulatedQueue>;

const queuesOf = (universe: Universe, { pools }: WorldOptions): Queues =>
  new Map(Object.entries(pools).map(([pool, settings]) => [pool, makeQueue(universe, settings)]));

const queueNamed = (queues: Queues, pool: string): SimulatedQueue => {
  const queue = queues.get(pool);
  if (queue === undefined) throw new Error(`the simulated deployment has no pool "${pool}"`);
  return queue;
};
