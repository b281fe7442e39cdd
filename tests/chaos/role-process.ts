/** One process of the deployment under chaos: a dispatcher, a worker, the watchdog or the dead-letters function. */
import { flushCompileCache } from "node:module";
import { makeClients, sqsSource } from "../../cli/dev/clients.ts";
import { startMapping } from "../../cli/dev/event-source-mapping.ts";
import {
  DISPATCH_FAILURES,
  deadLetterQueue,
  poolQueue,
  queueArn,
  queueUrl,
  REGION,
} from "../../cli/dev/resources.ts";
import { systemClock as clock, systemTimers as timers } from "../../lib/adapters/system/system.ts";
import type { StackConfig } from "../../lib/compose/config.ts";
import {
  deadLettersFunction,
  dispatcherFunction,
  watchdogFunction,
  workerFunction,
} from "../../lib/compose/functions.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import type { SqsHandler } from "../../lib/inbound/sqs.ts";

export type Role = "dispatcher" | "worker" | "watchdog" | "dead-letters";

export interface Orders {
  readonly role: Role;
  readonly config: StackConfig;
  readonly manifest: Manifest;
  readonly endpoints: { readonly dynamodb: string; readonly sqs: string };
  readonly jobsFile: string;
}

export interface DispatchOrder {
  readonly event: unknown;
  readonly requestId: string;
}

export type Word =
  | { readonly kind: "ready" }
  /** Its loop stood still for so long: what it should have stopped meanwhile it could not. */
  | { readonly kind: "slept"; readonly ms: number }
  | { readonly kind: "dispatched"; readonly requestId: string; readonly error?: string };

const say = (word: Word): void => {
  if (process.connected) process.send?.(word);
};

const WATCH_EVERY_MS = 1_000;
const POLL_SECONDS = 1;
const BEAT_MS = 100;
const SLEPT_MS = 700;

const tellSleep = (): void => {
  let lastMs = Date.now();
  setInterval(() => {
    const nowMs = Date.now();
    if (nowMs - lastMs > SLEPT_MS) say({ kind: "slept", ms: nowMs - lastMs });
    lastMs = nowMs;
  }, BEAT_MS);
};

const poll = ({ endpoints }: Orders, queue: string, handler: SqsHandler, concurrency: number): void => {
  startMapping({
    source: sqsSource(makeClients(endpoints).sqs, queueUrl(endpoints.sqs, queue)),
    queueArn: queueArn(queue),
    region: REGION,
    functionName: queue,
    functionTimeoutMs: 30_000,
    handler,
    concurrency,
    waitSeconds: POLL_SECONDS,
    clock,
    timers,
    report: () => undefined,
  });
};

const beWorker = async (orders: Orders): Promise<void> => {
  const { config, manifest, jobsFile } = orders;
  const [pool = "default"] = Object.keys(manifest.pools);
  const worker = workerFunction(config, manifest, { pool, jobsFile });
  await worker.ready();
  tellSleep();
  const handler: SqsHandler = (event) => worker.handler(event, { awsRequestId: "chaos" });
  poll(orders, poolQueue(pool), handler, manifest.pools[pool]?.concurrency ?? 1);
};

const beDispatcher = ({ config, manifest }: Orders): void => {
  const dispatcher = dispatcherFunction(config, manifest);
  process.on("message", ({ event, requestId }: DispatchOrder) => {
    dispatcher(event, { awsRequestId: requestId }).then(
      () => say({ kind: "dispatched", requestId }),
      (error: unknown) => say({ kind: "dispatched", requestId, error: String(error) }),
    );
  });
};

const beWatchdog = async ({ config, manifest }: Orders): Promise<void> => {
  const watchdog = watchdogFunction(config, manifest);
  const pass = (): Promise<void> => watchdog({}, { awsRequestId: "chaos" }).catch(() => undefined);
  await pass();
  const again = (): void => {
    setTimeout(() => void pass().then(again), WATCH_EVERY_MS);
  };
  again();
};

const beDeadLetters = (orders: Orders): void => {
  const handle = deadLettersFunction(orders.config, orders.manifest);
  const handler: SqsHandler = (event) => handle(event, { awsRequestId: "chaos" });
  const queues = [DISPATCH_FAILURES, ...Object.keys(orders.manifest.pools).map(deadLetterQueue)];
  for (const queue of queues) poll(orders, queue, handler, 1);
};

const begin: { readonly [role in Role]: (orders: Orders) => void | Promise<void> } = {
  dispatcher: beDispatcher,
  worker: beWorker,
  watchdog: beWatchdog,
  "dead-letters": beDeadLetters,
};

// The driver is gone: so are we.
process.on("disconnect", () => process.exit(1));
process.once("message", async (orders: Orders) => {
  await begin[orders.role](orders);
  say({ kind: "ready" });
  // Now, for this process will be killed: the next one should start faster.
  flushCompileCache();
});
