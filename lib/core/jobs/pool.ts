import { MINUTE_MS, SECOND_MS } from "../time.ts";
import type { JobDefinition } from "./job.ts";

/** A Lambda function ends then, whatever it does. */
const LONGEST_FUNCTION_MS = 15 * MINUTE_MS;

/** What a worker has beside the handler: start, record the end, end a handler that does not obey. */
const MARGIN_MS = 30 * SECOND_MS;

/** The longest timeout of a job: its function must outlive it, or nobody records how it ended. */
export const LONGEST_TIMEOUT_MS = LONGEST_FUNCTION_MS - MARGIN_MS;

/** A pool that has short jobs only still gets that much, so that a slow cold start ends no run. */
const SHORTEST_MS = MINUTE_MS;

/** The function's time-out of a pool, in milliseconds: its longest job's and a margin, at most Lambda's 900 s. */
export const functionTimeoutMs = (
  jobs: readonly Pick<JobDefinition, "pool" | "timeoutMs">[],
  pool: string,
): number => {
  const timeouts = jobs.filter((job) => job.pool === pool).map(({ timeoutMs }) => timeoutMs);
  return Math.min(Math.max(SHORTEST_MS, ...timeouts) + MARGIN_MS, LONGEST_FUNCTION_MS);
};
