import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { makeClients } from "../../cli/dev/clients.ts";
import { ManagedChild } from "../../cli/dev/managed-child.ts";
import type { EmulatorsStart } from "../../cli/dev/messages.ts";
import { freePorts } from "../../cli/dev/network-port.ts";
import { ensureQueues, ensureTable } from "../../cli/dev/provision.ts";
import { poolQueue, queueSpecs, queueUrl, TABLE_NAME } from "../../cli/dev/resources.ts";
import { stackConfig } from "../../cli/dev/stack-config.ts";
import { dynamoTable } from "../../lib/adapters/dynamo/dynamo-table.ts";
import { systemTimers } from "../../lib/adapters/system/system.ts";
import type { StackConfig } from "../../lib/compose/config.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { AWS_TIMINGS } from "../../lib/core/settings.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { definition } from "../support/definitions.ts";
import { manifestOf } from "../support/embedded-services.ts";

export const JOB = "wide";

/** Of what happened outside: each keyed effect, and how often it was asked for. */
const startWitness = async () => {
  const asked = new Map<string, number>();
  const listeners = new Set<(key: string) => void>();
  const server = createServer((request, response) => {
    const key = new URL(request.url ?? "/", "http://witness").searchParams.get("key") ?? "";
    asked.set(key, (asked.get(key) ?? 0) + 1);
    for (const listener of listeners) listener(key);
    response.end("ok");
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked,
    listen: (listener: (key: string) => void): void => void listeners.add(listener),
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
};

/** The job's code. With effects each part does one, which the witness counts by its key; without, a shard does nothing. */
const jobText = (count: number, witness: string, effects: boolean): string => `
import { defineJob } from ${JSON.stringify(fileURLToPath(new URL("../../lib/index.ts", import.meta.url)))};
const tell = (key) => fetch(${JSON.stringify(witness)} + "?" + new URLSearchParams({ key }));
export default { ${JOB}: defineJob({
  shards: async function* () {
    for (let n = 0; n < ${count}; n++) {
      ${effects ? `if (n === ${count} >> 1) await tell("list");` : ""}
      yield { key: "customer-" + n, input: { customer: n } };
    }
  },
  handler: ${effects ? "async ({ once, idempotencyKey }) => { await once('effect', () => tell(idempotencyKey('effect'))); }" : "async () => undefined"},
  join: async ({ shards${effects ? ", idempotencyKey" : ""} }) => {
    ${effects ? "await tell(idempotencyKey('join'));" : ""}
    return shards;
  },
}) };
`;

export interface ShardStackOptions {
  readonly count: number;
  /** Short leases and visibilities, so that a killed process is made up for soon; and effects to be counted. */
  readonly kills: boolean;
  /** The job's code lists the shards; else they go by number. */
  readonly listed: boolean;
  readonly concurrency: number;
}

/** The embedded stack's stores, as processes of their own, and a job that lists its shards. */
export const makeShardStack = async ({ count, kills, listed, concurrency }: ShardStackOptions) => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-shards-"));
  const [dynamodbPort = 0, sqsPort = 0] = await freePorts(2);
  const emulators = new ManagedChild<EmulatorsStart>({
    name: "the emulator process",
    entry: new URL("../../cli/dev/emulators.ts", import.meta.url),
    environment: process.env,
    start: async () => ({ start: { folder, dynamodbPort, sqsPort } }),
    timers: systemTimers,
    report: (line) => console.error(line),
    output: () => undefined,
  });
  await emulators.begin();
  const witness = await startWitness();
  const endpoints = {
    dynamodb: `http://127.0.0.1:${dynamodbPort}`,
    sqs: `http://127.0.0.1:${sqsPort}`,
  };
  const job = definition({
    name: JOB,
    overlap: "allow",
    input: {},
    timeoutMs: kills ? 20 * SECOND_MS : 10 * MINUTE_MS,
    retry: { ...definition({ name: "x" }).retry, retries: 5, ladderMs: [SECOND_MS], crashes: 100 },
    shards: { joins: true, ...(listed ? {} : { count }) },
  });
  const base = manifestOf(job);
  const manifest: Manifest = { ...base, pools: { default: { memoryMb: 256, concurrency } } };
  // A measured run is not to lose its lease because the machine is busy.
  const timings = kills
    ? { leaseMs: 10 * SECOND_MS, clockBoundMs: SECOND_MS, firstLookMs: 3 * SECOND_MS }
    : AWS_TIMINGS;
  const config: StackConfig = { ...stackConfig(endpoints, manifest), ...timings };
  const clients = makeClients(endpoints);
  await ensureTable(clients.dynamodb);
  await ensureQueues(clients.sqs, endpoints.sqs, queueSpecs(manifest));
  const queue = queueUrl(endpoints.sqs, poolQueue("default"));
  if (kills) {
    const Attributes = { VisibilityTimeout: "15" };
    await clients.sqs.send(new SetQueueAttributesCommand({ QueueUrl: queue, Attributes }));
  }
  const jobsFile = join(folder, "jobs.mjs");
  await writeFile(jobsFile, jobText(count, witness.url, kills));
  return {
    job,
    manifest,
    config,
    endpoints,
    jobsFile,
    witness,
    queue,
    sqs: clients.sqs,
    db: clients.dynamodb,
    table: dynamoTable(clients.dynamodb, TABLE_NAME),
    close: async (): Promise<void> => {
      witness.close();
      clients.sqs.destroy();
      clients.dynamodb.destroy();
      await emulators.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

export type ShardStack = Awaited<ReturnType<typeof makeShardStack>>;
