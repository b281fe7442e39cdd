import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GetQueueAttributesCommand, SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { startFauxqs } from "fauxqs";
import { makeClients } from "../../cli/dev/clients.ts";
import { ensureQueues, ensureTable } from "../../cli/dev/provision.ts";
import {
  DISPATCH_FAILURES,
  deadLetterQueue,
  poolQueue,
  queueArn,
  queueSpecs,
  queueUrl,
  TABLE_NAME,
} from "../../cli/dev/resources.ts";
import { stackConfig } from "../../cli/dev/stack-config.ts";
import { dynamoTable } from "../../lib/adapters/dynamo/dynamo-table.ts";
import type { StackConfig } from "../../lib/compose/config.ts";
import { type Occurrence, slotKeyOf } from "../../lib/core/identity.ts";
import type { JobDefinition, Manifest } from "../../lib/core/jobs/job.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { definition } from "../support/definitions.ts";
import { manifestOf } from "../support/embedded-services.ts";
import { embeddedTable } from "../support/embedded-table.ts";
import { jobsFile } from "../support/jobs-file.ts";
import { type ProxyFaults, startFaultProxy } from "./fault-proxy.ts";
import { startWitness } from "./witness.ts";

export const LOCKED = "one-at-a-time";
export const UNLOCKED = "side-by-side";
/** Of 40 pieces, two in each invocation. */
export const LONG = "in-pieces";
export const PIECES = 40;
const PIECES_PER_INVOCATION = 2;
/** A slot of the long job in so many minutes. */
const LONG_EVERY = 20;

/** Nothing delivers its slots: a backfill runs the last ones. */
export const BACKFILLED = "made-up-for";

/** The occurrences of the delivered jobs at these slots, of which each is a minute's. */
export const occurrencesAt = (slots: readonly number[]): readonly Occurrence[] =>
  slots.flatMap((slotMs) => {
    const isLong = (slotMs / MINUTE_MS) % LONG_EVERY === 0;
    return [LOCKED, UNLOCKED, ...(isLong ? [LONG] : [])].map((subject) => ({
      subject,
      slotKey: slotKeyOf(slotMs),
    }));
  });

/** Short enough that a killed run goes on soon; long enough that a busy machine keeps its leases. */
const TIMINGS = { leaseMs: 4 * SECOND_MS, clockBoundMs: SECOND_MS, firstLookMs: 3 * SECOND_MS };
const VISIBILITY_SECONDS = 6;
/** Few, so that the innocent meet the dead-letters function, too. */
const MAX_RECEIVES = 4;
const CONCURRENCY = 4;

const FAULTS: { readonly [service in "dynamodb" | "sqs"]: ProxyFaults } = {
  dynamodb: { "drop-before": 0.02, "drop-answer": 0.04, delay: 0.05, throttle: 0.02 },
  sqs: { "drop-before": 0.02, "drop-answer": 0.04, delay: 0.05, throttle: 0.02 },
};
const DELAY_MS = 400;

/** Every process may die: crashes end no run here, and neither does an age. */
const jobOf = (
  name: string,
  overlap: JobDefinition["overlap"],
  endsAtMs: number,
  schedule = "* * * * *",
): JobDefinition =>
  definition({
    name,
    schedules: [schedule],
    endsAtMs,
    overlap,
    timeoutMs: 8 * SECOND_MS,
    retry: {
      retries: 5,
      firstWaitMs: SECOND_MS,
      factor: 1,
      maxWaitMs: SECOND_MS,
      jitter: 0,
      crashes: 1_000,
    },
  });

/** Tells the witness that it begins, acts, goes on, and ends; for as long as its run id says, so that a seed repeats. */
const handlerText = (witness: string, job: string, shortestMs: number, longestMs: number): string => `
async ({ runId, attempt, idempotencyKey, signal }) => {
  const id = crypto.randomUUID();
  const tell = (what) => fetch(${JSON.stringify(witness)} + "?" + new URLSearchParams({
    what, id, run: runId, job: ${JSON.stringify(job)}, attempt: String(attempt), pid: String(process.pid),
    at: String(Date.now()), key: idempotencyKey("effect"),
  }));
  const lasts = ${shortestMs} + [...(runId + attempt)].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) % 9973, 7) % ${longestMs - shortestMs};
  await tell("begins");
  const untilMs = Date.now() + lasts;
  await tell("effect");
  while (Date.now() < untilMs && !signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await tell("goes-on");
  }
  await tell(signal.aborted ? "stopped" : "returned");
  if (signal.aborted) throw signal.reason;
  return id;
}`;

/**
 * Each piece is a side effect that is remembered, and saved; then the next invocation goes on. What the witness hears of a
 * piece has its key, so that it can tell a repeat.
 */
const longHandlerText = (witness: string): string => `
async ({ runId, attempt, checkpoint, once, progress, continueLater, idempotencyKey, signal }) => {
  const id = crypto.randomUUID();
  const tell = (what, key) => fetch(${JSON.stringify(witness)} + "?" + new URLSearchParams({
    what, id, run: runId, job: ${JSON.stringify(LONG)}, attempt: String(attempt), pid: String(process.pid),
    at: String(Date.now()), key: key ?? "",
  }));
  const work = async () => {
    const before = (await checkpoint.load()) ?? 0;
    let next = before;
    const until = next - (next % ${PIECES_PER_INVOCATION}) + ${PIECES_PER_INVOCATION};
    while (next < until && next < ${PIECES}) {
      signal.throwIfAborted();
      const piece = "piece " + String(next).padStart(2, "0");
      await once(piece, async () => {
        await tell("piece", idempotencyKey(piece));
        // Time enough to be killed between the effect and its record.
        await new Promise((resolve) => setTimeout(resolve, 100));
        return next;
      });
      next += 1;
      progress(next, ${PIECES});
      if (next % 2 === 1) await checkpoint.save(next);
    }
    return { before, next };
  };
  await tell("begins");
  const { before, next } = await work().catch(async (error) => {
    await tell("stopped");
    throw error;
  });
  await tell("returned");
  return before === ${PIECES} ? next : continueLater(next);
}`;

export interface ChaosStackOptions {
  readonly seed: number;
  /** The jobs' schedules end there: all their slots lie in the past, and the driver delivers them. */
  readonly endsAtMs: number;
}

/** The embedded services behind two proxies that fail, the jobs, and the system outside that the jobs act upon. */
export const makeChaosStack = async ({ seed, endsAtMs }: ChaosStackOptions) => {
  const table = await embeddedTable(TABLE_NAME);
  const queues = await startFauxqs({ port: 0, logger: false });
  const direct = { dynamodb: table.endpoint, sqs: `http://127.0.0.1:${queues.port}` };
  const proxyOf = (service: "dynamodb" | "sqs", itsSeed: number) =>
    startFaultProxy({
      target: direct[service],
      service,
      seed: itsSeed,
      faults: FAULTS[service],
      delayMs: DELAY_MS,
    });
  const proxies = [await proxyOf("dynamodb", seed), await proxyOf("sqs", seed + 1)] as const;
  const endpoints = { dynamodb: proxies[0].endpoint, sqs: proxies[1].endpoint };
  const witness = await startWitness();
  const jobs = [
    jobOf(LOCKED, "queue", endsAtMs),
    jobOf(UNLOCKED, "allow", endsAtMs),
    jobOf(LONG, "queue", endsAtMs, `*/${LONG_EVERY} * * * *`),
    jobOf(BACKFILLED, "skip", endsAtMs),
  ] as const;
  const base = manifestOf(...jobs);
  const manifest: Manifest = { ...base, pools: { default: { memoryMb: 256, concurrency: CONCURRENCY } } };
  const config: StackConfig = { ...stackConfig(endpoints, manifest), ...TIMINGS };
  const clients = makeClients(direct);
  await ensureTable(clients.dynamodb);
  await ensureQueues(clients.sqs, direct.sqs, queueSpecs(manifest));
  const urlOf = (queue: string): string => queueUrl(direct.sqs, queue);
  const soon = async (queue: string, attributes: Record<string, string>): Promise<void> => {
    const Attributes = { VisibilityTimeout: String(VISIBILITY_SECONDS), ...attributes };
    await clients.sqs.send(new SetQueueAttributesCommand({ QueueUrl: urlOf(queue), Attributes }));
  };
  const redrive = {
    deadLetterTargetArn: queueArn(deadLetterQueue("default")),
    maxReceiveCount: MAX_RECEIVES,
  };
  await soon(poolQueue("default"), { RedrivePolicy: JSON.stringify(redrive) });
  await soon(deadLetterQueue("default"), {});
  const cacheFolder = await mkdtemp(join(tmpdir(), "belfry-chaos-"));
  const file = await jobsFile({
    [LOCKED]: handlerText(witness.url, LOCKED, 50, 250),
    [UNLOCKED]: handlerText(witness.url, UNLOCKED, 1_000, 5_500),
    [LONG]: longHandlerText(witness.url),
    [BACKFILLED]: handlerText(witness.url, BACKFILLED, 50, 250),
  });

  /** Messages in all queues, hidden ones too. */
  const messagesLeft = async (): Promise<number> => {
    const names = [poolQueue("default"), deadLetterQueue("default"), DISPATCH_FAILURES];
    const counts = await Promise.all(
      names.map(async (name) => {
        const { Attributes = {} } = await clients.sqs.send(
          new GetQueueAttributesCommand({ QueueUrl: urlOf(name), AttributeNames: ["All"] }),
        );
        return ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"].reduce(
          (sum, attribute) => sum + Number(Attributes[attribute as keyof typeof Attributes] ?? 0),
          0,
        );
      }),
    );
    return counts.reduce((sum, one) => sum + one, 0);
  };

  return {
    jobs,
    manifest,
    config,
    endpoints,
    jobsFile: file,
    cacheFolder,
    proxies,
    witness,
    /** Past the proxies: what is really there. */
    table: dynamoTable(table.db, TABLE_NAME),
    messagesLeft,
    close: async (): Promise<void> => {
      for (const proxy of proxies) proxy.close();
      witness.close();
      clients.sqs.destroy();
      clients.dynamodb.destroy();
      await Promise.all([queues.stop(), table.close()]);
      await rm(cacheFolder, { recursive: true, force: true });
    },
  };
};

export type ChaosStack = Awaited<ReturnType<typeof makeChaosStack>>;
