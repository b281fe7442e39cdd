import type { ResourceLimits } from "node:worker_threads";

/**
 * The thread's share of a process that has so much memory, so that a handler that takes too much ends its thread
 * and not the process.
 */
export const heapLimits = (memoryMb: number): ResourceLimits => ({
  maxOldGenerationSizeMb: Math.max(16, Math.floor(memoryMb - 96)),
  maxYoungGenerationSizeMb: 8,
});
