import { judgeDeadLetter } from "../app/path/dead-letters.ts";
import type { WorkDeps } from "../app/path/visit.ts";
import { work } from "../app/path/work.ts";
import { parseMessage, type RunMessage } from "../core/runs/message.ts";
import { SECOND_MS } from "../core/time.ts";
import type { Settlement } from "../ports/run-queue.ts";
import type { Handlers, Traces } from "./attempts.ts";
import type { Universe } from "./process.ts";
import type { Spawn } from "./processes.ts";
import type { QueuedMessage, SimulatedQueue } from "./queues.ts";

/** What is not to be deleted is hidden for as long as its record says. */
const hide = (
  { time }: Universe,
  queue: SimulatedQueue,
  message: QueuedMessage,
  wanted: Settlement,
): void => {
  if (wanted.kind === "return" && wanted.afterMs !== undefined) {
    queue.show(message, time.now() + Math.max(SECOND_MS, wanted.afterMs));
  }
};

/** At most so many messages that are there at this moment. */
const receive = (queue: SimulatedQueue, most: number): readonly QueuedMessage[] => {
  const batch: QueuedMessage[] = [];
  for (let message = queue.receive(); message !== undefined; message = queue.receive()) {
    batch.push(message);
    if (batch.length === most) break;
  }
  return batch;
};

/** Workers that take one batch after the other, each in a process of its own. */
export const makeWorkers = (universe: Universe, spawn: Spawn, handlers: Handlers, traces: Traces) => {
  const { time } = universe;
  let failUntilMs = 0;
  let failedStarts = 0;

  /** One invocation: each message in turn, and at its end Lambda deletes those that did not fail. */
  const invoke = async (
    deps: WorkDeps,
    queue: SimulatedQueue,
    batch: readonly QueuedMessage[],
  ): Promise<void> => {
    const done: QueuedMessage[] = [];
    for (const message of batch) {
      const judged: RunMessage = parseMessage(message.body);
      const settlement = await work(deps, judged).catch((): Settlement => ({ kind: "return" }));
      hide(universe, queue, message, settlement);
      if (settlement.kind === "delete") done.push(message);
    }
    for (const message of done) queue.messages.delete(message);
  };

  const poll = (queue: SimulatedQueue, worker: string): void => {
    const batch = receive(queue, queue.batch);
    if (batch.length === 0) {
      queue.idle.add(() => poll(queue, worker));
      return;
    }
    if (time.now() < failUntilMs) {
      // Lambda gives up the invocation; the messages come back with their visibility.
      failedStarts += 1;
      time.at(time.now() + 1_000, () => poll(queue, worker));
      return;
    }
    const { process, deps } = spawn(worker);
    const next = (): void => void time.at(time.now() + 100, () => poll(queue, worker));
    process.onDeath(next);
    void invoke({ ...deps, attempts: handlers(universe, process, traces) }, queue, batch).then(next);
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
    (settlement) => {
      hide(universe, queue, message, settlement);
      if (settlement.kind === "delete") queue.dead.delete(message);
    },
    () => undefined,
  );
};
