import type { CreateTableCommandInput } from "@aws-sdk/client-dynamodb";
import { INDEX_NAME } from "../../core/items.ts";

/** The one table, for the embedded stack and for tests. */
export const tableDefinition = (TableName: string): CreateTableCommandInput => ({
  TableName,
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: ["pk", "sk", "badMonth", "badKey"].map((AttributeName) => ({
    AttributeName,
    AttributeType: "S",
  })),
  KeySchema: [
    { AttributeName: "pk", KeyType: "HASH" },
    { AttributeName: "sk", KeyType: "RANGE" },
  ],
  GlobalSecondaryIndexes: [
    {
      IndexName: INDEX_NAME,
      KeySchema: [
        { AttributeName: "badMonth", KeyType: "HASH" },
        { AttributeName: "badKey", KeyType: "RANGE" },
      ],
      Projection: { ProjectionType: "ALL" },
    },
  ],
});
