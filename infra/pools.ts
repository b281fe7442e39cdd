import type { Manifest, PoolDefinition } from "../lib/core/jobs/job.ts";
import { getArn, type Resource, type Resources, ref, type Value } from "./cloudformation.ts";
import { functionKey, functionLogicalId, logicalId } from "./naming.ts";
import { poolQueueId } from "./queues.ts";

/** What a pool decides of its worker function. */
export const workerProperties = (pool: PoolDefinition | undefined): { readonly [name: string]: Value } => ({
  ...(pool === undefined ? {} : { MemorySize: pool.memoryMb }),
  ...(pool?.vpc === undefined
    ? {}
    : { VpcConfig: { SecurityGroupIds: pool.vpc.securityGroups, SubnetIds: pool.vpc.subnets } }),
});

/**
 * A queue feeds its worker one message at a time, as many at once as the pool allows. No concurrency is reserved:
 * that would take it from the account's other functions for ever, and a new account has none to give.
 */
export const poolMappings = ({ pools }: Pick<Manifest, "pools">): Resources =>
  Object.fromEntries(
    Object.entries(pools).map(([pool, { concurrency }]): [string, Resource] => [
      logicalId("pool", pool, "mapping"),
      {
        Type: "AWS::Lambda::EventSourceMapping",
        Properties: {
          EventSourceArn: getArn(poolQueueId(pool)),
          FunctionName: ref(functionLogicalId(functionKey("worker", pool))),
          FunctionResponseTypes: ["ReportBatchItemFailures"],
          BatchSize: 1,
          ScalingConfig: { MaximumConcurrency: concurrency },
        },
      },
    ]),
  );
