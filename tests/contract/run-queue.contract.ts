import { expect, test } from "vitest";
import { Unavailable } from "../../lib/core/errors.ts";
import type { RunMessage } from "../../lib/core/runs/message.ts";
import { BATCH_SIZE, type RunQueue } from "../../lib/ports/run-queue.ts";
import { at } from "../support/path.ts";

export interface QueueUnderTest {
  readonly queue: RunQueue;
  /** The same port, where no call is answered. */
  readonly down: RunQueue;
  /** Of the pool `default`, a message that nobody has; undefined = there is none. */
  receive(): Promise<RunMessage | undefined>;
}

const message: RunMessage = {
  ...at("report", "2026-10-08T02:00:00Z"),
  epoch: 2,
  trigger: "manual",
  queuedAtMs: 1_790_000_000_000,
};
const shards = Array.from(
  { length: BATCH_SIZE },
  (_, index): RunMessage => ({
    ...message,
    shard: {
      plan: 1,
      index,
      total: BATCH_SIZE,
      key: `客户 ${index}`,
      input: { index, "a\u0001b": [null, "\t"] },
    },
  }),
);

/** What every queue of the pools must do. `make` is asked for an empty one in each test. */
export const runQueueContract = (make: () => Promise<QueueUnderTest>): void => {
  test("what is sent is delivered, as it was, and to one at a time", async () => {
    const { queue, receive } = await make();
    expect(await receive()).toBeUndefined();
    await queue.send("default", message);
    expect(await receive()).toEqual(message);
    expect(await receive()).toBeUndefined();
  });

  test("a message that is sent twice is delivered twice", async () => {
    const { queue, receive } = await make();
    await queue.send("default", message);
    await queue.send("default", message);
    expect([await receive(), await receive(), await receive()]).toEqual([message, message, undefined]);
  });

  test("each message of a full batch is confirmed in its place, and delivered as it was", async () => {
    const { queue, receive } = await make();
    expect(await queue.sendBatch("default", shards)).toEqual(shards.map(() => ({ kind: "sent" })));
    const received: (RunMessage | undefined)[] = [];
    for (const _ of shards) received.push(await receive());
    expect(received.sort((a, b) => Number(a?.shard?.index) - Number(b?.shard?.index))).toEqual(shards);
    expect(await receive()).toBeUndefined();
  });

  test("a message that nobody confirms is said to be unavailable, and may be sent again", async () => {
    const { queue, down, receive } = await make();
    await expect(down.send("default", message)).rejects.toThrow(Unavailable);
    await queue.send("default", message);
    expect(await receive()).toEqual(message);
  });

  test("a batch that is not answered confirms none of its messages, and throws nothing", async () => {
    const { down } = await make();
    const answers = await down.sendBatch("default", shards);
    expect(answers.map(({ kind }) => kind)).toEqual(shards.map(() => "unconfirmed"));
  });
};
