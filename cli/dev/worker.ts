import { localNeeds } from "../../lib/adapters/secrets/local-needs.ts";
import { systemClock, systemTimers } from "../../lib/adapters/system/system.ts";
import { workerFunction } from "../../lib/compose/functions.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { needsOfPool } from "../../lib/core/jobs/job-needs.ts";
import { type Host, type Running, runChild } from "./child.ts";
import { makeClients, sqsSource } from "./clients.ts";
import { countingErrors } from "./counting-errors.ts";
import { startMapping } from "./event-source-mapping.ts";
import { readDotenv } from "./local-secrets.ts";
import type { WorkerStart } from "./messages.ts";
import { ensureQueues } from "./provision.ts";
import {
  functionName,
  functionTimeoutMs,
  poolQueue,
  poolQueues,
  queueArn,
  queueUrl,
  REGION,
  STAGE,
} from "./resources.ts";
import { readManifest, stackConfig } from "./stack-config.ts";

/**
 * Of the receive that a stop waits for. Short, too, because an emulator hands a message to a poller that has just
 * been killed as long as its poll lasts, and that message then waits for its visibility.
 */
const POLL_SECONDS = 1;

/** What a deployment takes from its template and from AWS's stores of secrets comes from the shell and `.env` here. */
const adoptNeeds = ({ jobs }: Manifest, pool: string, host: Host): void => {
  const { variables, missing } = localNeeds(needsOfPool(jobs, pool), readDotenv(), process.env, STAGE);
  Object.assign(process.env, variables);
  for (const name of missing)
    host.note(`the secret ${name} is neither in .env nor in the environment; handlers find it unset`);
};

/** One pool's worker function and its event source mapping, as one process. */
const begin = async ({ endpoints, build, pool }: WorkerStart, host: Host): Promise<Running> => {
  const manifest = readManifest(build.manifestFile);
  adoptNeeds(manifest, pool, host);
  const worker = workerFunction(stackConfig(endpoints, manifest), manifest, {
    pool,
    jobsFile: build.jobsFile,
    isolation: "process",
  });
  const { sqs } = makeClients(endpoints);
  await Promise.all([
    worker.ready(),
    // Not left to control: a worker of a new build begins before control goes over to that build.
    ensureQueues(sqs, endpoints.sqs, poolQueues(manifest, pool)),
  ]);
  const queue = poolQueue(pool);
  const mapping = startMapping({
    source: sqsSource(sqs, queueUrl(endpoints.sqs, queue)),
    queueArn: queueArn(queue),
    region: REGION,
    functionName: functionName(`worker-${pool}`),
    functionTimeoutMs: functionTimeoutMs(manifest, pool),
    handler: countingErrors({ kind: "worker", pool }, host, worker.handler),
    concurrency: manifest.pools[pool]?.concurrency ?? 1,
    waitSeconds: POLL_SECONDS,
    clock: systemClock,
    timers: systemTimers,
    report: host.note,
  });
  return {
    stop: async () => {
      await mapping.stop();
      await worker.close();
    },
  };
};

runChild(begin);
