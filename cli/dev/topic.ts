import type { Timers } from "../../lib/ports/clock.ts";

export interface Topic {
  publish(message: string): void;
  /** What the queue has not taken by then is gone with this process. */
  stop(): void;
}

export interface TopicOptions {
  /** Puts a message into the queue. Rejects when that does not answer. */
  readonly send: (message: string) => Promise<void>;
  readonly timers: Timers;
}

/** SNS tries for days. */
const RETRY_MS = 1_000;

/** What SNS is to a queue that subscribes: brings each message, in order, and tries until it is taken. */
export const startTopic = ({ send, timers }: TopicOptions): Topic => {
  const waiting: string[] = [];
  let timer: { cancel(): void } | undefined;
  let isSending = false;
  let stopped = false;

  const sendAll = async (): Promise<void> => {
    isSending = true;
    try {
      for (let next = waiting[0]; next !== undefined && !stopped; next = waiting[0]) {
        await send(next);
        waiting.shift();
      }
    } catch {
      timer = timers.after(RETRY_MS, () => void sendAll());
      return;
    }
    isSending = false;
  };

  return {
    publish: (message) => {
      waiting.push(message);
      if (!isSending && !stopped) void sendAll();
    },
    stop: () => {
      stopped = true;
      timer?.cancel();
    },
  };
};
