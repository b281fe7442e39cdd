/**
 * What docs/testing.md shows, compiled and run. Each of its examples stands below as it stands there; the last test
 * says so.
 */
import { readFile } from "node:fs/promises";
import { defineJob } from "belfry";
import { testJob } from "belfry/testing";
import { beforeEach, expect, test } from "vitest";

const mails = {
  down: false,
  sent: [] as { readonly slot: Date; readonly key: string }[],
  send: async (slot: Date, key: string) => {
    if (mails.down) throw new Error("no mail server");
    mails.sent.push({ slot, key });
  },
};

beforeEach(() => {
  mails.down = false;
  mails.sent.length = 0;
});

// In a project this is the default export of a file in jobs/.
const digest = defineJob({
  schedule: "0 8 * * *",
  timezone: "Asia/Shanghai",
  retry: { ladder: ["5 minutes", "1 hour"] },
  handler: async ({ slot, once, idempotencyKey }) => {
    await once("mail", () => mails.send(slot, idempotencyKey("mail")));
    return { date: slot.toISOString().slice(0, 10) };
  },
});

test("the digest of a day is sent", async () => {
  const run = await testJob(digest, { slot: "2026-10-08T00:00:00Z" }).run();
  expect(run.state).toBe("succeeded");
  expect(run.result).toEqual({ date: "2026-10-08" });
});

test("while the mail server is away, the digest is tried three times", async () => {
  mails.down = true;
  const run = await testJob(digest, { slot: "2026-10-08T00:00:00Z" }).run();
  expect(run.state).toBe("dead");
  expect(run.attempts.map(({ error }) => error)).toEqual(Array(3).fill("no mail server"));
});

test("delivered twice, the mail is sent once", async () => {
  const run = await testJob(digest, { slot: "2026-10-08T00:00:00Z" }).deliverTwice();
  expect(run.duplicates).toBe(1);
  expect(mails.sent).toHaveLength(1);
});

test("killed before its end is recorded, the digest does not send the mail again", async () => {
  const tested = testJob(digest, { slot: "2026-10-08T00:00:00Z" });
  tested.killHere("before-record");
  const run = await tested.run();
  expect(run.attempts.map(({ outcome }) => outcome)).toEqual(["lost", "returned"]);
  expect(mails.sent).toHaveLength(1);
});

test("killed right after the mail, it is sent again, and its receiver can tell", async () => {
  const tested = testJob(digest, { slot: "2026-10-08T00:00:00Z" });
  tested.killHere("after-effect");
  await tested.run();
  expect(mails.sent).toHaveLength(2);
  expect(new Set(mails.sent.map(({ key }) => key)).size).toBe(1);
});

test("a long job that is killed in its third piece does each piece once", async () => {
  const done: number[] = [];
  const rebuild = defineJob({
    schedule: "0 3 * * *",
    handler: async ({ once, checkpoint, continueLater }) => {
      const piece = (await checkpoint.load<number>()) ?? 0;
      await once(`piece ${piece}`, () => void done.push(piece));
      return piece < 9 ? continueLater(piece + 1) : "rebuilt";
    },
  });
  const tested = testJob(rebuild);
  tested.killHere("before-record", 3);
  const run = await tested.run();
  expect(tested.kills()).toBe(1);
  expect(run).toMatchObject({ state: "succeeded", pieces: 10 });
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("a hang is ended by its timeout", async () => {
  const hangs = defineJob({
    timeout: "10 minutes",
    retry: { retries: 0 },
    handler: ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  });
  const tested = testJob(hangs);
  const ended = tested.run();
  expect((await tested.advance("9 minutes"))?.state).toBe("running");
  await tested.advance("2 minutes");
  expect((await ended).attempts.map(({ outcome }) => outcome)).toEqual(["timed-out"]);
});

test("a customer without an address fails alone", async () => {
  const job = defineJob({
    shards: () => ["anna", "bert"],
    toleratedFailures: 1,
    retry: { retries: 0 },
    handler: ({ shard }) => {
      if (shard.key === "bert") throw new Error("no address");
    },
  });
  const run = await testJob(job).run();
  expect(run.state).toBe("succeeded");
  expect(run.shards?.dead.map(({ key }) => key)).toEqual(["bert"]);
});

test("the digest tells what is new since the last one", async () => {
  const news = defineJob({
    schedule: "0 8 * * *",
    handler: async ({ previous }) => {
      const last = await previous();
      return { since: last?.slot ?? null, number: Number(last?.result ?? 0) + 1 };
    },
  });
  const run = await testJob(news, { slot: "2026-10-08T08:00:00Z", previous: { result: 41 } }).run();
  expect(run.result).toEqual({ since: "2026-10-07T08:00:00.000Z", number: 42 });
});

test("the examples of docs/testing.md are the ones above", async () => {
  const [doc, own] = await Promise.all(
    ["../../../docs/testing.md", "./documented.test.ts"].map((file) =>
      readFile(new URL(file, import.meta.url), "utf8"),
    ),
  );
  const examples = [...String(doc).matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => String(code));
  const above = (code: string): boolean =>
    String(own).replaceAll(/\s+/g, " ").includes(code.replaceAll(/\s+/g, " ").trim());
  expect(examples.length).toBeGreaterThan(0);
  expect(
    examples.map((code) => code.replace(/^(import .*\n)+\n/, "")).filter((code) => !above(code)),
  ).toEqual([]);
});
