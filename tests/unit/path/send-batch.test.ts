import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { mockClient } from "aws-sdk-client-mock";
import { beforeEach, expect, test } from "vitest";
import { sqsRunQueue } from "../../../lib/adapters/sqs/sqs-queues.ts";
import { parseMessage, type RunMessage } from "../../../lib/core/runs/message.ts";
import { at } from "../../support/path.ts";

/** The answer to a batch is read entry by entry. */

const sqs = mockClient(SQSClient);
const queue = sqsRunQueue(new SQSClient({ region: "eu-west-1" }), { default: "https://queue.test/default" });

const messages = [0, 1, 2, 3].map(
  (index): RunMessage => ({
    ...at("wide", "2026-10-08T02:00:00Z"),
    epoch: 1,
    trigger: "schedule",
    queuedAtMs: 1,
    shard: { plan: 1, index, total: 4, key: `customer ${index}`, input: { index } },
  }),
);

beforeEach(() => sqs.reset());

test("of a batch some are sent, some may be sent again, and one can never be", async () => {
  sqs.on(SendMessageBatchCommand).resolves({
    Successful: [{ Id: "2", MessageId: "m", MD5OfMessageBody: "x" }],
    Failed: [
      { Id: "0", SenderFault: false, Code: "InternalError" },
      { Id: "3", SenderFault: true, Code: "InvalidMessageContents", Message: "no such character" },
    ],
  });
  expect(await queue.sendBatch("default", messages)).toEqual([
    { kind: "unconfirmed", reason: "InternalError" },
    // In neither list: nobody knows.
    { kind: "unconfirmed" },
    { kind: "sent" },
    { kind: "refused", reason: "InvalidMessageContents: no such character" },
  ]);
});

test("a batch that fails as a whole confirms nothing, says why, and throws nothing", async () => {
  sqs.on(SendMessageBatchCommand).rejects(new Error("throttled"));
  expect(await queue.sendBatch("default", messages)).toEqual(
    messages.map(() => ({ kind: "unconfirmed", reason: "throttled" })),
  );
});

test("each message of a batch is one of ours, and is read again as it was", async () => {
  sqs.on(SendMessageBatchCommand).resolves({ Successful: [], Failed: [] });
  await queue.sendBatch("default", messages);
  const { QueueUrl, Entries = [] } = sqs.commandCalls(SendMessageBatchCommand)[0]?.args[0].input ?? {};
  expect(QueueUrl).toBe("https://queue.test/default");
  expect(Entries.map(({ MessageBody = "" }) => parseMessage(MessageBody))).toEqual(messages);
});

test("a batch for a pool without a queue is refused", async () => {
  await expect(queue.sendBatch("none", messages)).rejects.toThrow('no queue for the pool "none"');
});

test.each([
  ["no plan", { index: 0, total: 1 }],
  ["an index beyond its total", { plan: 1, index: 4, total: 4 }],
  ["a text for a shard", "all"],
])("a message with %s is poison", (_what, shard) => {
  const [message] = messages;
  expect(() => parseMessage(JSON.stringify({ v: 1, ...message, shard }))).toThrow(
    "no shard that can be read",
  );
});
