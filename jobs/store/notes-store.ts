import {
  BatchWriteItemCommand,
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

/** What a job needs of a deployment to work on the store. */
export const NOTES_ACCESS = {
  environment: { NOTES_TABLE: "${NotesTable}" },
  permissions: [
    {
      actions: ["dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"],
      resources: "${NotesTable.Arn}",
    },
  ],
};

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

/** A slot runs until it is 30 days old, and then still finds sessions that are 30 days older than it. */
const SESSIONS = { days: 90, every: 3 };
const NOTES = { days: 33, aDay: 3 };
const SEED_MARK = { pk: "seed", sk: "done" };

type Seed = Readonly<Record<string, string>>;

const seedItems = (now: Date): readonly Seed[] => {
  const dateBack = (days: number): string => localDate(new Date(now.getTime() - days * DAY_MS));
  const sessions = Array.from({ length: SESSIONS.days / SESSIONS.every }, (_, n) => ({
    pk: "session",
    sk: `${dateBack((n + 1) * SESSIONS.every)}T00:00:00.000Z#demo`,
  }));
  const notes = Array.from({ length: NOTES.days * NOTES.aDay }, (_, n) => {
    const date = dateBack(Math.floor(n / NOTES.aDay));
    return {
      pk: `note#${date}`,
      sk: `demo-${n % NOTES.aDay}`,
      text: `Note ${(n % NOTES.aDay) + 1} of ${date}`,
    };
  });
  return [...sessions, ...notes];
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

/** The service's own limit. */
const PUTS_PER_CALL = 25;

/** Only for the emulator, which never leaves a part of the items undone. */
const putAll = async (items: readonly Seed[]): Promise<void> => {
  for (let from = 0; from < items.length; from += PUTS_PER_CALL) {
    const requests = items
      .slice(from, from + PUTS_PER_CALL)
      .map((item) => ({ PutRequest: { Item: marshall(item) } }));
    await db.send(new BatchWriteItemCommand({ RequestItems: { [TableName]: requests } }));
  }
};

/** Two workers may do this at once: they put the same items, and each works only when all of its own are there. */
const fillOnce = async (): Promise<void> => {
  await createTable();
  if (await isSeeded()) return;
  await putAll(seedItems(new Date()));
  await putAll([SEED_MARK]);
};
