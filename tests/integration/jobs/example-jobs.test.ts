import { testJob } from "belfry/testing";
import { expect, test } from "vitest";
import { DAY_MS, setup } from "./notes.ts";

/** 02:00 and 08:00 in Shanghai, so many days ago. */
const cleanSlot = (daysAgo: number): Date =>
  new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - daysAgo * DAY_MS - DAY_MS / 4);
const digestSlot = (daysAgo: number): Date =>
  new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - daysAgo * DAY_MS);

const shanghaiDate = (at: Date): string => new Date(at.getTime() + DAY_MS / 3).toISOString().slice(0, 10);

test("the embedded store is filled on first use, and clean-sessions deletes what is over 30 days old, and nothing else", async () => {
  await using store = await setup({ embedded: true });
  const { cleanSessions, openNotesStore } = await store.loadWorker();
  await openNotesStore();
  const before = await store.itemsOf("session");
  const slot = cleanSlot(0);
  const limit = new Date(slot.getTime() - 30 * DAY_MS).toISOString();
  const old = before.filter(({ sk }) => String(sk) < limit);
  expect(old.length).toBeGreaterThan(0);
  expect(await cleanSessions(slot)).toEqual({ deletedCount: old.length });
  expect(await store.itemsOf("session")).toEqual(before.filter(({ sk }) => String(sk) >= limit));
});

test("for any slot that can still be run, there is something to delete", async () => {
  await using store = await setup({ embedded: true });
  const { cleanSessions } = await store.loadWorker();
  expect(await cleanSessions(cleanSlot(30))).toEqual({
    deletedCount: expect.toSatisfy((count) => count > 0),
  });
});

test("a repeat of the same slot deletes nothing, also when another worker opens the store", async () => {
  await using store = await setup({ embedded: true });
  const first = await store.loadWorker();
  await first.cleanSessions(cleanSlot(0));
  expect(await first.cleanSessions(cleanSlot(0))).toEqual({ deletedCount: 0 });
  const second = await store.loadWorker();
  expect(await second.cleanSessions(cleanSlot(0))).toEqual({ deletedCount: 0 });
});

test("five workers at the same slot delete, and count, each session once", async () => {
  await using store = await setup({ embedded: true });
  const workers = [];
  for (let n = 0; n < 5; n += 1) workers.push(await store.loadWorker());
  await workers[0]?.openNotesStore();
  const before = (await store.itemsOf("session")).length;
  const results = await Promise.all(workers.map((worker) => worker.cleanSessions(cleanSlot(0))));
  const deleted = results.map((result) => (result as { deletedCount: number }).deletedCount);
  expect(deleted.reduce((sum, count) => sum + count)).toBe(before - (await store.itemsOf("session")).length);
});

test("a store whose filling was cut off is filled by the next use", async () => {
  await using store = await setup({ embedded: true });
  await (await store.loadWorker()).openNotesStore();
  const [lost] = await store.itemsOf("session");
  await store.remove({ pk: "session", sk: String(lost?.["sk"]) });
  await store.remove({ pk: "seed", sk: "done" });
  await (await store.loadWorker()).openNotesStore();
  expect(await store.itemsOf("session")).toContainEqual(lost);
});

test("anywhere but in the embedded stack, no table is made and nothing is filled", async () => {
  await using store = await setup({ embedded: false });
  const { cleanSessions, dailyDigest } = await store.loadWorker();
  await expect(cleanSessions(cleanSlot(0))).rejects.toThrow();
  await expect(dailyDigest(digestSlot(0))).rejects.toThrow();
  expect(await store.tables()).toEqual([]);
});

test("the digest of a slot holds the notes of the day before, under the slot's date in Shanghai", async () => {
  await using store = await setup({ embedded: true });
  const { dailyDigest } = await store.loadWorker();
  const slot = digestSlot(3);
  const date = shanghaiDate(slot);
  const notesOf = shanghaiDate(new Date(slot.getTime() - DAY_MS));
  expect(await dailyDigest(slot)).toEqual({ date, noteCount: 3 });
  const notes = (await store.itemsOf(`note#${notesOf}`)).map(({ text }) => text);
  expect(await store.itemsOf("digest")).toEqual([{ pk: "digest", sk: date, notesOf, lines: notes }]);
});

test("a repeat of the digest puts the same in the same place", async () => {
  await using store = await setup({ embedded: true });
  const { dailyDigest } = await store.loadWorker();
  const first = await dailyDigest(digestSlot(3));
  const written = await store.itemsOf("digest");
  expect(await dailyDigest(digestSlot(3))).toEqual(first);
  expect(await store.itemsOf("digest")).toEqual(written);
});

test("clean-sessions, delivered twice, deletes and counts each session once", async () => {
  await using store = await setup({ embedded: true });
  const { cleanJob, openNotesStore } = await store.loadWorker();
  await openNotesStore();
  const before = (await store.itemsOf("session")).length;
  const tested = testJob(cleanJob, { slot: cleanSlot(0) });
  const run = await tested.deliverTwice();
  const left = (await store.itemsOf("session")).length;
  expect(run).toMatchObject({ duplicates: 1, result: { deletedCount: before - left } });
  expect(tested.lines).toMatchObject([{ message: "sessions deleted" }]);
});

test("clean-sessions, killed before its end is recorded, runs again and finds nothing left to delete", async () => {
  await using store = await setup({ embedded: true });
  const { cleanJob } = await store.loadWorker();
  const tested = testJob(cleanJob, { slot: cleanSlot(0) });
  tested.killHere("before-record");
  const run = await tested.run();
  expect(run.attempts.map(({ outcome }) => outcome)).toEqual(["lost", "returned"]);
  expect(run.result).toEqual({ deletedCount: 0 });
});

test("the digest, killed before its end is recorded, is written again as it was", async () => {
  await using store = await setup({ embedded: true });
  const { digestJob, dailyDigest } = await store.loadWorker();
  const tested = testJob(digestJob, { slot: digestSlot(3) });
  tested.killHere("before-record");
  const run = await tested.run();
  const written = await store.itemsOf("digest");
  expect(written).toHaveLength(1);
  expect(await dailyDigest(digestSlot(3))).toEqual(run.result);
  expect(await store.itemsOf("digest")).toEqual(written);
});
