/**
 * `npm run shards -- [--shards N] [--numbered] [--rounds N] [--kills] [--concurrency N] [--json]`: one run of so many
 * shards (100,000) on the embedded stores, from its claim to its end. Prints how long its sending took beside bare
 * loops of batches with the same concurrency, before and after it, what was asked of the table and the queue for each shard, the largest
 * records, and the most memory that any process held. With `--kills` (1,000 shards) workers are killed while they
 * list, in shards, and in the hook, and each part has an effect whose repeats are counted. Exit 1 when a budget or a
 * promise is broken.
 */
import { parseArgs } from "node:util";
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
} from "@aws-sdk/client-sqs";
import { systemClock } from "../../lib/adapters/system/system.ts";
import { makeThreadAttempts } from "../../lib/adapters/thread/thread-attempts.ts";
import { eachAtOnce } from "../../lib/app/at-once.ts";
import { makeRunByHand } from "../../lib/app/operate/run-by-hand.ts";
import { work } from "../../lib/app/path/work.ts";
import { BATCHES_AT_ONCE } from "../../lib/app/shards/send-shards.ts";
import { watch } from "../../lib/app/watchdog/watch.ts";
import { composeDeps } from "../../lib/compose/deps.ts";
import { readRunId } from "../../lib/core/identity.ts";
import { runKey } from "../../lib/core/items.ts";
import { messageText, parseMessage } from "../../lib/core/runs/message.ts";
import { isTerminal } from "../../lib/core/runs/run.ts";
import { bucketCount, strideCount } from "../../lib/core/shards/shards.ts";
import type { Item } from "../../lib/core/write.ts";
import { added, type Counts, counting } from "./counted.ts";
import { startWorker, watchMemory } from "./processes.ts";
import { makeShardStack, type ShardStack } from "./stack.ts";

const { values } = parseArgs({
  options: {
    shards: { type: "string" },
    kills: { type: "boolean", default: false },
    numbered: { type: "boolean", default: false },
    rounds: { type: "string", default: "2" },
    concurrency: { type: "string", default: "8" },
    json: { type: "boolean", default: false },
  },
});

const KILLS = values.kills;
/** By the job's code, as most jobs do; or by number, so that nothing needs to be kept of them. */
const LISTED = !values.numbered;
const COUNT = Number(values.shards ?? (KILLS ? 1_000 : 100_000));
const MEMORY_MB = 512;
const RATIO = 1.2;
const WRITE_UNIT_BYTES = 1_024;
const BATCH = 10;

const say = (line: string): void => console.error(line);

/** As fast as anybody could send as many messages of the same size. */
const bareLoopMs = async ({ sqs }: ShardStack, slotKey: string): Promise<number> => {
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: "bare" }));
  const bodyOf = (index: number): string =>
    messageText({
      subject: "wide",
      slotKey,
      epoch: 1,
      trigger: "manual",
      queuedAtMs: Date.now(),
      shard: {
        plan: 1,
        index,
        total: COUNT,
        ...(LISTED ? { key: `customer-${index}`, input: { customer: index } } : {}),
      },
    });
  const firsts = Array.from({ length: Math.ceil(COUNT / BATCH) }, (_, n) => n * BATCH);
  const startedAtMs = performance.now();
  await eachAtOnce(firsts, BATCHES_AT_ONCE, async (first) => {
    const Entries = Array.from({ length: Math.min(BATCH, COUNT - first) }, (_, n) => ({
      Id: String(n),
      MessageBody: bodyOf(first + n),
    }));
    await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
  });
  const tookMs = performance.now() - startedAtMs;
  await sqs.send(new PurgeQueueCommand({ QueueUrl }));
  return tookMs;
};

const SILENT = { attempt: () => undefined, notice: () => undefined, handlerLine: () => undefined };

const depsOf = ({ config, manifest, db, sqs }: ShardStack) => ({
  ...composeDeps(config, manifest, { db, sqs }),
  journal: SILENT,
});

/** The run's first message, taken by a worker in this process: it lists the shards and sends them. */
const planMs = async (stack: ShardStack, counts: Counts) => {
  for (const name of Object.keys(counts.requests)) delete counts.requests[name];
  const deps = depsOf(stack);
  const attempts = makeThreadAttempts({ jobsFile: stack.jobsFile, clock: deps.clock, timers: deps.timers });
  await attempts.ready();
  const { Messages: [message] = [] } = await stack.sqs.send(
    new ReceiveMessageCommand({ QueueUrl: stack.queue, WaitTimeSeconds: 5 }),
  );
  const startedAtMs = performance.now();
  const settlement = await work({ ...deps, attempts }, parseMessage(message?.Body ?? ""));
  const tookMs = performance.now() - startedAtMs;
  if (settlement.kind !== "delete") throw new Error("the shards were not all sent");
  const { ReceiptHandle } = message ?? {};
  await stack.sqs.send(new DeleteMessageCommand({ QueueUrl: stack.queue, ReceiptHandle }));
  await attempts.close();
  // What this process asks from here on, to see how far the run is, is not the run's.
  return { tookMs, counts: structuredClone(counts) };
};

const begin = async (stack: ShardStack) => {
  const deps = depsOf(stack);
  const answer = await makeRunByHand(deps)({ job: stack.job });
  const occurrence = readRunId(answer.runId);
  if (occurrence === undefined) throw new Error("no run was made");
  const read = (): Promise<Item | undefined> => deps.table.get(runKey(occurrence), { consistent: true });
  return { occurrence, read };
};

const untilOver = async (
  read: () => Promise<Item | undefined>,
  eachSecond: () => Promise<void>,
): Promise<Item> => {
  for (;;) {
    const run = await read();
    if (run !== undefined && isTerminal(String(run["st"]))) return run;
    await eachSecond();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
};

const faults: string[] = [];
const must = (holds: boolean, what: string): void => {
  if (!holds) faults.push(what);
};

/** By docs/protocol.md: two writes a shard, one for each 64 of them and each 4,096; its list's pages; its run. */
const expectedWrites = (): number => {
  const strides = strideCount(COUNT);
  let buckets = 0;
  for (let stride = 0; stride < strides; stride++) buckets += bucketCount(stride, COUNT);
  return 2 * COUNT + (LISTED ? 2 : 1) * buckets + 2 * strides;
};

const sumOf = (requests: { readonly [name: string]: number }, start: string): number =>
  Object.entries(requests)
    .filter(([name]) => name.startsWith(start))
    .reduce((sum, [, count]) => sum + count, 0);

const middle = (values: readonly number[]): number => {
  const sorted = values.toSorted((left, right) => left - right);
  const half = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(half)] ?? 0) + (sorted[Math.ceil(half)] ?? 0)) / 2;
};

/** Each beside the bare loops before and after it, since a busy machine changes its mind in between. */
const ratioOf = (ours: readonly number[], bare: readonly number[]): number =>
  middle(ours.map((ms, round) => (2 * ms) / ((bare[round] ?? 0) + (bare[round + 1] ?? 0))));

/** Bare loops and runs by turns; of the last run the messages stay. */
const enqueue = async (stack: ShardStack) => {
  const counts = counting(stack);
  const bare: number[] = [];
  const listAndSend: number[] = [];
  for (let round = 1; ; round++) {
    const { occurrence, read } = await begin(stack);
    bare.push(await bareLoopMs(stack, occurrence.slotKey));
    const { tookMs, counts: planned } = await planMs(stack, counts);
    listAndSend.push(tookMs);
    if (round < Number(values.rounds)) {
      await stack.sqs.send(new PurgeQueueCommand({ QueueUrl: stack.queue }));
      continue;
    }
    bare.push(await bareLoopMs(stack, occurrence.slotKey));
    const enqueueMs = { bare: bare.map(Math.round), listAndSend: listAndSend.map(Math.round) };
    return { read, planned, ratio: ratioOf(listAndSend, bare), enqueueMs };
  }
};

const playWhole = async (stack: ShardStack): Promise<object> => {
  const memory = watchMemory();
  const { read, planned, ratio, enqueueMs } = await enqueue(stack);
  say(`sending took ${ratio.toFixed(2)} times the bare loop: ${JSON.stringify(enqueueMs)} ms`);
  const workers = await Promise.all([startWorker(stack), startWorker(stack)]);
  const startedAtMs = systemClock.nowMs();
  let looks = 0;
  const run = await untilOver(read, async () => {
    looks += 1;
    if (looks % 30 === 0) say(`${looks} s: ${phaseText(await read())}`);
  });
  const seconds = Math.round((systemClock.nowMs() - startedAtMs) / 1_000);
  const counts = added([planned, ...(await Promise.all(workers.map((worker) => worker.counts())))]);
  await Promise.all(workers.map((worker) => worker.stop()));
  const peaks = memory.stop();
  const writes = sumOf(counts.requests, "UpdateItem");
  must(run["st"] === "succeeded", `the run ended ${String(run["st"])}`);
  must(ratio <= RATIO, `sending took ${ratio.toFixed(2)} times the bare loop`);
  // Its claim, its start, its list, its phases and its end; and renewals of the lease while it sent.
  must(writes - expectedWrites() < 60, `${writes} writes, and ${expectedWrites()} would do`);
  for (const kind of ["RUN", "BUCKET", "STRIDE"]) {
    must((counts.largest[kind] ?? 0) < WRITE_UNIT_BYTES, `a ${kind} item of ${counts.largest[kind]} bytes`);
  }
  for (const [name, mb] of Object.entries(peaks)) must(mb < MEMORY_MB, `${name} held ${mb} MB`);
  const perShard = (count: number): number => Number((count / COUNT).toFixed(4));
  return {
    shards: COUNT,
    listed: LISTED,
    seconds,
    ratio: Number(ratio.toFixed(3)),
    enqueueMs,
    requestsPerShard: {
      writes: perShard(writes),
      reads: perShard(sumOf(counts.requests, "GetItem") + sumOf(counts.requests, "Query")),
      batches: perShard(counts.requests["SendMessageBatch"] ?? 0),
    },
    requests: counts.requests,
    largestBytes: counts.largest,
    peakMb: peaks,
  };
};

const phaseText = (run: Item | undefined): string =>
  `${String(run?.["ph"])}, ${run?.["full"] instanceof Set ? run["full"].size : 0} strides are over`;

/** Kills a worker at the first word from the list, at some shards, and at the hook. */
const playKilled = async (stack: ShardStack): Promise<object> => {
  const worker = await startWorker(stack);
  const { occurrence, read } = await begin(stack);
  const wanted = [1 / 10, 1 / 2, 9 / 10].map((share) => Math.floor(COUNT * share));
  let kills = Promise.resolve();
  const done: string[] = [];
  const kill = (at: string): void => {
    if (done.includes(at)) return;
    done.push(at);
    kills = kills.then(() => worker.kill());
  };
  stack.witness.listen((key) => {
    const effects = [...stack.witness.asked.keys()].filter((one) => one.endsWith(":effect")).length;
    if (key === "list") kill("list");
    if (key.endsWith(":join")) kill("join");
    for (const count of wanted) if (effects >= count) kill(`shard ${count}`);
  });
  const deps = depsOf(stack);
  const startedAtMs = systemClock.nowMs();
  let looks = 0;
  const run = await untilOver(read, async () => {
    looks += 1;
    const effects = [...stack.witness.asked.keys()].filter((key) => key.endsWith(":effect")).length;
    if (looks % 10 === 0) say(`${phaseText(await read())}, ${effects} effects, killed in ${done.join(", ")}`);
    await watch(deps).catch((error: unknown) => say(String(error)));
  });
  const seconds = Math.round((systemClock.nowMs() - startedAtMs) / 1_000);
  await kills;
  await worker.stop();
  const asked = [...stack.witness.asked].filter(([key]) => key !== "list");
  const effects = asked.filter(([key]) => key.endsWith(":effect"));
  const joins = asked.filter(([key]) => key.endsWith(":join"));
  const repeats = effects.reduce((sum, [, times]) => sum + times - 1, 0);
  const runs = await stack.table.query({ pk: runKey(occurrence).pk, first: "R#", last: "R#~" });
  must(run["st"] === "succeeded", `the run ended ${String(run["st"])}`);
  must(effects.length === COUNT, `${effects.length} of ${COUNT} shards had their effect`);
  must(joins.length === 1, `${joins.length} joins`);
  must(runs.length === 1, `${runs.length} runs`);
  // What a kill cut off from its record, and nothing else.
  const most = worker.kills() * Number(values.concurrency);
  must(repeats <= most, `${repeats} effects were repeated, and the kills explain ${most}`);
  for (const at of ["list", "join"]) must(done.includes(at), `nobody was killed in the ${at}`);
  return {
    shards: COUNT,
    seconds,
    kills: worker.kills(),
    killedIn: done,
    effects: effects.length,
    repeats,
    joins: joins.length,
  };
};

const stack = await makeShardStack({
  count: COUNT,
  kills: KILLS,
  listed: LISTED,
  concurrency: Number(values.concurrency),
});
const figures = await (KILLS ? playKilled(stack) : playWhole(stack)).finally(() => stack.close());
console.log(values.json ? JSON.stringify({ ...figures, faults }) : JSON.stringify(figures, undefined, 2));
for (const fault of faults) say(`BROKEN: ${fault}`);
process.exit(faults.length === 0 ? 0 : 1);
