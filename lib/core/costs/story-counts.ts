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
  readonly logLines: number;
  /** As CloudWatch counts them. */
  readonly logBytes: number;
  /** Bodies of the requests to DynamoDB and SQS, and of their answers. */
  readonly bytesOut: number;
  readonly bytesIn: number;
}

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
    logLines: 1,
    logBytes: 793,
    bytesOut: 2986,
    bytesIn: 1305,
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
    logLines: 1,
    logBytes: 793,
    bytesOut: 3503,
    bytesIn: 1419,
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
    logLines: 1,
    logBytes: 421,
    bytesOut: 1207,
    bytesIn: 583,
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
    logLines: 2,
    logBytes: 1506,
    bytesOut: 6060,
    bytesIn: 3218,
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
    logLines: 2,
    logBytes: 1572,
    bytesOut: 7235,
    bytesIn: 4006,
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
    logLines: 1.0313,
    logBytes: 728.6719,
    bytesOut: 1455.7656,
    bytesIn: 861.7969,
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
    logLines: 1,
    logBytes: 785,
    bytesOut: 4637,
    bytesIn: 1810,
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
    logLines: 1,
    logBytes: 247,
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
    logLines: 0,
    logBytes: 0,
    bytesOut: 199,
    bytesIn: 639,
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
    logLines: 1,
    logBytes: 345,
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
    logLines: 1,
    logBytes: 345,
    bytesOut: 297,
    bytesIn: 39,
  },
} as const satisfies { readonly [story: string]: StoryCounts };
