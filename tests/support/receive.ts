import { DeleteMessageCommand, ReceiveMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { SQSBatchResponse, SQSEvent } from "aws-lambda";

type Handler = (event: SQSEvent, invocation: { awsRequestId: string }) => Promise<SQSBatchResponse>;

/**
 * Every message that is visible now, as an event with one record each.
 * @param waitSeconds how long to wait for the first, if there is none
 */
export const receiveEvents = async (
  sqs: SQSClient,
  QueueUrl: string,
  waitSeconds = 0,
): Promise<readonly SQSEvent[]> => {
  const events: SQSEvent[] = [];
  for (;;) {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: 10,
        MessageSystemAttributeNames: ["All"],
        WaitTimeSeconds: events.length === 0 ? waitSeconds : 0,
      }),
    );
    if (Messages.length === 0) return events;
    for (const { MessageId = "", ReceiptHandle = "", Body = "", Attributes = {} } of Messages) {
      const attributes = {
        ApproximateReceiveCount: Attributes["ApproximateReceiveCount"] ?? "1",
        SentTimestamp: Attributes["SentTimestamp"] ?? "0",
        SenderId: "",
        ApproximateFirstReceiveTimestamp: Attributes["ApproximateFirstReceiveTimestamp"] ?? "0",
      };
      const record = {
        messageId: MessageId,
        receiptHandle: ReceiptHandle,
        body: Body,
        attributes,
        messageAttributes: {},
        md5OfBody: "",
        eventSource: "aws:sqs",
        eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${QueueUrl.split("/").at(-1)}`,
        awsRegion: "us-east-1",
      };
      events.push({ Records: [record] });
    }
  }
};

/** Hands each visible message to the handler, and deletes what it does not hand back. Answers how many there were. */
export const drain = async (
  sqs: SQSClient,
  QueueUrl: string,
  handler: Handler,
  waitSeconds = 0,
): Promise<number> => {
  const events = await receiveEvents(sqs, QueueUrl, waitSeconds);
  for (const event of events) {
    const { batchItemFailures } = await handler(event, { awsRequestId: "test" });
    const [record] = event.Records;
    if (record === undefined || batchItemFailures.length > 0) continue;
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: record.receiptHandle }));
  }
  return events.length;
};
