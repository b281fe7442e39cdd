import type { Deps } from "../app/deps.ts";
import type { JobList } from "../core/jobs/job-list.ts";
import { AWS_TIMINGS } from "../core/settings.ts";
import type { Journal } from "../ports/journal.ts";
import type { Table, WriteAnswer } from "../ports/table.ts";
import { makeProcess, type Process, type Universe } from "./process.ts";
import { queuePort, type SimulatedQueue } from "./queues.ts";
import { aboutOf, answerText } from "./trace.ts";

/** What every process of the deployment shares. */
export interface Services {
  readonly table: Table;
  queueOf(pool: string): SimulatedQueue;
  /** As they are deployed now. */
  jobs(): JobList;
  readonly journal: Journal;
  /** Of a process's clock, at most; default: two differ by less than the bound. */
  readonly skewMs?: number;
}

export type Spawn = (name: string) => { readonly process: Process; readonly deps: Deps };

const tablePort = ({ time, trace }: Universe, { call, name }: Process, table: Table): Table => ({
  write: (write) => {
    const about = trace === undefined ? "" : aboutOf(write);
    const act = async (): Promise<WriteAnswer> => {
      const answer = await table.write(write);
      trace?.({ atMs: time.now(), process: name, what: answerText(answer), about });
      return answer;
    };
    return call("table.write", act, about);
  },
  get: (key, options) => call("table.get", () => table.get(key, options), `${key.pk} ${key.sk}`),
  getMany: (keys) => call("table.getMany", () => table.getMany(keys)),
  query: (query) => call("table.query", () => table.query(query)),
});

const WITHIN_BOUND_MS = AWS_TIMINGS.clockBoundMs / 2 - 1;

/** Starts processes, each with a clock of its own. */
export const makeSpawn = (universe: Universe, services: Services): Spawn => {
  const { table, queueOf, jobs, journal, skewMs = universe.ideal ? 0 : WITHIN_BOUND_MS } = services;
  let made = 0;
  return (name) => {
    const own = makeProcess(universe, `${name}-${made++}`, universe.random.whole(-skewMs, skewMs));
    const process = skewMs > WITHIN_BOUND_MS ? { ...own, slept: () => true } : own;
    const { clock, timers, randomPort } = process;
    const ports = {
      table: tablePort(universe, process, table),
      queue: queuePort(universe, process, queueOf),
      clock,
      timers,
    };
    return {
      process,
      deps: { ...ports, random: randomPort, journal, timings: AWS_TIMINGS, jobs: jobs() },
    };
  };
};
