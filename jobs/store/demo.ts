import { CreateTableCommand, GetItemCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { db, type Item, putAll, TableName } from "./table.ts";

/** Anywhere else the table is yours, and nothing but the jobs' own work is ever written to it. */
export const isEmbedded = (): boolean => process.env["BELFRY_EMBEDDED"] === "1";

/**
 * In the embedded stack, makes the table and puts the items when they are first needed, however many workers ask.
 * Two may do it at once: they put the same items, and each works only when all of its own are there.
 */
export const fillOnce = (mark: string, seed: (now: Date) => readonly Item[]): (() => Promise<void>) => {
  let filled: Promise<void> | undefined;
  return async () => {
    if (!isEmbedded()) return;
    // Of this worker; a failed try must not stand for the next.
    filled ??= fill({ pk: "seed", sk: mark }, seed).catch((error: unknown) => {
      filled = undefined;
      throw error;
    });
    await filled;
  };
};

const fill = async (mark: Item, seed: (now: Date) => readonly Item[]): Promise<void> => {
  await createTable();
  const key = { TableName, Key: marshall(mark), ConsistentRead: true };
  if ((await db.send(new GetItemCommand(key))).Item !== undefined) return;
  for (const items of [seed(new Date()), [mark]]) {
    if (!(await putAll(items))) throw new Error("the demo's table did not take all items");
  }
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
