import type { JobDefinition } from "../lib/core/jobs/job.ts";
import { functionTimeoutMs } from "../lib/core/jobs/pool.ts";
import { maxReceiveCount } from "../lib/core/jobs/retry.ts";
import { DAY_MS, SECOND_MS } from "../lib/core/time.ts";
import { arnHere, getArn, policyDocument, type Resource, type Resources, ref } from "./cloudformation.ts";
import {
  type Deployment,
  deadLetterQueueName,
  dispatchFailuresName,
  logicalId,
  poolQueueName,
} from "./naming.ts";

export const poolQueueId = (pool: string): string => logicalId("pool", pool, "queue");
export const deadLetterQueueId = (pool: string): string => logicalId("pool", pool, "deadLetters");
export const DISPATCH_FAILURES = "BelfryDispatchFailures";

/** Of the function that empties the dead-letter queues. */
export const DEAD_LETTERS_TIMEOUT_SECONDS = 60;

/** AWS's own rule, so that no message comes back while it is worked on. */
const visibilitySeconds = (functionSeconds: number): number => 6 * functionSeconds;

/** The longest that SQS keeps a message; a dead letter keeps the age that it had. */
const RETENTION_SECONDS = (14 * DAY_MS) / SECOND_MS;

/** In seconds; CloudFormation takes whole ones. */
export const poolTimeoutSeconds = (jobs: readonly JobDefinition[], pool: string): number =>
  Math.ceil(functionTimeoutMs(jobs, pool) / SECOND_MS);

export const queue = (
  QueueName: string,
  VisibilityTimeout: number,
  rest: Resource["Properties"] = {},
): Resource => ({
  Type: "AWS::SQS::Queue",
  Properties: {
    QueueName,
    VisibilityTimeout,
    MessageRetentionPeriod: RETENTION_SECONDS,
    SqsManagedSseEnabled: true,
    ...rest,
  },
});

/** Refuses every call that is not encrypted on its way. @param more of the queue's one policy */
export const tlsOnly = (queueId: string, more: Parameters<typeof policyDocument>[0] = []): Resources => ({
  [`${queueId}Policy`]: {
    Type: "AWS::SQS::QueuePolicy",
    Properties: {
      Queues: [ref(queueId)],
      PolicyDocument: policyDocument([
        {
          Effect: "Deny",
          Principal: "*",
          Action: ["sqs:*"],
          Resource: [getArn(queueId)],
          Condition: { Bool: { "aws:SecureTransport": "false" } },
        },
        ...more,
      ]),
    },
  },
});

const poolQueues = (deployment: Deployment, jobs: readonly JobDefinition[], pool: string): Resources => {
  const [queueId, deadId] = [poolQueueId(pool), deadLetterQueueId(pool)];
  const queueName = poolQueueName(deployment, pool);
  return {
    [queueId]: queue(queueName, visibilitySeconds(poolTimeoutSeconds(jobs, pool)), {
      RedrivePolicy: {
        deadLetterTargetArn: getArn(deadId),
        maxReceiveCount: maxReceiveCount(jobs.filter((job) => job.pool === pool)),
      },
    }),
    [deadId]: queue(deadLetterQueueName(deployment, pool), visibilitySeconds(DEAD_LETTERS_TIMEOUT_SECONDS), {
      RedriveAllowPolicy: {
        redrivePermission: "byQueue",
        // By name: a reference would be a circle.
        sourceQueueArns: [arnHere("sqs", queueName)],
      },
    }),
    ...tlsOnly(queueId),
    ...tlsOnly(deadId),
  };
};

/** A queue with its dead letters for each pool, and one for events that no dispatcher could take. */
export const queueResources = (
  deployment: Deployment,
  jobs: readonly JobDefinition[],
  pools: readonly string[],
): Resources => ({
  ...Object.assign({}, ...pools.map((pool) => poolQueues(deployment, jobs, pool))),
  [DISPATCH_FAILURES]: queue(
    dispatchFailuresName(deployment),
    visibilitySeconds(DEAD_LETTERS_TIMEOUT_SECONDS),
  ),
  ...tlsOnly(DISPATCH_FAILURES),
});
