import process from "node:process";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { FromThread, ThreadData, ToThread } from "./messages.ts";

/** The thread's or the child's end of the carrier. */
export interface Channel {
  readonly data: ThreadData;
  post(message: FromThread): void;
  /** Posts the last message and ends the thread or process. */
  leave(message: FromThread): void;
  listen(onMessage: (message: ToThread) => void): void;
}

const ofThread = (port: NonNullable<typeof parentPort>): Channel => ({
  data: workerData,
  post: (message) => port.postMessage(message),
  leave: (message) => {
    port.postMessage(message);
    process.exit(1);
  },
  listen: (onMessage) => void port.on("message", onMessage),
});

const ofProcess = (): Channel => {
  const send = process.send?.bind(process);
  if (!send) throw new Error("this module runs in a worker thread or a child process of ours");
  leaveSignalsToParent();
  endWithParent();
  return {
    data: JSON.parse(process.argv[2] ?? "{}"),
    post: (message) => void send(message),
    leave: (message) => void send(message, undefined, undefined, () => process.exit(1)),
    listen: (onMessage) => void process.on("message", (message: ToThread) => onMessage(message)),
  };
};

/** A terminal signals the whole group: whether a running attempt may finish is for the process that keeps its lease. */
const leaveSignalsToParent = (): void => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined);
};

/** How often a child whose event loop may be blocked looks whether its parent is still there. */
const LOOK_MS = 500;

/**
 * When the parent is gone nobody keeps the lease, so nothing may run on: at once where the event loop is free, else
 * by a thread that does nothing but look.
 */
const endWithParent = (): void => {
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  const look = `setInterval(() => process.ppid === ${process.ppid} || process.kill(process.pid, "SIGKILL"), ${LOOK_MS})`;
  const limits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };
  new Worker(look, { eval: true, resourceLimits: limits, execArgv: [], env: {} }).unref();
};

export const openChannel = (): Channel => (parentPort ? ofThread(parentPort) : ofProcess());
