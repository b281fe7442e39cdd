import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import type { Deps } from "../app/deps.ts";
import { readOrKeep } from "../app/path/dead-letters.ts";
import { errorFacts } from "../core/json-safe.ts";
import type { RunMessage } from "../core/runs/message.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../core/time.ts";
import type { Deliveries, Settlement } from "../ports/run-queue.ts";

/** A message can be hidden for 12 h from its receive; the margin is for the attempt since then, up to 15 minutes. */
const LONGEST_WAIT_MS = 12 * HOUR_MS - 20 * MINUTE_MS;

export type SqsHandler = (event: SQSEvent) => Promise<SQSBatchResponse>;

interface SqsDeps extends Pick<Deps, "table" | "clock" | "journal"> {
  readonly deliveries: Deliveries;
  /** From the ARN in a record to the URL that calls need. */
  readonly queueUrlOf: (queueArn: string) => string | undefined;
}

const failed = { kind: "return" } as const satisfies Settlement;

/**
 * Settles each message of a batch on its own: deleted when its record allows it, else handed back to SQS after the
 * wait that its record names. A message that cannot be read is kept as a poison record; it never fails its batch.
 * One after another: a process that is killed meanwhile was carrying out one run, and no other is charged.
 */
export const settleEach =
  (deps: SqsDeps, judge: (message: RunMessage) => Promise<Settlement>): SqsHandler =>
  async ({ Records }) => {
    const batchItemFailures: { itemIdentifier: string }[] = [];
    for (const record of Records) {
      const settlement = await settle(deps, record, judge).catch((error) => failedBy(deps, record, error));
      if (settlement.kind !== "delete") batchItemFailures.push({ itemIdentifier: record.messageId });
    }
    return { batchItemFailures };
  };

const settle = async (
  deps: SqsDeps,
  record: SQSRecord,
  judge: (message: RunMessage) => Promise<Settlement>,
): Promise<Settlement> => {
  const sentAtMs = Number(record.attributes.SentTimestamp);
  const message = await readOrKeep(deps, { id: record.messageId, sentAtMs, body: record.body });
  if (message === undefined) return { kind: "delete" };
  const settlement = await judge(message);
  if (settlement.kind === "return" && settlement.afterMs !== undefined) {
    await hide(deps, record, settlement.afterMs);
  }
  return settlement;
};

const hide = async (deps: SqsDeps, record: SQSRecord, afterMs: number): Promise<void> => {
  const queueUrl = deps.queueUrlOf(record.eventSourceARN);
  // At least a second: zero would bring the message back before this invocation has ended.
  const seconds = Math.max(1, Math.ceil(Math.min(afterMs, LONGEST_WAIT_MS) / SECOND_MS));
  const delivered = queueUrl && { queueUrl, receiptHandle: record.receiptHandle };
  const answer = delivered ? await deps.deliveries.hide(delivered, seconds) : { hidden: false };
  if (answer.hidden) return;
  // Nothing is lost: it comes back with the queue's own visibility, or the watchdog sends it.
  deps.journal.notice("warn", "not-hidden", { messageId: record.messageId, seconds });
};

/** Something did not answer: the message comes back with the queue's visibility, or the watchdog sends it. */
const failedBy = (deps: SqsDeps, record: SQSRecord, error: unknown): Settlement => {
  const { name, message, stack } = errorFacts(error);
  deps.journal.notice("error", "message-failed", {
    messageId: record.messageId,
    why: stack ?? `${name}: ${message}`,
  });
  return failed;
};
