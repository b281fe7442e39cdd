import type { RunMessage } from "../core/runs/message.ts";

/** What the queue says of one message of a batch. */
export type SendAnswer =
  | { readonly kind: "sent" }
  /** Not confirmed: it may or may not have been sent, and may be sent again. `reason`: where the queue gave one. */
  | { readonly kind: "unconfirmed"; readonly reason?: string }
  /** It can never be sent as it is. */
  | { readonly kind: "refused"; readonly reason: string };

/** Messages in one call of `sendBatch`, at most. */
export const BATCH_SIZE = 10;

/**
 * The pools' queues. `send` returns once the queue has the message; it may be delivered more than once, late,
 * and in any order. After `Unavailable` it may or may not have been sent; sending again is harmless.
 * @throws Unavailable
 */
export interface RunQueue {
  send(pool: string, message: RunMessage): Promise<void>;
  /**
   * Sends 1 to `BATCH_SIZE` messages in one call, and answers each in its place. A call that failed as a whole is
   * answered, not thrown: no message of it is confirmed.
   */
  sendBatch(pool: string, messages: readonly RunMessage[]): Promise<readonly SendAnswer[]>;
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
