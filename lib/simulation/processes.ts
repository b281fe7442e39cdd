import type { Deps } from "../app/deps.ts";
import type { JobList } from "../core/jobs/job-list.ts";
import { AWS_TIMINGS } from "../core/settings.ts";
import type { Journal } from "../ports/journal.ts";
import type { Table } from "../ports/table.ts";
import { makeProcess, type Process, type Universe } from "./process.ts";
import { queuePort, type SimulatedQueue } from "./queues.ts";

/** What every process of the deployment shares. */
export interface Services {
  readonly table: Table;
  queueOf(pool: string): SimulatedQueue;
  /** As they are deployed now. */
  jobs(): JobList;
  readonly journal: Journal;
}

export type Spawn = (name: string) => { readonly process: Process; readonly deps: Deps };

const tablePort = ({ call }: Process, table: Table): Table => ({
  write: (write) => call("table.write", () => table.write(write)),
  get: (key, options) => call("table.get", () => table.get(key, options)),
  getMany: (keys) => call("table.getMany", () => table.getMany(keys)),
  query: (query) => call("table.query", () => table.query(query)),
});

/** Starts processes whose clocks differ by less than the bound. */
export const makeSpawn = (universe: Universe, { table, queueOf, jobs, journal }: Services): Spawn => {
  let made = 0;
  return (name) => {
    const bound = universe.ideal ? 0 : AWS_TIMINGS.clockBoundMs / 2 - 1;
    const process = makeProcess(universe, `${name}-${made++}`, universe.random.whole(-bound, bound));
    const { clock, timers, randomPort } = process;
    const ports = {
      table: tablePort(process, table),
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
