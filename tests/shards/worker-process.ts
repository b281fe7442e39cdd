/** One worker of the stack, with its event source mapping; it tells its driver what it has asked of table and queue. */
import { makeClients, sqsSource } from "../../cli/dev/clients.ts";
import { startMapping } from "../../cli/dev/event-source-mapping.ts";
import { poolQueue, queueArn, REGION } from "../../cli/dev/resources.ts";
import { systemClock as clock, systemTimers as timers } from "../../lib/adapters/system/system.ts";
import type { StackConfig } from "../../lib/compose/config.ts";
import { workerFunction } from "../../lib/compose/functions.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { type Counts, counting } from "./counted.ts";

export interface WorkerOrders {
  readonly config: StackConfig;
  readonly manifest: Manifest;
  readonly endpoints: { readonly dynamodb: string; readonly sqs: string };
  readonly jobsFile: string;
  readonly queue: string;
}

const begin = async ({ config, manifest, endpoints, jobsFile, queue }: WorkerOrders): Promise<void> => {
  const { dynamodb: db, sqs } = makeClients(endpoints);
  const counts: Counts = counting({ db, sqs });
  const worker = workerFunction(config, manifest, {
    pool: "default",
    jobsFile,
    isolation: "process",
    clients: { db, sqs },
  });
  await worker.ready();
  startMapping({
    // Lambda's own requests are not ours.
    source: sqsSource(makeClients(endpoints).sqs, queue),
    queueArn: queueArn(poolQueue("default")),
    region: REGION,
    functionName: "worker",
    functionTimeoutMs: 900_000,
    handler: (event) => worker.handler(event, { awsRequestId: "shards" }),
    concurrency: manifest.pools["default"]?.concurrency ?? 1,
    waitSeconds: 1,
    clock,
    timers,
    report: () => undefined,
  });
  process.on("message", () => process.send?.(counts));
  process.send?.("ready");
};

process.on("disconnect", () => process.exit(1));
process.once("message", (orders: WorkerOrders) => void begin(orders));
