import {
  type BatchResultErrorEntry,
  ChangeMessageVisibilityCommand,
  SendMessageBatchCommand,
  type SendMessageBatchCommandOutput,
  SendMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { InvalidInput, messageOf, Unavailable } from "../../core/errors.ts";
import { messageText, type RunMessage } from "../../core/runs/message.ts";
import type { Deliveries, RunQueue, SendAnswer } from "../../ports/run-queue.ts";

type QueueUrls = { readonly [pool: string]: string };

const urlOf = (queueUrls: QueueUrls, pool: string): string => {
  const url = queueUrls[pool];
  if (url !== undefined) return url;
  throw new InvalidInput("unknown_pool", `no queue for the pool "${pool}"`, { field: "pool" });
};

const UNCONFIRMED: SendAnswer = { kind: "unconfirmed" };

/** The queue's own fault passes; the message's never does. */
const failureOf = ({ SenderFault, Code, Message }: BatchResultErrorEntry): SendAnswer => {
  const reason = [Code, Message].filter((part) => part !== undefined).join(": ");
  return { kind: SenderFault === true ? "refused" : "unconfirmed", reason };
};

/**
 * Entry by entry: a call that succeeds may have failed for some of them, and whoever is in neither list is not
 * confirmed. See https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
 */
const answersOf = (
  count: number,
  { Successful, Failed }: SendMessageBatchCommandOutput,
): readonly SendAnswer[] => {
  const answers = new Map<string | undefined, SendAnswer>();
  for (const entry of Failed ?? []) answers.set(entry.Id, failureOf(entry));
  for (const { Id } of Successful ?? []) answers.set(Id, { kind: "sent" });
  return Array.from({ length: count }, (_, index) => answers.get(String(index)) ?? UNCONFIRMED);
};

const sendBatch = async (
  sqs: SQSClient,
  QueueUrl: string,
  messages: readonly RunMessage[],
): Promise<readonly SendAnswer[]> => {
  const Entries = messages.map((message, index) => ({
    Id: String(index),
    MessageBody: messageText(message),
  }));
  try {
    return answersOf(messages.length, await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries })));
  } catch (error) {
    const reason = messageOf(error);
    return messages.map(() => ({ kind: "unconfirmed", reason }));
  }
};

/** One standard queue per pool. */
export const sqsRunQueue = (sqs: SQSClient, queueUrls: QueueUrls): RunQueue => ({
  sendBatch: async (pool, messages) => sendBatch(sqs, urlOf(queueUrls, pool), messages),
  async send(pool, message) {
    const QueueUrl = urlOf(queueUrls, pool);
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
