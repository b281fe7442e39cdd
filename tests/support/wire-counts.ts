import { type AttributeValue, DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import type { SQSClient } from "@aws-sdk/client-sqs";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { NOTHING, type StoryCounts } from "../../lib/core/costs/story-counts.ts";
import type { Item } from "../../lib/core/write.ts";
import { TEST_CREDENTIALS } from "./embedded-table.ts";
import { itemBytes } from "./item-size.ts";

export type Counts = { -readonly [name in keyof StoryCounts]: StoryCounts[name] };

interface Wired {
  readonly Key?: Record<string, AttributeValue>;
  readonly TableName?: string;
  readonly ConsistentRead?: boolean;
}
interface Answer {
  readonly Attributes?: Record<string, AttributeValue>;
  readonly Item?: Record<string, AttributeValue>;
  readonly Items?: readonly Record<string, AttributeValue>[];
  readonly Responses?: { readonly [table: string]: readonly Record<string, AttributeValue>[] };
}

const WRITE_UNIT_BYTES = 1_024;
const READ_UNIT_BYTES = 4_096;
/** What CloudWatch adds to every event. */
const LOG_EVENT_BYTES = 26;

const bytesOf = (attributes: Record<string, AttributeValue> | undefined): number =>
  attributes === undefined ? 0 : itemBytes(unmarshall(attributes) as Item);

const unitsOf = (bytes: number, unit: number): number => Math.max(1, Math.ceil(bytes / unit));

/** An item in the sparse index is written twice. */
const writeUnitsOf = (attributes: Record<string, AttributeValue> | undefined): number =>
  unitsOf(bytesOf(attributes), WRITE_UNIT_BYTES) * (attributes?.["badMonth"] === undefined ? 1 : 2);

/** A query is billed by its sum, a batch item by item; an eventually consistent read at half. */
const readUnitsOf = (input: Wired, answer: Answer, keyCount: number): number => {
  const items = Object.values(answer.Responses ?? {}).flat();
  const missing = keyCount - items.length;
  const batch = items.reduce((sum, item) => sum + unitsOf(bytesOf(item), READ_UNIT_BYTES), missing);
  const queried = (answer.Items ?? []).reduce((sum, item) => sum + bytesOf(item), 0);
  const units =
    answer.Responses === undefined
      ? unitsOf(answer.Item === undefined ? queried : bytesOf(answer.Item), READ_UNIT_BYTES)
      : batch;
  return input.ConsistentRead === true ? units : units / 2;
};

const lengthOf = (body: unknown): number =>
  typeof body === "string" || body instanceof Uint8Array ? Buffer.byteLength(body) : 0;

interface WireRequest {
  readonly body?: unknown;
}
interface WireResponse {
  readonly headers?: { readonly [name: string]: string };
}

interface Clients {
  readonly db: DynamoDBClient;
  readonly sqs: SQSClient;
}

/** Every try that leaves a client, retries of the SDK among them, and the bytes of bodies both ways. */
const countBytes = (counts: Counts, { db, sqs }: Clients): void => {
  for (const stack of [db.middlewareStack, sqs.middlewareStack] as const)
    (stack as DynamoDBClient["middlewareStack"]).add(
      (next) => async (args) => {
        counts.bytesOut += lengthOf((args.request as WireRequest).body);
        const answer = await next(args);
        counts.bytesIn += Number((answer.response as WireResponse).headers?.["content-length"] ?? 0);
        return answer;
      },
      { step: "finalizeRequest", priority: "low" },
    );
};

/** A refused write brings back the item that refused it; the embedded table leaves it out. */
const refusedWithItem = async (raw: DynamoDBClient, input: Wired, error: unknown): Promise<unknown> => {
  if (!(error instanceof Error) || error.name !== "ConditionalCheckFailedException") return error;
  const { Item } = await raw.send(
    new GetItemCommand({ TableName: input.TableName ?? "", Key: input.Key ?? {}, ConsistentRead: true }),
  );
  return Item === undefined ? error : Object.assign(error, { Item });
};

const countTable = (counts: Counts, db: DynamoDBClient, raw: DynamoDBClient): void => {
  db.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        const input = args.input as Wired;
        if (commandName === "UpdateItemCommand") {
          counts.writes += 1;
          try {
            const answer = await next(args);
            counts.writeUnits += writeUnitsOf((answer.output as Answer).Attributes);
            return answer;
          } catch (error) {
            const refused = await refusedWithItem(raw, input, error);
            counts.writeUnits += writeUnitsOf((refused as { Item?: Record<string, AttributeValue> }).Item);
            throw refused;
          }
        }
        counts.reads += 1;
        const answer = await next(args);
        const requested = (args.input as { RequestItems?: { [table: string]: { Keys?: unknown[] } } })
          .RequestItems;
        const keyCount = Object.values(requested ?? {}).reduce((sum, { Keys = [] }) => sum + Keys.length, 0);
        counts.readUnits += readUnitsOf(input, answer.output as Answer, keyCount);
        return answer;
      },
    { step: "initialize" },
  );
};

const countQueue = (counts: Counts, sqs: SQSClient): void => {
  sqs.middlewareStack.add(
    (next, { commandName = "" }) =>
      (args) => {
        if (commandName.startsWith("SendMessage")) counts.sends += 1;
        if (commandName.startsWith("ChangeMessageVisibility")) counts.hides += 1;
        return next(args);
      },
    { step: "initialize" },
  );
};

const callsOf = ({ writes, reads, sends, hides }: Counts): number => writes + reads + sends + hides;

/** Counts what these clients and this process's log cost from now on, in the units that are billed. */
export const wireCounts = (clients: Clients, endpoint: string) => {
  const counts: Counts = { ...NOTHING };
  const raw = new DynamoDBClient({ endpoint, region: "us-east-1", credentials: TEST_CREDENTIALS });
  countTable(counts, clients.db, raw);
  countQueue(counts, clients.sqs);
  countBytes(counts, clients);
  return {
    counts,
    reset: (): void => void Object.assign(counts, NOTHING),
    /** What a worker does; answers how many messages it took. */
    working: async (take: () => Promise<number>): Promise<number> => {
      const before = callsOf(counts);
      const taken = await take();
      counts.deliveries += taken;
      counts.workerCalls += callsOf(counts) - before;
      return taken;
    },
    /** A line of our log. */
    line: (text: string): void => {
      if (!text.startsWith("{")) return;
      counts.logLines += 1;
      counts.logBytes += Buffer.byteLength(text.trimEnd()) + LOG_EVENT_BYTES;
    },
    close: (): void => raw.destroy(),
  };
};
