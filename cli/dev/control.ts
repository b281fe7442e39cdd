import { createServer } from "node:http";
import type { Server } from "node:net";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { systemClock as clock, systemTimers as timers } from "../../lib/adapters/system/system.ts";
import { composeStack } from "../../lib/compose/stack.ts";
import type { Measured, RingingAlarm, WatchedQueue } from "../../lib/core/alarms/alarm.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { EMBEDDED_ALARM_MINUTE_MS } from "../../lib/core/settings.ts";
import type { Invocation } from "../../lib/inbound/shell.ts";
import { measurement } from "./alarm-board.ts";
import { type AsyncInvoke, makeAsyncInvoke } from "./async-invoke.ts";
import { type Host, type Running, runChild } from "./child.ts";
import { makeClients, sqsSource } from "./clients.ts";
import { countingErrors } from "./counting-errors.ts";
import { type Mapping, startMapping } from "./event-source-mapping.ts";
import { scheduledJobs } from "./job-slots.ts";
import { type LocalScheduler, startLocalScheduler } from "./local-scheduler.ts";
import { localSecret } from "./local-secrets.ts";
import type { Build, ControlStart } from "./messages.ts";
import { bothDoors, serveOperate, withKey } from "./operate-server.ts";
import { type PassLoop, startPasses } from "./pass-loop.ts";
import { ensureQueues, ensureTable } from "./provision.ts";
import { startQueueGauge } from "./queue-gauge.ts";
import {
  ALARMS_QUEUE,
  DISPATCH_FAILURES,
  deadLetterQueue,
  functionArn,
  functionName,
  poolQueue,
  queueArn,
  queueSpecs,
  queueUrl,
  REGION,
} from "./resources.ts";
import { readManifest, stackConfig } from "./stack-config.ts";
import { startTopic } from "./topic.ts";

/** Lambda waits a minute, then two; nobody in front of a laptop does. */
const RETRY_WAITS_MS = [1_000, 2_000];
/** A minute on AWS, where each pass has its price; here what a kill has left behind is found at once. */
const PASS_EVERY_MS = 5_000;
const DEAD_LETTERS_TIMEOUT_MS = 30_000;
const POLL_SECONDS = 1;

type Stack = ReturnType<typeof composeStack>;
type Clients = ReturnType<typeof makeClients>;

/** What runs of one build, and is replaced as a whole by the next. */
interface Version {
  readonly manifest: Manifest;
  readonly stack: Stack;
}

interface ControlDeps {
  readonly start: ControlStart;
  readonly host: Host;
  readonly clients: Clients;
  /** As the supervisor said last. */
  readonly ringing: () => readonly RingingAlarm[];
}

const versionOf = async ({ start, clients, host, ringing }: ControlDeps, build: Build): Promise<Version> => {
  const manifest = readManifest(build.manifestFile);
  await Promise.all([
    ensureQueues(clients.sqs, start.endpoints.sqs, queueSpecs(manifest)),
    ensureTable(clients.dynamodb),
  ]);
  const { url, secret } = start.pings;
  const known = async (): Promise<readonly string[]> => [secret];
  const pings = { url, secrets: { known, renewed: known } };
  const local = { secret: localSecret, say: host.note, ringing, pings };
  const stack = composeStack(stackConfig(start.endpoints, manifest), manifest, local);
  for (const { name, why } of stack.absentChannels) host.note(`alerts go to no ${name} here: ${why}`);
  return { manifest, stack };
};

interface NamedQueue {
  readonly name: string;
  readonly watched: WatchedQueue;
}

const deadLetterQueues = ({ pools }: Manifest): readonly NamedQueue[] => [
  { name: DISPATCH_FAILURES, watched: { kind: "dispatch-failures" } },
  ...Object.keys(pools).map(
    (pool): NamedQueue => ({ name: deadLetterQueue(pool), watched: { kind: "dead-letters", pool } }),
  ),
];

const watchedQueues = (manifest: Manifest): readonly NamedQueue[] => [
  ...deadLetterQueues(manifest),
  { name: ALARMS_QUEUE, watched: { kind: "alarms" } },
  ...Object.keys(manifest.pools).map(
    (pool): NamedQueue => ({ name: poolQueue(pool), watched: { kind: "pool", pool } }),
  ),
];

const received = (queue: WatchedQueue): Measured => ({
  of: "queue",
  queue,
  name: "NumberOfMessagesReceived",
});
const SENT: Measured = {
  of: "queue",
  queue: { kind: "dispatch-failures" },
  name: "NumberOfMessagesSent",
};

const gaugeOf = ({ start, host, clients }: ControlDeps, { manifest }: Version) =>
  startQueueGauge({
    sqs: clients.sqs,
    queues: watchedQueues(manifest).map(({ name, watched }) => ({
      queue: watched,
      url: queueUrl(start.endpoints.sqs, name),
    })),
    everyMs: EMBEDDED_ALARM_MINUTE_MS / 2,
    clock,
    timers,
    measured: host.measured,
  });

/** The dead-letters function is fed by each pool's dead-letter queue, and by the events no dispatcher could take. */
const deadLetterMappings = (
  { start, host, clients }: ControlDeps,
  { manifest, stack }: Version,
): readonly Mapping[] =>
  deadLetterQueues(manifest).map(({ name: queue, watched }) =>
    startMapping({
      source: sqsSource(clients.sqs, queueUrl(start.endpoints.sqs, queue)),
      queueArn: queueArn(queue),
      region: REGION,
      functionName: functionName("dead-letters"),
      functionTimeoutMs: DEAD_LETTERS_TIMEOUT_MS,
      handler: countingErrors({ kind: "dead-letters" }, host, async (event, context) => {
        host.measured(event.Records.map(() => measurement(received(watched), clock.nowMs())));
        return stack.deadLetters(event, context);
      }),
      concurrency: 1,
      waitSeconds: POLL_SECONDS,
      clock,
      timers,
      report: host.note,
    }),
  );

const dispatcherInvoke = ({ start, host, clients }: ControlDeps, current: () => Version): AsyncInvoke =>
  makeAsyncInvoke({
    functionArn: functionArn("dispatcher"),
    handler: countingErrors({ kind: "dispatcher" }, host, (event: unknown, context: Invocation) =>
      current().stack.dispatcher(event, context),
    ),
    retryWaitsMs: RETRY_WAITS_MS,
    onFailure: async (record) => {
      await clients.sqs.send(
        new SendMessageCommand({
          QueueUrl: queueUrl(start.endpoints.sqs, DISPATCH_FAILURES),
          MessageBody: JSON.stringify(record),
        }),
      );
      host.measured([measurement(SENT, clock.nowMs())]);
    },
    clock,
    timers,
    report: host.note,
  });

const NOTIFIER_TIMEOUT_MS = 60_000;

/** The notifier is fed by the queue of the alarms. */
const alarmMapping = ({ start, host, clients }: ControlDeps, current: () => Version): Mapping =>
  startMapping({
    source: sqsSource(clients.sqs, queueUrl(start.endpoints.sqs, ALARMS_QUEUE)),
    queueArn: queueArn(ALARMS_QUEUE),
    region: REGION,
    functionName: functionName("notifier"),
    functionTimeoutMs: NOTIFIER_TIMEOUT_MS,
    handler: (event) => current().stack.notifier(event),
    batchSize: 10,
    concurrency: 1,
    waitSeconds: POLL_SECONDS,
    clock,
    timers,
    report: host.note,
  });

/** What brings alarms to the notifier: their topic, and the queue between the two. */
const startAlarms = (deps: ControlDeps, current: () => Version) => {
  const { start, clients } = deps;
  const topic = startTopic({
    send: async (message) => {
      const QueueUrl = queueUrl(start.endpoints.sqs, ALARMS_QUEUE);
      await clients.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: message }));
    },
    timers,
  });
  const mapping = alarmMapping(deps, current);
  return {
    publish: topic.publish,
    stop: async (): Promise<void> => {
      topic.stop();
      await mapping.stop();
    },
  };
};

const startWatching = ({ host }: ControlDeps, { stack }: Version): readonly PassLoop[] => {
  const common = { everyMs: PASS_EVERY_MS, timers, report: host.note };
  return [
    startPasses(stack.watchdog, { who: "watchdog", ...common }),
    startPasses(async () => void (await stack.notifier({})), { who: "notifier", ...common }),
  ];
};

const serveDoors = ({ start }: ControlDeps, server: Server, current: () => Version) =>
  serveOperate(
    createServer(),
    server,
    // Each address of a monitor has a key of its own.
    bothDoors(
      async (request) => current().stack.pings.fetch(request),
      withKey(start.key, async (request) => current().stack.operate.fetch(request)),
    ),
    timers,
  );

const schedulerOf = (
  { start: { strikes } }: ControlDeps,
  { manifest }: Version,
  dispatcher: AsyncInvoke,
  sinceMs: number = clock.nowMs(),
): LocalScheduler =>
  startLocalScheduler({
    sources: strikes ? scheduledJobs(manifest).map(({ source }) => source) : [],
    sinceMs,
    clock,
    timers,
    send: dispatcher.send,
  });

/**
 * Everything of a deployed stack that is not a worker, in one process: scheduler, dispatcher, watchdog,
 * notifier, dead-letters and the operate router.
 */
const begin = async (start: ControlStart, host: Host): Promise<Running> => {
  if (host.server === undefined) throw new Error("no socket to listen on came with the start");
  let ringing: readonly RingingAlarm[] = [];
  const deps: ControlDeps = { start, host, clients: makeClients(start.endpoints), ringing: () => ringing };
  let version = await versionOf(deps, start.build);
  const dispatcher = dispatcherInvoke(deps, () => version);
  const alarms = startAlarms(deps, () => version);
  let mappings = deadLetterMappings(deps, version);
  let scheduler = schedulerOf(deps, version, dispatcher);
  let watching = startWatching(deps, version);
  let gauge = gaugeOf(deps, version);
  const operate = await serveDoors(deps, host.server, () => version);
  return {
    reload: async (build) => {
      // All that can fail comes first: the old version goes on until the new one is complete.
      const next = await versionOf(deps, build);
      await Promise.all(watching.map((loop) => loop.stop()));
      version = next;
      scheduler = schedulerOf(deps, version, dispatcher, scheduler.stop());
      // A pass at once: it renews the definitions in the table.
      watching = startWatching(deps, version);
      await Promise.all(mappings.map((mapping) => mapping.stop()));
      mappings = deadLetterMappings(deps, version);
      gauge.stop();
      gauge = gaugeOf(deps, version);
    },
    alarms: async ({ ringing: now, messages }) => {
      ringing = now;
      for (const message of messages) alarms.publish(message);
    },
    stop: async () => {
      scheduler.stop();
      gauge.stop();
      await Promise.all([
        operate.close(),
        dispatcher.stop(),
        alarms.stop(),
        ...watching.map((loop) => loop.stop()),
        ...mappings.map((mapping) => mapping.stop()),
      ]);
    },
  };
};

runChild(begin);
