import { messageText, type RunMessage } from "../core/runs/message.ts";
import type { RunQueue, SendAnswer } from "../ports/run-queue.ts";
import { type Process, strikes, type Universe } from "./process.ts";

export interface QueuedMessage {
  readonly id: number;
  readonly body: string;
  visibleAtMs: number;
  receives: number;
}

export interface QueueSettings {
  readonly visibilityMs: number;
  readonly maxReceives: number;
  /** Messages that one invocation gets at most; absent = 1, as deployed. */
  readonly batch?: number;
}

/** How long a dead letter is hidden from whoever judges it. */
const DEAD_VISIBILITY_MS = 60_000;

/** Pollers that found nothing; each message that becomes visible wakes one. */
const makeShow = ({ time }: Universe, idle: Set<() => void>) => {
  const wakeAt = (atMs: number): void =>
    void time.at(atMs, () => {
      const [poller] = idle;
      if (poller === undefined) return;
      idle.delete(poller);
      poller();
    });
  return (message: QueuedMessage, atMs: number): void => {
    message.visibleAtMs = atMs;
    wakeAt(atMs);
  };
};

/** A standard queue: at least once, in any order, hidden while somebody works, to the DLQ after too many receives. */
export const makeQueue = (universe: Universe, settings: QueueSettings) => {
  const { time, random } = universe;
  let made = 0;
  const messages = new Set<QueuedMessage>();
  const dead = new Set<QueuedMessage>();
  const idle = new Set<() => void>();
  const show = makeShow(universe, idle);

  const put = (body: string, delayMs: number): void => {
    const message = { id: made++, body, visibleAtMs: 0, receives: 0 };
    messages.add(message);
    show(message, time.now() + delayMs);
  };

  const delayMs = (): number => {
    if (universe.ideal) return 0;
    return random.chance(0.05) ? random.whole(0, 60_000) : random.whole(0, 200);
  };

  const receive = (): QueuedMessage | undefined => {
    for (;;) {
      const visible = [...messages].filter((message) => message.visibleAtMs <= time.now());
      const message = visible[random.whole(0, visible.length - 1)];
      if (message === undefined) return undefined;
      message.receives += 1;
      if (message.receives <= settings.maxReceives) {
        const early = strikes(universe, "early-visibility", "queue");
        show(message, time.now() + (early ? 1_000 : settings.visibilityMs));
        return message;
      }
      messages.delete(message);
      message.visibleAtMs = time.now();
      dead.add(message);
    }
  };

  return {
    batch: settings.batch ?? 1,
    messages,
    dead,
    idle,
    show,
    receive,
    send: (body: string): void => {
      put(body, delayMs());
      if (strikes(universe, "duplicate", "queue")) put(body, random.whole(0, 600_000));
    },
    receiveDead: (): QueuedMessage | undefined => {
      const message = [...dead].find((any) => any.visibleAtMs <= time.now());
      if (message !== undefined) message.visibleAtMs = time.now() + DEAD_VISIBILITY_MS;
      return message;
    },
  };
};

export type SimulatedQueue = ReturnType<typeof makeQueue>;

const aboutMessage = ({ slotKey, epoch, shard }: RunMessage): string =>
  `${slotKey} ep=${epoch}${shard === undefined ? "" : ` shard=${shard.index}`}`;

/** The pools' queues as one process sees them. */
export const queuePort = (
  { random, faults, time, trace }: Universe,
  process: Process,
  queueOf: (pool: string) => SimulatedQueue,
): RunQueue => ({
  send: (pool, message) => {
    const about = aboutMessage(message);
    return process.call(
      "queue.send",
      async () => {
        trace?.({ atMs: time.now(), process: process.name, what: "sends", about });
        queueOf(pool).send(messageText(message));
      },
      about,
    );
  },
  // A batch is one call; some of its messages may get lost all the same, and are not confirmed.
  sendBatch: (pool, messages) =>
    process
      .call("queue.sendBatch", async () =>
        messages.map((message): SendAnswer => {
          if (random.chance(faults()["unconfirmed"] ?? 0)) return { kind: "unconfirmed" };
          trace?.({
            atMs: time.now(),
            process: process.name,
            what: "sends",
            about: aboutMessage(message),
          });
          queueOf(pool).send(messageText(message));
          return { kind: "sent" };
        }),
      )
      .catch(() => messages.map((): SendAnswer => ({ kind: "unconfirmed" }))),
});
