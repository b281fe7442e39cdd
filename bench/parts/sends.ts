import { SendMessageBatchCommand, SQSClient, type SQSClientConfig } from "@aws-sdk/client-sqs";
import { sqsRunQueue } from "../../lib/adapters/sqs/sqs-queues.ts";
import { eachAtOnce } from "../../lib/app/at-once.ts";
import { BATCHES_AT_ONCE, sendShards, shardMessage } from "../../lib/app/shards/send-shards.ts";
import { CLIENT_OPTIONS } from "../../lib/compose/deps.ts";
import { messageText } from "../../lib/core/runs/message.ts";
import { definition } from "../../tests/support/definitions.ts";
import { TEST_CREDENTIALS } from "../../tests/support/embedded-table.ts";
import { at, setup } from "../../tests/support/path.ts";
import { alternate, medianOf, ratioOf } from "../alternate.ts";
import { type Section, table } from "../section.ts";
import { stubTransport } from "../stub-transport.ts";

const COUNT = 100_000;
const BATCH = 10;
const ROUNDS = 3;
const BUDGET = 1.2;
const URL = "http://stub/000000000000/default";
const SLOT = "2026-10-08T02:00:00Z";

const JOB = definition({ name: "wide", shards: { joins: false } });
const OCCURRENCE = at("wide", SLOT);
const FAN = { occurrence: OCCURRENCE, plan: 1, total: COUNT, listed: true };
const SHARDS = Array.from({ length: COUNT }, (_, index) => ({
  index,
  key: `customer-${index}`,
  input: { customer: index },
}));

const clientWith = (options: object): SQSClient => {
  const { handler: requestHandler } = stubTransport();
  const config = { region: "us-east-1", credentials: TEST_CREDENTIALS, endpoint: "http://stub", md5: false };
  return new SQSClient({ ...config, ...options, requestHandler } as unknown as SQSClientConfig);
};

/** Processor time, in milliseconds. */
const cpuMsOf = async (act: () => Promise<unknown>): Promise<number> => {
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
};

/** 100,000 messages to a queue, beside a loop of `SendMessageBatch` with the same concurrency and bodies as large. */
export const sends = async (rounds: number): Promise<Section> => {
  const { deps } = setup({ now: SLOT, jobs: [JOB] });
  const sender = { job: JOB, occurrence: OCCURRENCE, fan: FAN, run: { ep: 1, trigger: "schedule" } } as const;
  const queue = sqsRunQueue(clientWith(CLIENT_OPTIONS), { [JOB.pool]: URL });
  const ours = () => sendShards({ ...deps, queue }, sender, SHARDS);
  const sqs = clientWith({});
  const bodies = SHARDS.map((shard) => messageText(shardMessage(sender, shard, deps.clock.nowMs())));
  const batches = Array.from({ length: COUNT / BATCH }, (_, n) => bodies.slice(n * BATCH, (n + 1) * BATCH));
  const bare = () =>
    eachAtOnce(batches, BATCHES_AT_ONCE, async (batch) => {
      const Entries = batch.map((MessageBody, index) => ({ Id: String(index), MessageBody }));
      await sqs.send(new SendMessageBatchCommand({ QueueUrl: URL, Entries }));
    });
  const taken = Math.min(rounds, ROUNDS);
  const measured = await alternate(
    [
      { name: "belfry", measure: () => cpuMsOf(ours) },
      { name: "bare", measure: () => cpuMsOf(bare) },
    ],
    taken,
  );
  const of = (name: string): readonly number[] => measured.get(name) ?? [];
  const ratio = ratioOf(of("belfry"), of("bare"));
  return {
    title: "100,000 sends",
    text: [
      "The shards of a run, each with a key and an input, beside a bare loop of `SendMessageBatch`: the same bodies (which the loop has",
      `ready, while we write them), ${BATCHES_AT_ONCE} calls at once, the network stubbed. Processor time, rounds: ${taken}, in turn. Over a network both wait`,
      "most of the time, so this is the worst that the ratio can be.",
      "",
      table(
        ["", "processor time, s"],
        ["belfry", "bare"].map((name) => [name, (medianOf(of(name)) / 1_000).toFixed(2)]),
      ),
    ].join("\n"),
    budgets: [
      {
        what: "100,000 shards enqueued, beside a bare loop of batches",
        budget: `at most ${BUDGET} x`,
        measured: `${ratio.toFixed(2)} x`,
        met: ratio <= BUDGET,
      },
    ],
  };
};
