import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SQSClient } from "@aws-sdk/client-sqs";
import { dynamoTable } from "../adapters/dynamo/dynamo-table.ts";
import { emfJournal } from "../adapters/log/emf-journal.ts";
import { sqsDeliveries, sqsRunQueue } from "../adapters/sqs/sqs-queues.ts";
import { systemClock, systemRandom, systemTimers } from "../adapters/system/system.ts";
import type { Deps } from "../app/deps.ts";
import type { Manifest } from "../core/jobs/job.ts";
import { jobList } from "../core/jobs/job-list.ts";
import type { Deliveries } from "../ports/run-queue.ts";
import type { StackConfig } from "./config.ts";

export type StackDeps = Deps & { readonly deliveries: Deliveries };

export interface Clients {
  readonly db: DynamoDBClient;
  readonly sqs: SQSClient;
}

/** Nobody changes their middleware after the first call, so it need not be put together for each. */
export const CLIENT_OPTIONS = { cacheMiddleware: true } as const;

/** AWS clients, to be made once per process. */
export const makeClients = ({ region, endpoints }: StackConfig): Clients => {
  const at = (endpoint: string | undefined) => (endpoint === undefined ? {} : { endpoint });
  return {
    db: new DynamoDBClient({ ...CLIENT_OPTIONS, region, ...at(endpoints?.dynamodb) }),
    sqs: new SQSClient({ ...CLIENT_OPTIONS, region, ...at(endpoints?.sqs) }),
  };
};

const ownMetricsOf = ({ jobs }: Manifest): ReadonlySet<string> =>
  new Set(jobs.filter(({ ownAlarms }) => ownAlarms).map(({ name }) => name));

/** The ports, met by their adapters. */
export const composeDeps = (
  config: StackConfig,
  manifest: Manifest,
  { db, sqs }: Clients = makeClients(config),
): StackDeps => {
  const { service, stage, tableName, queueUrls, leaseMs, clockBoundMs, firstLookMs, longestAlertWaitMs } =
    config;
  return {
    table: dynamoTable(db, tableName),
    queue: sqsRunQueue(sqs, queueUrls),
    deliveries: sqsDeliveries(sqs),
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    journal: emfJournal(systemClock, { service, stage, ownMetrics: ownMetricsOf(manifest) }),
    timings: { leaseMs, clockBoundMs, firstLookMs, longestAlertWaitMs },
    jobs: jobList(manifest, stage),
  };
};

/** SQS tells a record's queue by its ARN, and takes a URL: both end in the queue's name. */
export const queueUrlFinder = (urls: readonly string[]) => {
  const lastPart = (text: string, separator: string): string => text.slice(text.lastIndexOf(separator) + 1);
  const byName = new Map(urls.map((url) => [lastPart(url, "/"), url]));
  return (queueArn: string): string | undefined => byName.get(lastPart(queueArn, ":"));
};
