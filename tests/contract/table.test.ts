import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dynamoTable } from "../../lib/adapters/dynamo/dynamo-table.ts";
import { memoryTable } from "../../lib/adapters/memory/memory-table.ts";
import type { Change, Condition, Write } from "../../lib/core/write.ts";
import { embeddedTable } from "../support/embedded-table.ts";
import { tableContract } from "./table.contract.ts";

let embedded: Awaited<ReturnType<typeof embeddedTable>>;

beforeAll(async () => {
  embedded = await embeddedTable();
});
afterAll(() => embedded.close());

describe("the table in memory", () => {
  const table = memoryTable();
  tableContract(() => table);
});

describe("the DynamoDB table", () => {
  tableContract(() => dynamoTable(embedded.db, embedded.tableName));
});

const name = fc.constantFrom("a", "b", "c");
const number = fc.integer({ min: 0, max: 2 });
const member = fc.constantFrom("x", "y");

const condition: fc.Arbitrary<Condition> = fc.letrec<{ any: Condition }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.record({ kind: fc.constant("exists" as const), path: name }),
    fc.record({ kind: fc.constant("absent" as const), path: name }),
    fc.record({
      kind: fc.constant("compare" as const),
      path: name,
      operator: fc.constantFrom("=" as const, "<" as const, "<=" as const, ">" as const),
      value: number,
    }),
    fc.record({ kind: fc.constant("contains" as const), path: fc.constant("w"), member }),
    fc.record({ kind: fc.constant("not" as const), condition: tie("any") }),
    fc.record({
      kind: fc.constantFrom("all" as const, "any" as const),
      conditions: fc.array(tie("any"), { minLength: 1, maxLength: 3 }),
    }),
  ),
})).any;

const changes: fc.Arbitrary<readonly Change[]> = fc
  .tuple(
    fc.uniqueArray(
      fc.oneof(
        fc.record({ kind: fc.constantFrom("set" as const, "set-once" as const), path: name, value: number }),
        fc.record({ kind: fc.constant("increment" as const), path: name, by: number }),
        fc.record({ kind: fc.constant("remove" as const), path: name }),
      ),
      { selector: ({ path }) => path, minLength: 1 },
    ),
    fc.option(
      fc.record({
        kind: fc.constantFrom("add-members" as const, "delete-members" as const),
        path: fc.constant("w"),
        members: fc.uniqueArray(member, { minLength: 1 }),
      }),
      { nil: undefined },
    ),
  )
  .map(([scalars, ofSet]): readonly Change[] => (ofSet === undefined ? scalars : [...scalars, ofSet]));

test("both tables give the same answers to the same writes", async () => {
  let made = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(condition, changes), { minLength: 1, maxLength: 8 }),
      async (asked) => {
        const memory = memoryTable();
        const dynamo = dynamoTable(embedded.db, embedded.tableName);
        const key = { pk: `property-${made++}`, sk: "a" };
        for (const [only, changed] of asked) {
          const write: Write = { key, condition: only, changes: changed };
          expect(await dynamo.write(write)).toEqual(await memory.write(write));
        }
      },
    ),
    { numRuns: 60 },
  );
});
