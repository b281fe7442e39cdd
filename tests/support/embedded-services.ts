import { CreateQueueCommand, SQSClient } from "@aws-sdk/client-sqs";
import { startFauxqs } from "fauxqs";
import type { StackConfig } from "../../lib/compose/config.ts";
import type { JobDefinition, Manifest } from "../../lib/core/jobs/job.ts";
import { jobList } from "../../lib/core/jobs/job-list.ts";
import { EMBEDDED_TIMINGS } from "../../lib/core/settings.ts";
import { embeddedTable, TEST_CREDENTIALS } from "./embedded-table.ts";

/** The manifest of these jobs, as a build would make it. */
export const manifestOf = (...jobs: readonly JobDefinition[]): Manifest => ({
  version: 1,
  hash: JSON.stringify(jobs),
  stages: ["dev"],
  pools: { default: { memoryMb: 256, concurrency: 2 } },
  jobs,
});

/** DynamoDB and SQS over their wire protocols, in this process, and a deployment's config that points at them. */
export const embeddedServices = async () => {
  const table = await embeddedTable();
  const queues = await startFauxqs({ port: 0, logger: false });
  const endpoint = `http://127.0.0.1:${queues.port}`;
  const sqs = new SQSClient({ endpoint, region: "us-east-1", credentials: TEST_CREDENTIALS });
  const makeQueue = async (QueueName: string): Promise<string> => {
    await sqs.send(new CreateQueueCommand({ QueueName, Attributes: { VisibilityTimeout: "60" } }));
    return `${endpoint}/000000000000/${QueueName}`;
  };
  const config: StackConfig = {
    ...EMBEDDED_TIMINGS,
    service: "belfry",
    stage: "dev",
    region: "us-east-1",
    tableName: table.tableName,
    queueUrls: { default: await makeQueue("belfry-default") },
    deadLetterUrls: { default: await makeQueue("belfry-default-dead") },
    dispatchFailuresUrl: await makeQueue("belfry-dispatch-failures"),
    endpoints: { dynamodb: table.endpoint, sqs: endpoint },
  };
  return {
    db: table.db,
    sqs,
    config,
    makeQueue,
    jobs: (manifest: Manifest) => jobList(manifest, config.stage),
    close: async (): Promise<void> => {
      sqs.destroy();
      await Promise.all([queues.stop(), table.close()]);
    },
  };
};

export type EmbeddedServices = Awaited<ReturnType<typeof embeddedServices>>;
