import { messageText } from "../../lib/core/message.ts";
import type { RunQueue } from "../../lib/ports/run-queue.ts";
import type { Process, Universe } from "./process.ts";

export interface QueuedMessage {
  readonly id: number;
  readonly body: string;
  visibleAtMs: number;
  receives: number;
}

/** A standard queue: at least once, in any order, hidden while somebody works, to the DLQ after too many receives. */
export const makeQueue = (universe: Universe, settings: { visibilityMs: number; maxReceives: number }) => {
  const { time, random } = universe;
  let made = 0;
  const messages = new Set<QueuedMessage>();
  const dead = new Set<QueuedMessage>();

  /** Pollers that found nothing; each message that becomes visible wakes one. */
  const idle = new Set<() => void>();

  const wakeAt = (atMs: number): void =>
    time.at(atMs, () => {
      const [poller] = idle;
      if (poller === undefined) return;
      idle.delete(poller);
      poller();
    });

  const show = (message: QueuedMessage, atMs: number): void => {
    message.visibleAtMs = atMs;
    wakeAt(atMs);
  };

  const put = (body: string, delayMs: number): void => {
    const message = { id: made++, body, visibleAtMs: 0, receives: 0 };
    messages.add(message);
    show(message, time.now() + delayMs);
  };

  return {
    messages,
    dead,
    idle,
    show,
    send: (body: string): void => {
      put(body, random.chance(0.05) ? random.whole(0, 60_000) : random.whole(0, 200));
      if (random.chance(universe.faults()["duplicate"] ?? 0)) put(body, random.whole(0, 600_000));
    },
    receive: (): QueuedMessage | undefined => {
      for (;;) {
        const visible = [...messages].filter((message) => message.visibleAtMs <= time.now());
        const message = visible[random.whole(0, visible.length - 1)];
        if (message === undefined) return undefined;
        message.receives += 1;
        if (message.receives <= settings.maxReceives) {
          const early = random.chance(universe.faults()["early-visibility"] ?? 0);
          show(message, time.now() + (early ? 1_000 : settings.visibilityMs));
          return message;
        }
        messages.delete(message);
        message.visibleAtMs = time.now();
        dead.add(message);
      }
    },
    receiveDead: (): QueuedMessage | undefined => {
      const message = [...dead].find((any) => any.visibleAtMs <= time.now());
      if (message !== undefined) message.visibleAtMs = time.now() + 60_000;
      return message;
    },
  };
};

export type SimulatedQueue = ReturnType<typeof makeQueue>;

export const queuePort = (process: Process, queue: SimulatedQueue): RunQueue => ({
  send: (_pool, message) => process.call("queue.send", async () => queue.send(messageText(message))),
});
