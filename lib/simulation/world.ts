import { type MemoryTable, memoryTable } from "../adapters/memory/memory-table.ts";
import { watch } from "../app/watchdog/watch.ts";
import { DEFAULT_POOL, type JobDefinition, type Manifest } from "../core/jobs/job.ts";
import { type JobList, jobList } from "../core/jobs/job-list.ts";
import { MINUTE_MS } from "../core/time.ts";
import type { Item } from "../core/write.ts";
import type { Journal } from "../ports/journal.ts";
import type { Table } from "../ports/table.ts";
import type { Execution, Handlers } from "./attempts.ts";
import { sideEffects } from "./effects.ts";
import { makePeople } from "./people.ts";
import type { Faults, Universe } from "./process.ts";
import { makeSpawn } from "./processes.ts";
import { makeQueue, type QueueSettings, type SimulatedQueue } from "./queues.ts";
import { seededRandom } from "./random.ts";
import { makeRealWork } from "./real-work.ts";
import { makeSchedule } from "./schedules.ts";
import { tableProbe } from "./table-probe.ts";
import type { Step } from "./trace.ts";
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
  /**
   * By how much the clock of each process may be before or behind the true time. Default: so that two differ by less than
   * the bound. Beyond that handlers may meet, and are not judged for it; all that is recorded is.
   */
  readonly skewMs?: number;
  /** Without faults: calls and messages take no time, so that a month takes seconds. Default: false. */
  readonly ideal?: boolean;
  /** Off, nothing but retries and redeliveries may be needed. */
  readonly watchdog: boolean;
  /** Default: one minute, as deployed. */
  readonly watchEveryMs?: number;
  /** Run-time schedules as the jobs that they are carried out as, for those who judge. */
  readonly automations?: readonly JobDefinition[];
  /** Told of each step of the story. */
  readonly trace?: (step: Step) => void;
  /** Told of each item as it is written. */
  readonly seen?: (item: Item) => void;
  /** By name: those of all jobs. */
  readonly pools: { readonly [pool: string]: SimulatedPool };
  readonly handlers: Handlers;
  /** Of all processes; default: nobody reads it. */
  readonly journal?: Journal;
}

const silent: Journal = { attempt: () => undefined, notice: () => undefined, handlerLine: () => undefined };

const makeUniverse = ({ startMs, seed, faults, ideal = false, trace }: WorldOptions) => {
  const work = makeRealWork();
  const time = virtualTime(startMs, work.settle);
  // The first minute goes well: a deployment whose definitions are not in the table expects no slots yet.
  let current: Faults = {};
  time.at(startMs + MINUTE_MS, () => {
    current = faults;
  });
  const universe: Universe = {
    time,
    random: seededRandom(seed),
    work,
    ideal,
    faults: () => current,
    hits: new Map(),
    ...(trace === undefined ? {} : { trace }),
  };
  const endFaults = (): void => {
    current = {};
  };
  return { universe, endFaults };
};

/** A deployment on a virtual clock: the real use cases, with processes, queues and schedules that fail by seed. */
export const makeWorld = (options: WorldOptions) => {
  const { watchdog, watchEveryMs = MINUTE_MS, automations = [], seen = () => undefined } = options;
  const { universe, endFaults } = makeUniverse(options);
  const { time, random } = universe;
  const stored: MemoryTable = memoryTable();
  const deployment = makeDeployment(options.jobs, automations, poolsOf(options));
  const executions: Execution[] = [];
  const { violations, write } = tableProbe(observed(stored, seen), deployment.versions, executions);
  const queues = queuesOf(universe, options);
  const spawn = makeSpawn(universe, {
    table: { ...stored, write },
    queueOf: (pool) => queueNamed(queues, pool),
    jobs: deployment.jobs,
    journal: options.journal ?? silent,
    ...(options.skewMs === undefined ? {} : { skewMs: options.skewMs }),
  });
  const effects = sideEffects(stored);
  const workers = makeWorkers(universe, spawn, options.handlers, { executions, effects });

  const every = (everyMs: number, act: () => void): void => {
    act();
    time.at(time.now() + everyMs, () => every(everyMs, act));
  };

  const start = (): void => {
    for (const [pool, queue] of queues) workers.start(queue, options.pools[pool]?.workers ?? 0);
    for (const queue of queues.values()) every(MINUTE_MS, () => judgeDeadOf(universe, spawn, queue));
    if (watchdog) every(watchEveryMs, () => void watch(spawn("watchdog").deps).catch(() => undefined));
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
    /** Processes that start from now on know these jobs; older ones end with those that they began with. */
    deploy: (jobs: readonly JobDefinition[]): void => deployment.change(jobs, executions),
    deploysInFlight: deployment.inFlight,
    failWorkersUntil: workers.failUntil,
    failedStarts: workers.failedStarts,
    /** From here on nothing goes wrong any more. */
    endFaults,
  };
};

export type World = ReturnType<typeof makeWorld>;

const observed = (table: Table, seen: (item: Item) => void): Table => ({
  ...table,
  write: async (wanted) => {
    const answer = await table.write(wanted);
    if (answer.written) seen(answer.item);
    return answer;
  },
});

const makeDeployment = (
  first: readonly JobDefinition[],
  automations: readonly JobDefinition[],
  pools: Manifest["pools"],
) => {
  /** Every version of every job, for those who judge the story. */
  const versions = [...first, ...automations];
  let deploys = 0;
  let inFlight = 0;
  const listOf = (jobs: readonly JobDefinition[]): JobList =>
    jobList({ jobs, hash: `simulated ${deploys}`, pools }, "test");
  let deployed = listOf(first);
  return {
    versions,
    jobs: (): JobList => deployed,
    change: (jobs: readonly JobDefinition[], executions: readonly Execution[]): void => {
      deploys += 1;
      versions.push(...jobs);
      deployed = listOf(jobs);
      if (executions.some(({ endedAtMs }) => endedAtMs === undefined)) inFlight += 1;
    },
    /** How many deploys met a handler that ran. */
    inFlight: (): number => inFlight,
  };
};

const poolsOf = ({ pools }: WorldOptions) =>
  Object.fromEntries(
    Object.entries(pools).map(([pool, { workers }]) => [pool, { ...DEFAULT_POOL, concurrency: workers }]),
  );

type Queues = ReadonlyMap<string, SimulatedQueue>;

const queuesOf = (universe: Universe, { pools }: WorldOptions): Queues =>
  new Map(Object.entries(pools).map(([pool, settings]) => [pool, makeQueue(universe, settings)]));

const queueNamed = (queues: Queues, pool: string): SimulatedQueue => {
  const queue = queues.get(pool);
  if (queue === undefined) throw new Error(`the simulated deployment has no pool "${pool}"`);
  return queue;
};
