import { judgeDeadLetter } from "../app/dead-letters.ts";
import { work } from "../app/work.ts";
import { parseMessage, type RunMessage } from "../core/message.ts";
import { SECOND_MS } from "../core/time.ts";
import type { Settlement } from "../ports/run-queue.ts";
import type { Handlers, Traces } from "./attempts.ts";
import type { Universe } from "./process.ts";
import type { Spawn } from "./processes.ts";
import type { QueuedMessage, SimulatedQueue } from "./queues.ts";

const settle = (
  { time }: Universe,
  queue: SimulatedQueue,
  message: QueuedMessage,
  { from, settlement }: { readonly from: Set<QueuedMessage>; readonly settlement: Settlement },
): void => {
  if (settlement.kind === "delete") from.delete(message);
  else if (settlement.afterMs !== undefined) {
    queue.show(message, time.now() + Math.max(SECOND_MS, settlement.afterMs));
  }
};

/** Workers that take one message after the other, each in a process of its own. */
export const makeWorkers = (universe: Universe, spawn: Spawn, handlers: Handlers, traces: Traces) => {
  const { time } = universe;
  let failUntilMs = 0;
  let failedStarts = 0;

  const poll = (queue: SimulatedQueue, worker: string): void => {
    const message = queue.receive();
    if (message === undefined) {
      queue.idle.add(() => poll(queue, worker));
      return;
    }
    if (time.now() < failUntilMs) {
      // Lambda gives up the invocation; the message comes back with its visibility.
      failedStarts += 1;
      time.at(time.now() + 1_000, () => poll(queue, worker));
      return;
    }
    const { process, deps } = spawn(worker);
    const next = (): void => void time.at(time.now() + 100, () => poll(queue, worker));
    process.onDeath(next);
    const attempts = handlers(universe, process, traces);
    const judged: RunMessage = parseMessage(message.body);
    work({ ...deps, attempts }, judged).then(
      (settlement) => {
        settle(universe, queue, message, { from: queue.messages, settlement });
        next();
      },
      () => next(),
    );
  };

  return {
    start: (queue: SimulatedQueue, count: number): void => {
      for (let worker = 0; worker < count; worker++) poll(queue, `worker${worker}`);
    },
    /** Until then no worker gets as far as its handler's first line. */
    failUntil: (untilMs: number): void => {
      failUntilMs = untilMs;
    },
    failedStarts: (): number => failedStarts,
  };
};

/** Judges one message of the queue's dead letters, if there is one. */
export const judgeDeadOf = (universe: Universe, spawn: Spawn, queue: SimulatedQueue): void => {
  const message = queue.receiveDead();
  if (message === undefined) return;
  const { deps } = spawn("dead-letters");
  judgeDeadLetter(deps, parseMessage(message.body)).then(
    (settlement) => settle(universe, queue, message, { from: queue.dead, settlement }),
    () => undefined,
  );
};
