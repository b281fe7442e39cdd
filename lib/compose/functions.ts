import { makeThreadAttempts } from "../adapters/thread/thread-attempts.ts";
import type { Route } from "../app/notify/deliver.ts";
import { judgeDeadLetter } from "../app/path/dead-letters.ts";
import { dispatch } from "../app/path/dispatch.ts";
import { work } from "../app/path/work.ts";
import { watch } from "../app/watchdog/watch.ts";
import { alarmName } from "../core/alarms/alarm.ts";
import { alarmsOf } from "../core/alarms/alarms.ts";
import { NO_ALERTS } from "../core/alerts/alert-channels.ts";
import type { Manifest } from "../core/jobs/job.ts";
import { redispatchEach } from "../inbound/dispatch-failures.ts";
import { type NotifierDeps, notifierHandler } from "../inbound/notifier.ts";
import { shell } from "../inbound/shell.ts";
import { type SqsHandler, settleEach } from "../inbound/sqs.ts";
import { deployedRoutes } from "./channels.ts";
import type { StackConfig } from "./config.ts";
import { type Clients, composeDeps, queueUrlFinder } from "./deps.ts";

/** Invoked by the schedules, each event with the slots of one instant. */
export const dispatcherFunction = (config: StackConfig, manifest: Manifest, clients?: Clients) => {
  const deps = composeDeps(config, manifest, clients);
  return shell(deps.journal, async (event: unknown, { awsRequestId }) => {
    await dispatch(deps, event, awsRequestId);
  });
};

export interface WorkerFunctionOptions {
  readonly pool: string;
  /** The bundle of the jobs' handlers. */
  readonly jobsFile: string;
  /** The module that runs in a worker thread, where it does not lie beside its maker (in a bundle). */
  readonly threadFile?: URL;
  readonly clients?: Clients;
  /** `process` where several messages are handled at once; default `thread`. */
  readonly isolation?: "thread" | "process";
}

/** Fed by one pool's queue. Its threads are started before the first message. */
export const workerFunction = (config: StackConfig, manifest: Manifest, options: WorkerFunctionOptions) => {
  const { pool, jobsFile, threadFile, clients, isolation = "thread" } = options;
  const deps = composeDeps(config, manifest, clients);
  const memoryMb = manifest.pools[pool]?.memoryMb;
  const attempts = makeThreadAttempts({
    jobsFile,
    isolation,
    // Lambda starts the function anew; a process that only looks alive would hold the run's lease for ever.
    // Not process.exit, which waits for its threads to end.
    onUnstoppable: () => process.kill(process.pid, "SIGKILL"),
    clock: deps.clock,
    timers: deps.timers,
    ...(threadFile === undefined ? {} : { threadFile }),
    ...(memoryMb === undefined ? {} : { memoryMb }),
  });
  const queueUrlOf = queueUrlFinder(Object.values(config.queueUrls));
  const handler: SqsHandler = settleEach({ ...deps, queueUrlOf }, (message) =>
    work({ ...deps, attempts }, message),
  );
  return {
    handler: shell(deps.journal, handler),
    ready: () => attempts.ready(),
    close: () => attempts.close(),
  };
};

/** Empties the pools' dead-letter queues and the queue of events that no dispatcher could take. */
export const deadLettersFunction = (config: StackConfig, manifest: Manifest) => {
  const deps = composeDeps(config, manifest);
  const queueUrlOf = queueUrlFinder(Object.values(config.deadLetterUrls));
  const ofPools = settleEach({ ...deps, queueUrlOf }, (message) => judgeDeadLetter(deps, message));
  const ofDispatcher = redispatchEach(deps);
  const isDispatchFailure = (queueArn: string | undefined): boolean =>
    queueArn !== undefined && queueUrlFinder([config.dispatchFailuresUrl])(queueArn) !== undefined;
  const handler: SqsHandler = (event) =>
    isDispatchFailure(event.Records[0]?.eventSourceARN) ? ofDispatcher(event) : ofPools(event);
  return shell(deps.journal, handler);
};

/** Invoked once a minute. */
export const watchdogFunction = (config: StackConfig, manifest: Manifest) => {
  const deps = composeDeps(config, manifest);
  return shell(deps.journal, async (_event: unknown) => {
    await watch(deps);
    deps.journal.notice("info", "watchdog-pass", {});
  });
};

/** What the notifier is made of. @param routes the channels with their topics */
export const notifierDeps = (
  config: StackConfig,
  manifest: Manifest,
  routes: readonly Route[],
): NotifierDeps => {
  const { quietHours } = manifest.alerts ?? NO_ALERTS;
  const definitions = new Map(alarmsOf(manifest).map((each) => [alarmName(config, each.key), each]));
  return {
    ...composeDeps(config, manifest),
    routes,
    definitionOf: (name) => definitions.get(name),
    ...(quietHours !== undefined && { quietHours }),
  };
};

/** Invoked by SNS with alarms, and once a minute. */
export const notifierFunction = (config: StackConfig, manifest: Manifest) => {
  const deps = notifierDeps(config, manifest, deployedRoutes(config, manifest.alerts ?? NO_ALERTS));
  return shell(deps.journal, notifierHandler(deps));
};
