import type { Manifest } from "../../lib/core/jobs/job.ts";
import { functionTimeoutMs as timeoutOfPool } from "../../lib/core/jobs/pool.ts";
import { maxReceiveCount } from "../../lib/core/jobs/retry.ts";
import { EMBEDDED_ALARM_MINUTE_MS } from "../../lib/core/settings.ts";
import { DAY_MS, SECOND_MS } from "../../lib/core/time.ts";

/** The deployment that runs on a laptop. */
export const SERVICE = "belfry";
export const STAGE = "dev";
export const REGION = "us-east-1";
/** The account that both emulators, and those one attaches to, put into ARNs. */
export const ACCOUNT_ID = "000000000000";
export const TABLE_NAME = `belfry-${STAGE}`;
export const ALARMS_QUEUE = `belfry-${STAGE}_alarms`;
export const DISPATCH_FAILURES = `belfry-${STAGE}_dispatch-failures`;

const RETENTION_SECONDS = (14 * DAY_MS) / SECOND_MS;

export const poolQueue = (pool: string): string => `belfry-${STAGE}-${pool}`;
// Names of pools have no underscore, so no pool's queue can have the name of another's dead letters.
export const deadLetterQueue = (pool: string): string => `belfry-${STAGE}-${pool}_dead`;
export const functionName = (name: string): string => `belfry-${STAGE}-${name}`;
export const functionArn = (name: string): string =>
  `arn:aws:lambda:${REGION}:${ACCOUNT_ID}:function:${functionName(name)}`;
export const queueUrl = (endpoint: string, queue: string): string => `${endpoint}/${ACCOUNT_ID}/${queue}`;
export const queueArn = (queue: string): string => `arn:aws:sqs:${REGION}:${ACCOUNT_ID}:${queue}`;

/** The function's time-out of a pool, as deployed. */
export const functionTimeoutMs = ({ jobs }: Manifest, pool: string): number => timeoutOfPool(jobs, pool);

export interface QueueSpec {
  readonly name: string;
  readonly attributes: { readonly [name: string]: string };
}

/** A pool's dead-letter queue, then the queue that names it. */
export const poolQueues = (manifest: Manifest, pool: string): readonly QueueSpec[] => {
  const dead = deadLetterQueue(pool);
  // AWS's own rule: six times the function's time-out, so that no running message comes back.
  const visibilitySeconds = Math.ceil((6 * functionTimeoutMs(manifest, pool)) / SECOND_MS);
  return [
    {
      name: dead,
      attributes: { VisibilityTimeout: "60", MessageRetentionPeriod: String(RETENTION_SECONDS) },
    },
    {
      name: poolQueue(pool),
      attributes: {
        VisibilityTimeout: String(visibilitySeconds),
        MessageRetentionPeriod: String(RETENTION_SECONDS),
        RedrivePolicy: JSON.stringify({
          deadLetterTargetArn: queueArn(dead),
          maxReceiveCount: maxReceiveCount(manifest.jobs.filter((job) => job.pool === pool)),
        }),
      },
    },
  ];
};

/** All queues that a manifest needs, dead-letter queues before those that name them. */
export const queueSpecs = (manifest: Manifest): readonly QueueSpec[] => [
  {
    name: DISPATCH_FAILURES,
    attributes: { VisibilityTimeout: "60", MessageRetentionPeriod: String(RETENTION_SECONDS) },
  },
  {
    name: ALARMS_QUEUE,
    // In the alarms' own minutes, as all that is told of them here.
    attributes: {
      VisibilityTimeout: String(EMBEDDED_ALARM_MINUTE_MS / SECOND_MS),
      MessageRetentionPeriod: String(RETENTION_SECONDS),
    },
  },
  ...Object.keys(manifest.pools).flatMap((pool) => poolQueues(manifest, pool)),
];
