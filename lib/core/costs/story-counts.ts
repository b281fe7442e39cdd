/**
 * What one run costs in the units that are billed, by what became of it. Counted where the calls leave our processes;
 * tests/integration/path/story-counts.test.ts counts them again, and fails when a figure rises.
 */
export interface StoryCounts {
  /** Invocations of the dispatcher, one for each event of a schedule. */
  readonly dispatches: number;
  /** Messages handed to a worker: each is one invocation, one receive, and at its end one delete. */
  readonly deliveries: number;
  readonly writes: number;
  /** Of 1 KB; what is listed in the index counts twice. */
  readonly writeUnits: number;
  readonly reads: number;
  /** Of 4 KB, consistent; an eventually consistent read is half of one. */
  readonly readUnits: number;
  readonly sends: number;
  /** Changes of a message's visibility. */
  readonly hides: number;
  /** Of these calls, those that workers made. */
  readonly workerCalls: number;
  readonly logLines: number;
  /** As CloudWatch counts them. */
  readonly logBytes: number;
  /** Bodies of the requests to DynamoDB and SQS, and of their answers. */
  readonly bytesOut: number;
  readonly bytesIn: number;
}

/** Where counting begins. */
export const NOTHING: StoryCounts = {
  dispatches: 0,
  deliveries: 0,
  writes: 0,
  writeUnits: 0,
  reads: 0,
  readUnits: 0,
  sends: 0,
  hides: 0,
  workerCalls: 0,
  logLines: 0,
  logBytes: 0,
  bytesOut: 0,
  bytesIn: 0,
};

export const STORY_COUNTS = {
  succeeded: {
    dispatches: 1,
    deliveries: 1,
    writes: 3,
    writeUnits: 3,
    reads: 1,
    readUnits: 0.5,
    sends: 1,
    hides: 0,
    workerCalls: 2,
    logLines: 1,
    logBytes: 551,
    bytesOut: 2988,
    bytesIn: 1309,
  },
  "succeeded, with a lock": {
    dispatches: 1,
    deliveries: 1,
    writes: 4,
    writeUnits: 4,
    reads: 1,
    readUnits: 0.5,
    sends: 1,
    hides: 0,
    workerCalls: 3,
    logLines: 1,
    logBytes: 553,
    bytesOut: 3506,
    bytesIn: 1424,
  },
  "delivered twice": {
    dispatches: 1,
    deliveries: 0,
    writes: 2,
    writeUnits: 2,
    reads: 1,
    readUnits: 0.5,
    sends: 0,
    hides: 0,
    workerCalls: 0,
    logLines: 1,
    logBytes: 388,
    bytesOut: 1207,
    bytesIn: 585,
  },
  "retried once": {
    dispatches: 1,
    deliveries: 2,
    writes: 6,
    writeUnits: 6,
    reads: 1,
    readUnits: 0.5,
    sends: 1,
    hides: 1,
    workerCalls: 6,
    logLines: 2,
    logBytes: 1084,
    bytesOut: 6064,
    bytesIn: 3227,
  },
  "dead after two attempts": {
    dispatches: 1,
    deliveries: 2,
    writes: 7,
    writeUnits: 8,
    reads: 1,
    readUnits: 0.5,
    sends: 1,
    hides: 1,
    workerCalls: 7,
    logLines: 2,
    logBytes: 1170,
    bytesOut: 7234,
    bytesIn: 4009,
  },
  "each of 64 shards": {
    dispatches: 0.0156,
    deliveries: 1.0313,
    writes: 2.1406,
    writeUnits: 2.1406,
    reads: 0.0156,
    readUnits: 0.0078,
    sends: 0.1406,
    hides: 0,
    workerCalls: 2.25,
    logLines: 1.0313,
    logBytes: 518.3906,
    bytesOut: 1459.875,
    bytesIn: 864.1094,
  },
  "by hand": {
    dispatches: 0,
    deliveries: 1,
    writes: 6,
    writeUnits: 6,
    reads: 2,
    readUnits: 1.5,
    sends: 1,
    hides: 0,
    workerCalls: 3,
    logLines: 1,
    logBytes: 550,
    bytesOut: 4644,
    bytesIn: 1819,
  },
  skipped: {
    dispatches: 1,
    deliveries: 0,
    writes: 2,
    writeUnits: 2,
    reads: 2,
    readUnits: 1.5,
    sends: 0,
    hides: 0,
    workerCalls: 0,
    logLines: 1,
    logBytes: 229,
    bytesOut: 1844,
    bytesIn: 348,
  },
  "watched, for each slot": {
    dispatches: 0,
    deliveries: 0,
    writes: 0,
    writeUnits: 0,
    reads: 2,
    readUnits: 1,
    sends: 0,
    hides: 0,
    workerCalls: 0,
    logLines: 0,
    logBytes: 0,
    bytesOut: 199,
    bytesIn: 641,
  },
  "a pass of the watchdog": {
    dispatches: 0,
    deliveries: 0,
    writes: 2,
    writeUnits: 2,
    reads: 13,
    readUnits: 7.5,
    sends: 0,
    hides: 0,
    workerCalls: 0,
    logLines: 1,
    logBytes: 312,
    bytesOut: 3920,
    bytesIn: 1948,
  },
  "a pass of the notifier": {
    dispatches: 0,
    deliveries: 0,
    writes: 0,
    writeUnits: 0,
    reads: 1,
    readUnits: 0.5,
    sends: 0,
    hides: 0,
    workerCalls: 0,
    logLines: 1,
    logBytes: 312,
    bytesOut: 297,
    bytesIn: 39,
  },
} as const satisfies { readonly [story: string]: StoryCounts };
