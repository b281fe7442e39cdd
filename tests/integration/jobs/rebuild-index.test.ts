import { testJob } from "belfry/testing";
import { expect, test } from "vitest";
import { setup } from "./notes.ts";

/** 03:00 on a Sunday in Shanghai. */
const slot = "2026-10-03T19:00:00Z";
const TOPICS = ["garden", "budget", "travel", "recipe", "music", "family", "school", "books"];

const entries = async (store: Awaited<ReturnType<typeof setup>>): Promise<number> => {
  const found = await Promise.all(TOPICS.map((topic) => store.itemsOf(`index#${topic}`)));
  return found.flat().length;
};

test("all notes get into the index, and its run tells how far it is", async () => {
  await using store = await setup({ embedded: true });
  const { indexJob } = await store.loadWorker();
  const run = await testJob(indexJob, { slot }).run();
  expect(run).toMatchObject({
    state: "succeeded",
    result: { noteCount: 5_000 },
    progress: { done: 5_000, total: 5_000 },
  });
  expect(await entries(store)).toBe(5_000);
});

test("killed after a checkpoint, it goes on from there, and the index is the same", async () => {
  await using store = await setup({ embedded: true });
  const { indexJob } = await store.loadWorker();
  const tested = testJob(indexJob, { slot });
  tested.killHere("after-checkpoint");
  const run = await tested.run();
  expect(run.attempts.map(({ outcome }) => outcome)).toEqual(["lost", "returned"]);
  expect(run.result).toEqual({ noteCount: 5_000 });
  expect(await entries(store)).toBe(5_000);
});

test("delivered twice, it is built by one, and its parts are counted once", async () => {
  await using store = await setup({ embedded: true });
  const { indexJob } = await store.loadWorker();
  const run = await testJob(indexJob, { slot }).deliverTwice();
  expect(run).toMatchObject({ duplicates: 1, result: { noteCount: 5_000 } });
  expect(await entries(store)).toBe(5_000);
});

test("when its time is short, the next invocation goes on with it", async () => {
  await using store = await setup({ embedded: true });
  const { indexJob } = await store.loadWorker();
  const tested = testJob(indexJob, { slot });
  const ended = tested.run();
  await tested.advance("570 seconds");
  const run = await ended;
  expect(run.attempts.map(({ outcome }) => outcome)).toEqual(["continue", "returned"]);
  expect(run.result).toEqual({ noteCount: 5_000 });
});
