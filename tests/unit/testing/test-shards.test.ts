import { expect, test } from "vitest";
import { defineJob, PermanentError, type ShardEntry } from "../../../lib/index.ts";
import { testJob } from "../../../lib/testing/index.ts";

const SLOT = "2026-10-08T01:00:00Z";

/** A job over customers, and what was done for each, as a receiver that counts would see it. */
const invoices = (
  customers: readonly ShardEntry<unknown>[],
  options: { retries?: number; fails?: string } = {},
) => {
  const sent: string[] = [];
  const job = defineJob({
    schedule: "0 * * * *",
    retry: { retries: options.retries ?? 1 },
    shards: async function* () {
      yield* customers;
    },
    handler: async ({ shard, once, idempotencyKey }) => {
      if (shard.key === options.fails) throw new PermanentError("no address");
      await once("send", () => void sent.push(idempotencyKey("send")));
    },
    join: ({ shards }) => shards,
  });
  return { sent, tested: testJob(job, { name: "invoices", slot: SLOT }) };
};

test("a job with shards is tried as a whole: its list, each shard, and its hook", async () => {
  const { sent, tested } = invoices(["anna", { key: "bert", input: 1 }]);
  const run = await tested.run();
  expect(run).toMatchObject({ state: "succeeded", result: { total: 2, done: 2, failed: 0 } });
  expect(run.shards).toMatchObject({ total: 2, done: 2, failed: 0, dead: [] });
  expect(sent).toEqual(["invoices~20261008T010000Z/anna:send", "invoices~20261008T010000Z/bert:send"]);
});

test("delivered twice, with two workers for each message, each shard's effect happens once", async () => {
  const { sent, tested } = invoices(["anna", "bert", "cora"]);
  expect(await tested.deliverTwice()).toMatchObject({ state: "succeeded" });
  expect(sent.toSorted()).toHaveLength(3);
});

test.each(["before-handler", "after-effect", "before-record", "after-record"] as const)(
  "killed at %s, a run with shards goes on, and only an effect without its record is repeated",
  async (point) => {
    const { sent, tested } = invoices(["anna", "bert", "cora"]);
    tested.killHere(point);
    expect(await tested.run()).toMatchObject({ state: "succeeded", shards: { done: 3 } });
    expect(new Set(sent).size).toBe(3);
    expect(sent).toHaveLength(point === "after-effect" ? 4 : 3);
  },
);

test("a shard that fails ends the run as dead, with its key and its error", async () => {
  const { tested } = invoices(["anna", "bert"], { fails: "bert" });
  expect(await tested.run()).toMatchObject({
    state: "dead",
    reason: "1 of 2 shards failed",
    shards: { done: 1, failed: 1, dead: [{ key: "bert", error: { message: "no address" } }] },
  });
});

test.each([
  ["a key twice", ["anna", "bert", "anna"], 'shards: the key "anna" is there twice, as entry 0 and entry 2'],
  ["an empty key", [""], "shards: the key of entry 0 is no text of 1 to 100 characters"],
  ["no key", [{ input: 1 } as unknown as ShardEntry], "shards: entry 0 has no key"],
  [
    "an input that is too large",
    [{ key: "anna", input: "x".repeat(4_096) }],
    'shards: the input of "anna" has 4098 bytes of JSON; at most 4096 fit',
  ],
  [
    "an input that is no JSON",
    [{ key: "anna", input: 1n }],
    'shards: the input of "anna" is nothing that JSON can carry',
  ],
] as const)(
  "a list with %s ends the run before any shard starts, with the fault",
  async (_what, list, message) => {
    const { sent, tested } = invoices(list);
    const run = await tested.run();
    expect(run).toMatchObject({ state: "dead", attempts: [{ n: 1 }] });
    expect(run.error?.message).toContain(message);
    expect(sent).toEqual([]);
  },
);

test("a list of more shards than a run may have is refused", async () => {
  const job = defineJob({
    shards: function* () {
      for (let n = 0; n < 1_000_000; n++) yield String(n);
    },
    handler: () => undefined,
  });
  const run = await testJob(job).run();
  expect(run.error?.message).toContain("shards: there are more than 262144");
  expect(run.state).toBe("dead");
});

test("a function that answers no list is refused", async () => {
  const job = defineJob({ shards: (() => 5) as unknown as () => string[], handler: () => undefined });
  expect((await testJob(job).run()).error?.message).toContain("shards: what the function returns is no list");
});

test("a list may say that there is nothing to do", async () => {
  const job = defineJob({ shards: ({ skip }) => skip("a holiday"), handler: () => undefined });
  expect(await testJob(job).run()).toMatchObject({ state: "skipped", reason: "a holiday" });
});

test("a run's own input comes to each of its shards, however large", async () => {
  const seen: unknown[] = [];
  const job = defineJob({
    input: {} as { text?: string },
    shards: 2,
    handler: ({ input, shard }) => void seen.push([shard.index, shard.count, input.text?.length]),
  });
  await testJob(job, { input: { text: "x".repeat(1_000) } }).run();
  await testJob(job, { input: { text: "x" } }).run();
  expect(seen).toEqual([
    [0, 2, 1_000],
    [1, 2, 1_000],
    [0, 2, 1],
    [1, 2, 1],
  ]);
});

test("a shard may go on in another invocation, from its own checkpoint", async () => {
  const pieces: string[] = [];
  const job = defineJob({
    shards: ["a", "b"].length,
    handler: async ({ shard, checkpoint, continueLater }) => {
      const step = (await checkpoint.load<number>()) ?? 0;
      pieces.push(`${shard.key}${step}`);
      return step < 2 ? continueLater(step + 1) : undefined;
    },
  });
  expect(await testJob(job).run()).toMatchObject({ state: "succeeded" });
  expect(pieces.toSorted()).toEqual(["00", "01", "02", "10", "11", "12"]);
});
