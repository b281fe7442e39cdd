import { existsSync, readFileSync } from "node:fs";
import { localNeeds } from "../../lib/adapters/secrets/local-needs.ts";
import { systemTimers } from "../../lib/adapters/system/system.ts";
import { makeThreadAttempts, type ThreadAttempts } from "../../lib/adapters/thread/thread-attempts.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { needsOfPool } from "../../lib/core/jobs/job-needs.ts";
import type { Attempts } from "../../lib/ports/attempts.ts";
import type { Clock, Timers } from "../../lib/ports/clock.ts";
import { STAGE } from "../dev/resources.ts";

export interface CalledOptions {
  readonly manifest: Manifest;
  readonly jobsFile: string;
  /** Real time that a handler may take; then it has timed out. */
  readonly limitMs: number;
  /** Handlers see the real date instead of the simulated one. */
  readonly realDate: boolean;
  readonly note: (text: string) => void;
}

const VIRTUAL_THREAD = new URL(
  `../../lib/simulation/virtual-thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url,
);

/** Real timers, and none longer than the limit: no handler that hangs is to keep the simulation for its timeout. */
const limitedTimers = (limitMs: number): Timers => ({
  after: (waitMs, act) => systemTimers.after(Math.min(waitMs, limitMs), act),
});

const needsIn = (manifest: Manifest, pool: string, note: (text: string) => void) => {
  const dotenv = existsSync(".env") ? readFileSync(".env", "utf8") : "";
  const { variables, missing } = localNeeds(needsOfPool(manifest.jobs, pool), dotenv, process.env, STAGE);
  for (const name of missing)
    note(`the secret ${name} is neither in .env nor in the environment; handlers find it unset`);
  return variables;
};

const attemptsOf = (options: CalledOptions, pool: string, clock: Clock): ThreadAttempts => {
  const { manifest, jobsFile, limitMs, realDate, note } = options;
  const memoryMb = manifest.pools[pool]?.memoryMb;
  return makeThreadAttempts({
    jobsFile,
    ...(realDate ? {} : { threadFile: VIRTUAL_THREAD }),
    ...(memoryMb === undefined ? {} : { memoryMb }),
    environment: needsIn(manifest, pool, note),
    clock,
    timers: limitedTimers(limitMs),
    // Whoever stops a handler here has killed its process.
    mercyMs: 0,
    onUnstoppable: () => process.kill(process.pid, "SIGKILL"),
  });
};

/** The project's handlers in threads, as its pools run them. */
export const handlersOf = (options: CalledOptions) => {
  const poolOf = new Map(options.manifest.jobs.map(({ name, pool }) => [name, pool]));
  let pools: ReadonlyMap<string, ThreadAttempts> = new Map();
  return {
    /** To be called once, with the virtual clock. */
    attempts: (clock: Clock): Attempts => {
      pools = new Map([...new Set(poolOf.values())].map((pool) => [pool, attemptsOf(options, pool, clock)]));
      return {
        start: (request, services) => {
          const pool = pools.get(poolOf.get(request.job) ?? "");
          if (pool === undefined) throw new Error(`the job ${request.job} has no pool`);
          return pool.start(request, services);
        },
      };
    },
    close: async (): Promise<void> => {
      await Promise.all([...pools.values()].map((pool) => pool.close()));
    },
  };
};
