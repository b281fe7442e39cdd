import { once } from "node:events";
import type { Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import {
  DeleteItemCommand,
  DynamoDBClient,
  ListTablesCommand,
  PutItemCommand,
  QueryCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { Job } from "belfry";
import { testJob } from "belfry/testing";
import { vi } from "vitest";

type Dynalite = (options: { createTableMs: number }) => Server;
const dynalite = createRequire(import.meta.url)("dynalite") as Dynalite;

export const DAY_MS = 86_400_000;

/** The job, run at its slot; an unhappy end is thrown. */
const resultOf = (job: Job) => async (slot: Date) => {
  const run = await testJob(job, { slot }).run();
  if (run.state !== "succeeded") throw new Error(`the run is ${run.state}: ${run.error?.message}`);
  return run.result;
};

/** A new store over a dynalite of its own, and the jobs as a worker that has just started loads them. */
export const setup = async ({ embedded }: { readonly embedded: boolean }) => {
  const server = dynalite({ createTableMs: 0 }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const endpoint = `http://127.0.0.1:${port}`;
  vi.stubEnv("AWS_ENDPOINT_URL_DYNAMODB", endpoint);
  vi.stubEnv("AWS_REGION", "us-east-1");
  vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
  vi.stubEnv("BELFRY_EMBEDDED", embedded ? "1" : undefined);

  const db = new DynamoDBClient({ endpoint, region: "us-east-1" });

  /** Another worker: it shares the table and nothing else. */
  const loadWorker = async () => {
    vi.resetModules();
    const { default: cleanJob } = await import("../../../jobs/clean-sessions.ts");
    const { default: digestJob } = await import("../../../jobs/daily-digest.ts");
    const { default: remindersJob } = await import("../../../jobs/send-reminders.ts");
    const { default: linksJob } = await import("../../../jobs/check-links.ts");
    const { default: indexJob } = await import("../../../jobs/rebuild-index.ts");
    const { openNotesStore } = await import("../../../jobs/store/notes-store.ts");
    const { openOutbox } = await import("../../../jobs/store/outbox.ts");
    const { openLinks } = await import("../../../jobs/store/links.ts");
    return {
      cleanSessions: resultOf(cleanJob),
      dailyDigest: resultOf(digestJob),
      cleanJob,
      digestJob,
      remindersJob,
      linksJob,
      indexJob,
      openNotesStore,
      openOutbox,
      openLinks,
    };
  };

  return {
    loadWorker,
    tables: async () => (await db.send(new ListTablesCommand({}))).TableNames,
    itemsOf: async (pk: string) => {
      const query = new QueryCommand({
        TableName: "notes-demo",
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: marshall({ ":pk": pk }),
      });
      return ((await db.send(query)).Items ?? []).map((item) => unmarshall(item));
    },
    put: async (item: { readonly pk: string; readonly sk: string; readonly [name: string]: unknown }) => {
      await db.send(new PutItemCommand({ TableName: "notes-demo", Item: marshall(item) }));
    },
    remove: async (key: { readonly pk: string; readonly sk: string }) => {
      await db.send(new DeleteItemCommand({ TableName: "notes-demo", Key: marshall(key) }));
    },
    [Symbol.asyncDispose]: async () => {
      vi.unstubAllEnvs();
      db.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};
