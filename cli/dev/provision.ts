import {
  CreateTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  ResourceInUseException,
} from "@aws-sdk/client-dynamodb";
import {
  CreateQueueCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  SetQueueAttributesCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { tableDefinition } from "../../lib/adapters/dynamo/table-definition.ts";
import { type QueueSpec, queueUrl, TABLE_NAME } from "./resources.ts";

const TABLE_TRIES = 50;
const TABLE_TRY_MS = 50;

/** Makes the table where it is missing, and waits until it can be used. */
export const ensureTable = async (client: DynamoDBClient): Promise<void> => {
  try {
    await client.send(new CreateTableCommand(tableDefinition(TABLE_NAME)));
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
  }
  for (let tried = 0; tried < TABLE_TRIES; tried++) {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: TABLE_NAME }));
    if (Table?.TableStatus === "ACTIVE") return;
    await new Promise((resolve) => setTimeout(resolve, TABLE_TRY_MS));
  }
  throw new Error(`table ${TABLE_NAME} did not become active`);
};

const urlOf = async (client: SQSClient, name: string): Promise<string | undefined> => {
  try {
    return (await client.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl;
  } catch (error) {
    // The emulators' errors are no instances of the SDK's classes in every case; their names are right.
    const missing =
      error instanceof QueueDoesNotExist || /NonExistentQueue|QueueDoesNotExist/.test(String(error));
    if (missing) return undefined;
    throw error;
  }
};

/** A queue that exists gets today's attributes: a job's new timeout changes its pool's visibility. */
const ensureQueue = async (client: SQSClient, { name, attributes }: QueueSpec): Promise<string> => {
  const known = await urlOf(client, name);
  if (known !== undefined) {
    await client.send(new SetQueueAttributesCommand({ QueueUrl: known, Attributes: attributes }));
    return known;
  }
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }));
  if (QueueUrl === undefined) throw new Error(`queue ${name} was made, but has no address`);
  return QueueUrl;
};

/** Makes what is missing of the queues, in the order given; repeatable, and so by several processes at once. */
export const ensureQueues = async (
  client: SQSClient,
  endpoint: string,
  specs: readonly QueueSpec[],
): Promise<void> => {
  // One after the other: a queue with a redrive policy names one that must exist.
  for (const spec of specs) {
    const { pathname } = new URL(await ensureQueue(client, spec));
    // Only the path counts: an emulator remembers the port it had when the queue was made.
    if (pathname !== new URL(queueUrl(endpoint, spec.name)).pathname) {
      throw new Error(`${endpoint} names its queue ${spec.name} otherwise: ${pathname}`);
    }
  }
};
