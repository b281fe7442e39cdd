import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  type MessageAttributeValue,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { SQSMessageAttribute, SQSRecordAttributes } from "aws-lambda";
import { CREDENTIALS, type Endpoints } from "./environment.ts";
import type { MessageSource, ReceivedMessage } from "./event-source-mapping.ts";
import { REGION } from "./resources.ts";

/** Everything explicit: nothing is looked up in an environment, a file or a metadata service. */
export const makeClients = (endpoints: Endpoints): { dynamodb: DynamoDBClient; sqs: SQSClient } => ({
  dynamodb: new DynamoDBClient({ endpoint: endpoints.dynamodb, region: REGION, credentials: CREDENTIALS }),
  sqs: new SQSClient({ endpoint: endpoints.sqs, region: REGION, credentials: CREDENTIALS }),
});

const attributeOf = (value: MessageAttributeValue): SQSMessageAttribute => ({
  dataType: (value.DataType ?? "String") as SQSMessageAttribute["dataType"],
  ...(value.StringValue === undefined ? {} : { stringValue: value.StringValue }),
  ...(value.BinaryValue === undefined
    ? {}
    : { binaryValue: Buffer.from(value.BinaryValue).toString("base64") }),
});

const receivedOf = (message: Message): ReceivedMessage => ({
  messageId: message.MessageId ?? "",
  receiptHandle: message.ReceiptHandle ?? "",
  body: message.Body ?? "",
  md5OfBody: message.MD5OfBody ?? "",
  attributes: (message.Attributes ?? {}) as unknown as SQSRecordAttributes,
  messageAttributes: Object.fromEntries(
    Object.entries(message.MessageAttributes ?? {}).map(([name, value]) => [name, attributeOf(value)]),
  ),
});

/** A queue over the wire, as the event source mapping reads it. */
export const sqsSource = (client: SQSClient, QueueUrl: string): MessageSource => ({
  receive: async (MaxNumberOfMessages, WaitTimeSeconds) => {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages,
        WaitTimeSeconds,
        MessageSystemAttributeNames: ["All"],
        MessageAttributeNames: ["All"],
      }),
    );
    return Messages.map(receivedOf);
  },
  remove: async (ReceiptHandle) => {
    await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
  },
  giveBack: async (ReceiptHandle) => {
    // Not 0: with its data folder, fauxqs answers that with an error and forgets the message until a restart.
    await client.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 1 }));
  },
});
