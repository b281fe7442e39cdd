import { BatchWriteItemCommand, DynamoDBClient, paginateQuery } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";

/**
 * The table of a small application with notes, for the example jobs to work on. Keys `pk`, `sk`:
 *
 * | item | pk / sk | attributes | file |
 * |---|---|---|---|
 * | session | `session` / `<last used, ISO>#<id>` | - | notes-store.ts |
 * | note | `note#<date>` / `<id>` | `text` | notes-store.ts |
 * | digest | `digest` / `<date>` | `notesOf`, `lines` | notes-store.ts |
 * | reminder | `reminder` / `<due, ISO>#<id>` | `state`, `text`, `holder`, `leaseUntil` | outbox.ts |
 * | delivery | `delivery` / `<reminder's sk>` | `text` | outbox.ts |
 * | link | `link` / `<id>` | `url`; `status`, `problem`, `checkedAt` of the last check | links.ts |
 * | archived note | `archive` / `<id>` | `text` | search-index.ts |
 * | entry of the index | `index#<word>` / `<note's id>` | - | search-index.ts |
 *
 * Dates are those of the application's people (Asia/Shanghai). `npx belfry eject-examples` deletes this folder together
 * with the five jobs.
 */
export const TableName = process.env["NOTES_TABLE"] ?? "notes-demo";

/** What a job needs of a deployment to work on the table. */
export const NOTES_ACCESS = {
  environment: { NOTES_TABLE: "${NotesTable}" },
  permissions: [
    {
      actions: [
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:BatchWriteItem",
      ],
      resources: "${NotesTable.Arn}",
    },
  ],
};

// Once per worker, not per run: a new client is a new connection.
export const db = new DynamoDBClient({});

export interface Range {
  readonly pk: string;
  readonly from?: string;
  /** Included. */
  readonly to: string;
}

/** After every id, and every id's suffix. */
export const LAST = "~";

/** All items of the range, in order of their sort keys, read page by page as they are asked for. */
export async function* itemsOf({ pk, from = " ", to }: Range, abortSignal?: AbortSignal) {
  const query = {
    TableName,
    KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :to",
    ExpressionAttributeValues: marshall({ ":pk": pk, ":from": from, ":to": to }),
  };
  for await (const page of paginateQuery({ client: db }, query, { abortSignal })) {
    for (const item of page.Items ?? []) yield unmarshall(item);
  }
}

/** False when the write's condition did not hold. */
export const ifItHolds = async (write: Promise<unknown>): Promise<boolean> => {
  try {
    await write;
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === "ConditionalCheckFailedException") return false;
    throw error;
  }
};

export type Item = Readonly<Record<string, string>>;

/** The service's own limit. */
const PUTS_PER_CALL = 25;

/** False when the table was too busy to take them all; putting them again does no harm. */
export const putAll = async (items: readonly Item[], abortSignal?: AbortSignal): Promise<boolean> => {
  for (let from = 0; from < items.length; from += PUTS_PER_CALL) {
    const requests = items
      .slice(from, from + PUTS_PER_CALL)
      .map((item) => ({ PutRequest: { Item: marshall(item) } }));
    const command = new BatchWriteItemCommand({ RequestItems: { [TableName]: requests } });
    const { UnprocessedItems } = await db.send(command, { ...(abortSignal && { abortSignal }) });
    if (Object.keys(UnprocessedItems ?? {}).length > 0) return false;
  }
  return true;
};
