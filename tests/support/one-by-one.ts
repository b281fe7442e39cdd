import { Unavailable } from "../../lib/core/errors.ts";
import type { RunQueue } from "../../lib/ports/run-queue.ts";

/** A queue whose batches are sent one message after the other, each of which may fail by itself. */
export const oneByOne = ({ send }: Pick<RunQueue, "send">): RunQueue => ({
  send,
  sendBatch: async (pool, messages) => {
    const answers: { readonly kind: "sent" | "unconfirmed" }[] = [];
    for (const message of messages) {
      try {
        await send(pool, message);
        answers.push({ kind: "sent" });
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        answers.push({ kind: "unconfirmed" });
      }
    }
    return answers;
  },
});
