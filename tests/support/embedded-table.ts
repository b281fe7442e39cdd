import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import dynalite from "dynalite";
import { tableDefinition } from "../../lib/adapters/dynamo/table-definition.ts";

export const TEST_CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" };

/** DynamoDB's wire protocol in this process's memory, with our table in it. */
export const embeddedTable = async (tableName = "belfry-test") => {
  const server = dynalite({ createTableMs: 0, updateTableMs: 0 });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const endpoint = `http://127.0.0.1:${port}`;
  const db = new DynamoDBClient({ endpoint, region: "us-east-1", credentials: TEST_CREDENTIALS });
  await db.send(new CreateTableCommand(tableDefinition(tableName)));
  return {
    db,
    endpoint,
    tableName,
    close: async (): Promise<void> => {
      db.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
