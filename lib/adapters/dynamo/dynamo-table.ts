import {
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { Unavailable } from "../../core/errors.ts";
import { INDEX_NAME } from "../../core/items.ts";
import { holds, type Item, type Key, type Write } from "../../core/write.ts";
import type { Query, Table, WriteAnswer } from "../../ports/table.ts";
import { type Attributes, itemOf } from "./attributes.ts";
import { updateOf } from "./expressions.ts";

/**
 * BatchGetItem takes 100 keys a call. See
 * https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
 */
const KEYS_PER_CALL = 100;
const MAX_ROUNDS = 8;

const keyOf = ({ pk, sk }: Key): Attributes => ({ pk: { S: pk }, sk: { S: sk } });

/** A refusal is an answer, and a call that DynamoDB cannot read is our own fault: neither means "try again". */
const isAnswer = (error: unknown): boolean =>
  error instanceof ConditionalCheckFailedException ||
  (error instanceof Error && error.name === "ValidationException");

/** What the store says by its own error becomes the one error callers know. */
const asked = async <T>(what: string, call: () => Promise<T>): Promise<T> => {
  try {
    return await call();
  } catch (cause) {
    if (isAnswer(cause)) throw cause;
    throw new Unavailable("table_unavailable", `the table did not answer: ${what}`, { cause });
  }
};

/** The table port over DynamoDB. */
export const dynamoTable = (db: DynamoDBClient, TableName: string): Table => {
  const get = async (key: Key, consistent: boolean): Promise<Item | undefined> => {
    const answer = await asked(`get ${key.pk} ${key.sk}`, () =>
      db.send(new GetItemCommand({ TableName, Key: keyOf(key), ConsistentRead: consistent })),
    );
    return answer.Item && itemOf(answer.Item);
  };

  const write = async (wanted: Write): Promise<WriteAnswer> => {
    const { pk, sk } = wanted.key;
    try {
      const answer = await asked(`write ${pk} ${sk}`, () =>
        db.send(
          new UpdateItemCommand({
            TableName,
            Key: keyOf(wanted.key),
            ...updateOf(wanted),
            ReturnValues: "ALL_NEW",
            ReturnValuesOnConditionCheckFailure: "ALL_OLD",
          }),
        ),
      );
      return { written: true, item: itemOf(answer.Attributes ?? {}) };
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      if (error.Item) return { written: false, item: itemOf(error.Item) };
      return refusedWithoutItem(wanted);
    }
  };

  /**
   * No item comes back when there was none - and from dynalite, never. So read it; if the condition holds on what
   * was read, the item changed in between, and the write is asked again.
   */
  const refusedWithoutItem = async (wanted: Write): Promise<WriteAnswer> => {
    const item = await get(wanted.key, true);
    return holds(wanted.condition, item) ? write(wanted) : { written: false, item };
  };

  const getChunk = async (keys: readonly Key[]): Promise<Item[]> => {
    const found: Item[] = [];
    let wanted: Attributes[] = keys.map(keyOf);
    for (let round = 0; wanted.length > 0; round++) {
      // Unprocessed keys mean throttling: whoever asked may come again later.
      if (round === MAX_ROUNDS) throw new Unavailable("table_unavailable", "the table left keys unread");
      const answer = await asked("get many", () =>
        db.send(new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys: wanted } } })),
      );
      found.push(...(answer.Responses?.[TableName] ?? []).map(itemOf));
      wanted = answer.UnprocessedKeys?.[TableName]?.Keys ?? [];
    }
    return found;
  };

  const getMany = async (keys: readonly Key[]): Promise<readonly Item[]> => {
    const chunks = Array.from({ length: Math.ceil(keys.length / KEYS_PER_CALL) }, (_, chunk) =>
      getChunk(keys.slice(chunk * KEYS_PER_CALL, (chunk + 1) * KEYS_PER_CALL)),
    );
    return (await Promise.all(chunks)).flat();
  };

  return {
    write,
    get: (key, { consistent }) => get(key, consistent),
    getMany,
    query: queryOf(db, TableName),
  };
};

const queryOf =
  (db: DynamoDBClient, TableName: string): Table["query"] =>
  async ({ pk, first, last, descending = false, limit = Number.POSITIVE_INFINITY, index }: Query) => {
    const [partition, sort] = index === "bad" ? ["badMonth", "badKey"] : ["pk", "sk"];
    const found: Item[] = [];
    let startKey: Attributes | undefined;
    do {
      const page = await asked(`query ${pk}`, () =>
        db.send(
          new QueryCommand({
            TableName,
            ...(index === "bad" ? { IndexName: INDEX_NAME } : {}),
            KeyConditionExpression: "#p = :p AND #s BETWEEN :first AND :last",
            ExpressionAttributeNames: { "#p": partition, "#s": sort },
            ExpressionAttributeValues: { ":p": { S: pk }, ":first": { S: first }, ":last": { S: last } },
            ScanIndexForward: !descending,
            ...(limit === Number.POSITIVE_INFINITY ? {} : { Limit: limit - found.length }),
            ...(startKey === undefined ? {} : { ExclusiveStartKey: startKey }),
          }),
        ),
      );
      found.push(...(page.Items ?? []).map(itemOf));
      startKey = page.LastEvaluatedKey;
    } while (startKey !== undefined && found.length < limit);
    return found;
  };
