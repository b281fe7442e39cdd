import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GetQueueAttributesCommand, SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { startFauxqs } from "fauxqs";
import { makeClients } from "../../cli/dev/clients.ts";
import { ensureQueues, ensureTable } from "../../cli/dev/provision.ts";
import {
  DISPATCH_FAILURES,
  deadLetterQueue,
  poolQueue,
  queueArn,
  queueSpecs,
  queueUrl,
  TABLE_NAME,
} from "../../cli/dev/resources.ts";
import { stackConfig } from "../../cli/dev/stack-config.ts";
import { dynamoTable } from "../../lib/adapters/dynamo/dynamo-table.ts";
import type { StackConfig } from "../../lib/compose/config.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { SECOND_MS } from "../../lib/core/time.ts";
import { manifestOf } from "../support/embedded-services.ts";
import { embeddedTable } from "../support/embedded-table.ts";
import { jobsFile } from "../support/jobs-file.ts";
import { chaosHandlers, chaosJobs } from "./chaos-jobs.ts";
import { type ProxyFaults, startFaultProxy } from "./fault-proxy.ts";
import { startWitness } from "./witness.ts";

/** Short enough that a killed run goes on soon; long enough that a busy machine keeps its leases. */
const TIMINGS = { leaseMs: 4 * SECOND_MS, clockBoundMs: SECOND_MS, firstLookMs: 3 * SECOND_MS };
const VISIBILITY_SECONDS = 6;
/** Few, so that the innocent meet the dead-letters function, too. */
const MAX_RECEIVES = 4;
const CONCURRENCY = 4;

const FAULTS: { readonly [service in "dynamodb" | "sqs"]: ProxyFaults } = {
  dynamodb: { "drop-before": 0.02, "drop-answer": 0.04, delay: 0.05, throttle: 0.02 },
  sqs: { "drop-before": 0.02, "drop-answer": 0.04, delay: 0.05, throttle: 0.02 },
};
const DELAY_MS = 400;

export interface ChaosStackOptions {
  readonly seed: number;
  /** The jobs' schedules end there: all their slots lie in the past, and the driver delivers them. */
  readonly endsAtMs: number;
}

/** The embedded services behind two proxies that fail, the jobs, and the system outside that the jobs act upon. */
export const makeChaosStack = async ({ seed, endsAtMs }: ChaosStackOptions) => {
  const table = await embeddedTable(TABLE_NAME);
  const queues = await startFauxqs({ port: 0, logger: false });
  const direct = { dynamodb: table.endpoint, sqs: `http://127.0.0.1:${queues.port}` };
  const proxyOf = (service: "dynamodb" | "sqs", itsSeed: number) =>
    startFaultProxy({
      target: direct[service],
      service,
      seed: itsSeed,
      faults: FAULTS[service],
      delayMs: DELAY_MS,
    });
  const proxies = [await proxyOf("dynamodb", seed), await proxyOf("sqs", seed + 1)] as const;
  const endpoints = { dynamodb: proxies[0].endpoint, sqs: proxies[1].endpoint };
  const witness = await startWitness();
  const jobs = chaosJobs(endsAtMs);
  const base = manifestOf(...jobs);
  const manifest: Manifest = { ...base, pools: { default: { memoryMb: 256, concurrency: CONCURRENCY } } };
  const config: StackConfig = { ...stackConfig(endpoints, manifest), ...TIMINGS };
  const clients = makeClients(direct);
  await ensureTable(clients.dynamodb);
  await ensureQueues(clients.sqs, direct.sqs, queueSpecs(manifest));
  const urlOf = (queue: string): string => queueUrl(direct.sqs, queue);
  const soon = async (queue: string, attributes: Record<string, string>): Promise<void> => {
    const Attributes = { VisibilityTimeout: String(VISIBILITY_SECONDS), ...attributes };
    await clients.sqs.send(new SetQueueAttributesCommand({ QueueUrl: urlOf(queue), Attributes }));
  };
  const redrive = {
    deadLetterTargetArn: queueArn(deadLetterQueue("default")),
    maxReceiveCount: MAX_RECEIVES,
  };
  await soon(poolQueue("default"), { RedrivePolicy: JSON.stringify(redrive) });
  await soon(deadLetterQueue("default"), {});
  const cacheFolder = await mkdtemp(join(tmpdir(), "belfry-chaos-"));
  const file = await jobsFile(chaosHandlers(witness.url));

  /** Messages in all queues, hidden ones too. */
  const messagesLeft = async (): Promise<number> => {
    const names = [poolQueue("default"), deadLetterQueue("default"), DISPATCH_FAILURES];
    const counts = await Promise.all(
      names.map(async (name) => {
        const { Attributes = {} } = await clients.sqs.send(
          new GetQueueAttributesCommand({ QueueUrl: urlOf(name), AttributeNames: ["All"] }),
        );
        return ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"].reduce(
          (sum, attribute) => sum + Number(Attributes[attribute as keyof typeof Attributes] ?? 0),
          0,
        );
      }),
    );
    return counts.reduce((sum, one) => sum + one, 0);
  };

  return {
    jobs,
    manifest,
    config,
    endpoints,
    jobsFile: file,
    cacheFolder,
    proxies,
    witness,
    /** Past the proxies: what is really there. */
    table: dynamoTable(table.db, TABLE_NAME),
    messagesLeft,
    close: async (): Promise<void> => {
      for (const proxy of proxies) proxy.close();
      witness.close();
      clients.sqs.destroy();
      clients.dynamodb.destroy();
      await Promise.all([queues.stop(), table.close()]);
      await rm(cacheFolder, { recursive: true, force: true });
    },
  };
};

export type ChaosStack = Awaited<ReturnType<typeof makeChaosStack>>;
