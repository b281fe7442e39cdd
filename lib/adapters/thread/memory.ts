import type { ResourceLimits } from "node:worker_threads";

/**
 * What the process needs beside the handler's heap: Node, the AWS clients, the lease's code, and a second copy of
 * Node's own for the thread or child (bench/results/worker-thread.md).
 */
const BESIDE_MB = 144;
/** Less than that no job of any size can be loaded into. */
const LEAST_MB = 32;

/**
 * The heap's share of the memory that a function or pool has, so that a handler that takes too much is ended
 * before its container is.
 */
export const heapLimits = (memoryMb: number): ResourceLimits => ({
  maxOldGenerationSizeMb: Math.max(LEAST_MB, memoryMb - BESIDE_MB),
  maxYoungGenerationSizeMb: 8,
});
