import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { bundleFunctions, ESM_BUNDLE, FUNCTION_PLUGINS } from "../../infra/artifacts.ts";
import { definition } from "../../tests/support/definitions.ts";
import { manifestOf } from "../../tests/support/embedded-services.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What an author would write by hand: clients and commands, and nothing around them. */
const BARE = {
  dynamodb: `import { DynamoDBClient, BatchGetItemCommand, GetItemCommand, QueryCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
export const db = new DynamoDBClient({});
export const used = [BatchGetItemCommand, GetItemCommand, QueryCommand, UpdateItemCommand, marshall, unmarshall];`,
  sqs: `import { SQSClient, ChangeMessageVisibilityCommand, SendMessageBatchCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
export const sqs = new SQSClient({});
export const usedOfSqs = [ChangeMessageVisibilityCommand, SendMessageBatchCommand, SendMessageCommand];`,
  cloudwatch: `import { CloudWatchClient, SetAlarmStateCommand } from "@aws-sdk/client-cloudwatch";
export const cloudwatch = new CloudWatchClient({});
export const usedOfCloudwatch = [SetAlarmStateCommand];`,
  sns: `import { SNSClient, PublishCommand } from "@aws-sdk/client-sns";
export const sns = new SNSClient({});
export const usedOfSns = [PublishCommand];`,
} as const;

/** Powertools idempotency, batch and middy as their own pages put them together, in a worker that claims in a table. */
const POWERTOOLS = `import middy from "@middy/core";
import { BatchProcessor, EventType, processPartialResponse } from "@aws-lambda-powertools/batch";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { SQSClient, SendMessageCommand } from "@aws-sdk/client-sqs";
export const sqs = new SQSClient({});
export const used = [SendMessageCommand];
const persistenceStore = new DynamoDBPersistenceLayer({ tableName: "idempotency" });
const work = makeIdempotent(async (record) => ({ done: record.messageId }), { persistenceStore, config: new IdempotencyConfig({ eventKeyJmesPath: "messageId" }) });
const processor = new BatchProcessor(EventType.SQS);
export const handler = middy((event, context) => processPartialResponse(event, work, processor, { context }));`;

const CLIENTS_OF: { readonly [name: string]: readonly (keyof typeof BARE)[] } = {
  notifier: ["dynamodb", "sqs", "sns"],
  operate: ["dynamodb", "sqs", "cloudwatch"],
};

/** The worker's code up to its thread: config, manifest, clients. */
const WORKER_BEFORE_ITS_THREAD = `import { loadConfig } from "./lib/compose/config.ts";
import { composeDeps } from "./lib/compose/deps.ts";
import { workerFunction } from "./lib/compose/functions.ts";
import { loadManifest } from "./lib/compose/manifest-file.ts";
composeDeps(loadConfig(process.env), loadManifest(new URL("./manifest.json", import.meta.url)));
export const used = workerFunction;`;

/** A thread that says that it is there, as any worker needs one that can stop a handler which blocks. */
const BARE_THREAD = `import { Worker } from "node:worker_threads";
const worker = new Worker('require("node:worker_threads").parentPort.postMessage("ready")', { eval: true });
await new Promise((resolve) => worker.once("message", resolve));`;

/** The clients that a function loads, and no line more. */
const bareText = (name: string): string =>
  (CLIENTS_OF[name] ?? ["dynamodb", "sqs"]).map((client) => BARE[client]).join("\n");

/** An entry's text as one file, by the options of our own functions. */
const bundleText = async (contents: string, plugins: readonly esbuild.Plugin[] = []): Promise<string> => {
  const { outputFiles } = await esbuild.build({
    ...ESM_BUNDLE,
    stdin: { contents, resolveDir: ROOT, sourcefile: "entry.mjs" },
    plugins: [...plugins],
  });
  return outputFiles[0]?.text ?? "";
};

const NO_JOBS = "export default {};\n";

/** The functions as they would lie in their zips, and beside them what they are compared with. */
export const writeBundles = async () => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-bench-"));
  const own = await bundleFunctions();
  const texts = new Map(own);
  for (const name of ["worker", "notifier", "operate"])
    texts.set(`bare-${name}.mjs`, await bundleText(bareText(name)));
  texts.set("bare-thread.mjs", await bundleText(`${bareText("worker")}\n${BARE_THREAD}`));
  texts.set("worker-alone.mjs", await bundleText(WORKER_BEFORE_ITS_THREAD, FUNCTION_PLUGINS));
  texts.set("powertools.mjs", await bundleText(POWERTOOLS));
  texts.set("jobs.mjs", NO_JOBS);
  texts.set("manifest.json", JSON.stringify(manifestOf(definition({ name: "daily" }))));
  await Promise.all([...texts].map(([file, text]) => writeFile(join(folder, file), text)));
  return {
    folder,
    texts,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
};
