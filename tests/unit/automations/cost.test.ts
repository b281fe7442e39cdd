import { BatchWriteItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "vitest";
import { dynamoTable } from "../../../lib/adapters/dynamo/dynamo-table.ts";
import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import type { Item } from "../../../lib/core/write.ts";
import { embeddedTable } from "../../support/embedded-table.ts";
import { type Cost, costOf, crowd, withCrowd } from "./crowd.ts";

type Embedded = Awaited<ReturnType<typeof embeddedTable>>;

const ITEMS_PER_CALL = 25;

const fill = async ({ db, tableName }: Embedded, items: readonly Item[]): Promise<void> => {
  for (let from = 0; from < items.length; from += ITEMS_PER_CALL) {
    const puts = items
      .slice(from, from + ITEMS_PER_CALL)
      .map((item) => ({ PutRequest: { Item: marshall(item) } }));
    await db.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: puts } }));
  }
};

const embeddedCost = async (count: number): Promise<Cost> => {
  const embedded = await embeddedTable();
  try {
    await fill(embedded, crowd(count));
    return await costOf(dynamoTable(embedded.db, embedded.tableName));
  } finally {
    await embedded.close();
  }
};

/** In the order of the pass: the cursor; the agenda's minute, its records, runs and health; the notes of eight parts. */
const HEALTHY = { get: 4, query: 10, write: 3, getMany: 4, keys: 300 };
/** Each of the 100 is noted and claimed, and sent. */
const UNDELIVERED = { ...HEALTHY, write: 203 };

const expectTheSame = ({ healthy, undelivered, sent }: Cost): void =>
  expect({ healthy, undelivered, sent }).toEqual({ healthy: HEALTHY, undelivered: UNDELIVERED, sent: 100 });

test("a pass with 100 due costs the same requests among 1,000,000 run-time schedules as among 100", {
  timeout: 300_000,
}, async () => {
  expectTheSame(await costOf(withCrowd(memoryTable(), 100)));
  const million = await costOf(withCrowd(memoryTable(), 1_000_000));
  expectTheSame(million);
  // The rest of the day is planned in bounded pieces, and its ids are packed.
  expect(million.walkPasses).toBe(10);
  expect(million.pages).toBeLessThan(1_000_000 / 35);
});

test("a pass with 100 due costs the same requests over the wire among 10,000 run-time schedules as among 100", {
  timeout: 300_000,
}, async () => {
  expectTheSame(await embeddedCost(100));
  expectTheSame(await embeddedCost(10_000));
});
