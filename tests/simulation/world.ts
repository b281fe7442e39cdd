import { MINUTE_MS } from "../../lib/core/time.ts";
import type { QueueSettings } from "../../lib/simulation/queues.ts";
import {
  makeWorld as makeAnyWorld,
  type WorldOptions as Options,
  type World,
} from "../../lib/simulation/world.ts";
import { simulatedAttempts } from "./handlers.ts";

export type { World } from "../../lib/simulation/world.ts";

export interface WorldOptions extends Omit<Options, "pools" | "handlers"> {
  /** Default: as deployed for a job of four minutes. */
  readonly queue?: QueueSettings;
  /** Messages that one invocation takes; default 1, as deployed. */
  readonly batch?: number;
  /** Messages handled at once; default 3. */
  readonly workers?: number;
  /** Default: handlers that do what `faults` says. */
  readonly handlers?: Options["handlers"];
}

const QUEUE: QueueSettings = { visibilityMs: 30 * MINUTE_MS, maxReceives: 28 };

/** A deployment of one pool. */
export const makeWorld = ({
  queue = QUEUE,
  batch = 1,
  workers = 3,
  handlers = simulatedAttempts,
  ...options
}: WorldOptions): World =>
  makeAnyWorld({ ...options, handlers, pools: { default: { batch, ...queue, workers } } });
