import {
  CreateTableCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  paginateQuery,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";

/**
 * Notes and sessions of a small application, for the two example jobs to work on. One table, keys `pk`, `sk`:
 *
 * | item | pk / sk | attributes |
 * |---|---|---|
 * | session | `session` / `<last used, ISO>#<id>` | - |
 * | note | `note#<date>` / `<id>` | `text` |
 * | digest | `digest` / `<date>` | `notesOf`, `lines` |
 *
 * Dates are those of the application's people (Asia/Shanghai). Delete this folder together with the two jobs:
 * `clean-sessions.ts` and `daily-digest.ts`.
 */
const TableName = process.env["NOTES_TABLE"] ?? "notes-demo";

export const ZONE = "Asia/Shanghai";

export const DAY_MS = 86_400_000;

/** `2026-10-08`: the date on the calendar of the zone. */
export const localDate = (at: Date): string =>
  new Intl.DateTimeFormat("en-CA", { timeZone: ZONE }).format(at);

export interface Session {
  readonly pk: string;
  readonly sk: string;
}

export interface Digest {
  /** The date whose notes these are. */
  readonly notesOf: string;
  readonly lines: readonly string[];
}

// Once per worker, not per run: a new client is a new connection.
const db = new DynamoDBClient({});

/** All items of the partition whose sort key is smaller, oldest first, read page by page as they are asked for. */
async function* itemsBelow(pk: string, sk: string, abortSignal?: AbortSignal) {
  const query = {
    TableName,
    KeyConditionExpression: "pk = :pk AND sk < :sk",
    ExpressionAttributeValues: marshall({ ":pk": pk, ":sk": sk }),
  };
  for await (const page of paginateQuery({ client: db }, query, { abortSignal })) {
    for (const item of page.Items ?? []) yield unmarshall(item);
  }
}

/** After every id, and every id's suffix. */
const LAST = "~";

const store = {
  /** Sessions last used before the instant. */
  async *sessionsBefore(until: Date, signal?: AbortSignal): AsyncGenerator<Session> {
    for await (const { pk, sk } of itemsBelow("session", until.toISOString(), signal)) yield { pk, sk };
  },

  /** True for the one caller that really deleted it, so that a count of them is true. */
  async deleteSession({ pk, sk }: Session): Promise<boolean> {
    const remove = new DeleteItemCommand({
      TableName,
      Key: marshall({ pk, sk }),
      ConditionExpression: "attribute_exists(pk)",
    });
    try {
      await db.send(remove);
      return true;
    } catch (error) {
      if (error instanceof Error && error.name === "ConditionalCheckFailedException") return false;
      throw error;
    }
  },

  async notesOf(date: string, signal?: AbortSignal): Promise<readonly string[]> {
    const texts: string[] = [];
    for await (const { text } of itemsBelow(`note#${date}`, LAST, signal)) texts.push(String(text));
    return texts;
  },

  /** Puts the digest in the place of any earlier one of the date. */
  async writeDigest(date: string, { notesOf, lines }: Digest): Promise<void> {
    const Item = marshall({ pk: "digest", sk: date, notesOf, lines: [...lines] });
    await db.send(new PutItemCommand({ TableName, Item }));
  },
};

export type NotesStore = typeof store;

/**
 * The store. The embedded stack's is made and filled on first use; anywhere else the table is yours, and nothing but
 * the jobs' own work is ever written to it.
 */
export const openNotesStore = async (): Promise<NotesStore> => {
  if (process.env["BELFRY_EMBEDDED"] !== "1") return store;
  filled ??= fillOnce().catch((error: unknown) => {
    filled = undefined;
    throw error;
  });
  await filled;
  return store;
};

/** Of this worker; a failed try must not stand for the next. */
let filled: Promise<void> | undefined;

const SEEDED_DAYS = 90;
const NOTES_A_DAY = 3;
const SEED_MARK = { pk: "seed", sk: "done" };

/** For each of the last days a session, many of them past any age limit, and a few notes. */
const seedItems = (now: Date): readonly Record<string, string>[] => {
  const dates = Array.from({ length: SEEDED_DAYS }, (_, back) =>
    localDate(new Date(now.getTime() - back * DAY_MS)),
  );
  return dates.flatMap((date) => [
    { pk: "session", sk: `${date}T00:00:00.000Z#demo` },
    ...Array.from({ length: NOTES_A_DAY }, (_, n) => ({
      pk: `note#${date}`,
      sk: `demo-${n}`,
      text: `Note ${n + 1} of ${date}`,
    })),
  ]);
};

const createTable = async (): Promise<void> => {
  const keys = [
    ["pk", "HASH"],
    ["sk", "RANGE"],
  ] as const;
  try {
    await db.send(
      new CreateTableCommand({
        TableName,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: keys.map(([AttributeName]) => ({ AttributeName, AttributeType: "S" })),
        KeySchema: keys.map(([AttributeName, KeyType]) => ({ AttributeName, KeyType })),
      }),
    );
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ResourceInUseException") throw error;
  }
  await waitUntilTableExists({ client: db, maxWaitTime: 30, minDelay: 1 }, { TableName });
};

const isSeeded = async (): Promise<boolean> => {
  const { Item } = await db.send(
    new GetItemCommand({ TableName, Key: marshall(SEED_MARK), ConsistentRead: true }),
  );
  return Item !== undefined;
};

const put = async (item: Record<string, string>): Promise<void> => {
  await db.send(new PutItemCommand({ TableName, Item: marshall(item) }));
};

const PUTS_AT_ONCE = 25;

/** Two workers may do this at once: they put the same items, and each works only when all of its own are there. */
const fillOnce = async (): Promise<void> => {
  await createTable();
  if (await isSeeded()) return;
  const items = seedItems(new Date());
  for (let from = 0; from < items.length; from += PUTS_AT_ONCE)
    await Promise.all(items.slice(from, from + PUTS_AT_ONCE).map(put));
  await put(SEED_MARK);
};
