import { once } from "node:events";
import type { Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { DeleteItemCommand, DynamoDBClient, ListTablesCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { Job, JobContext } from "belfry";
import { vi } from "vitest";

type Dynalite = (options: { createTableMs: number }) => Server;
const dynalite = createRequire(import.meta.url)("dynalite") as Dynalite;

export const DAY_MS = 86_400_000;

const contextOf = (slot: Date): JobContext => ({
  input: null,
  slot,
  attempt: 1,
  runId: "notes~test",
  job: "notes",
  trigger: "schedule",
  signal: new AbortController().signal,
  remaining: () => 60_000,
  log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  idempotencyKey: (suffix = "") => `notes~test${suffix}`,
  previous: async () => undefined,
  progress: () => undefined,
  checkpoint: { load: async () => undefined, save: async () => undefined },
  once: async (_key, act) => act(),
  skip: () => {
    throw new Error("not expected");
  },
  cancel: () => {
    throw new Error("not expected");
  },
  snooze: () => {
    throw new Error("not expected");
  },
  continueLater: () => {
    throw new Error("not expected");
  },
});

const handlerOf = (job: Job): ((context: JobContext) => Promise<unknown>) => {
  const { handler } = job.options as { handler?: (context: JobContext) => Promise<unknown> };
  if (handler === undefined) throw new Error("the job has no handler");
  return handler;
};

/** A new store over a dynalite of its own, and the two jobs as a worker that has just started loads them. */
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
    const cleanSessions = handlerOf((await import("../../../jobs/clean-sessions.ts")).default);
    const dailyDigest = handlerOf((await import("../../../jobs/daily-digest.ts")).default);
    const { openNotesStore } = await import("../../../jobs/store/notes-store.ts");
    return {
      cleanSessions: (slot: Date) => cleanSessions(contextOf(slot)),
      dailyDigest: (slot: Date) => dailyDigest(contextOf(slot)),
      openNotesStore,
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
