import type { RunMessage } from "../core/message.ts";

/**
 * The pools' queues. `send` returns once the queue has the message; it may be delivered more than once, late,
 * and in any order. After `Unavailable` it may or may not have been sent; sending again is harmless.
 * @throws Unavailable
 */
export interface RunQueue {
  send(pool: string, message: RunMessage): Promise<void>;
}

/** What becomes of a delivered message: gone for good, or back after a wait (none = the queue's own visibility). */
export type Settlement = { readonly kind: "delete" } | { readonly kind: "return"; readonly afterMs?: number };

/** A message as it was delivered, for as long as its receipt is good. */
export interface Delivered {
  readonly queueUrl: string;
  readonly receiptHandle: string;
}

export interface Deliveries {
  /**
   * Hides the delivered message for so many seconds from now, 1 to 43,200. A message that is not hidden any more
   * comes back by itself, so a failure costs time and nothing else: it is answered, not thrown.
   */
  hide(delivered: Delivered, seconds: number): Promise<{ readonly hidden: boolean }>;
}
