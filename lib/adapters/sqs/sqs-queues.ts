import { ChangeMessageVisibilityCommand, SendMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { InvalidInput, Unavailable } from "../../core/errors.ts";
import { messageText } from "../../core/message.ts";
import type { Deliveries, RunQueue } from "../../ports/run-queue.ts";

/** One standard queue per pool. */
export const sqsRunQueue = (sqs: SQSClient, queueUrls: { readonly [pool: string]: string }): RunQueue => ({
  async send(pool, message) {
    const QueueUrl = queueUrls[pool];
    if (QueueUrl === undefined) {
      throw new InvalidInput("unknown_pool", `no queue for the pool "${pool}"`, { field: "pool" });
    }
    try {
      await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: messageText(message) }));
    } catch (cause) {
      throw new Unavailable("queue_unavailable", `the queue of pool "${pool}" did not answer`, { cause });
    }
  },
});

export const sqsDeliveries = (sqs: SQSClient): Deliveries => ({
  async hide({ queueUrl, receiptHandle }, seconds) {
    const VisibilityTimeout = seconds;
    try {
      await sqs.send(
        new ChangeMessageVisibilityCommand({
          QueueUrl: queueUrl,
          ReceiptHandle: receiptHandle,
          VisibilityTimeout,
        }),
      );
      return { hidden: true };
    } catch {
      return { hidden: false };
    }
  },
});
