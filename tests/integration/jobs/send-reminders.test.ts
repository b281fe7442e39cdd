import { testJob } from "belfry/testing";
import { expect, test } from "vitest";
import { setup } from "./notes.ts";

const MINUTE_MS = 60_000;

/** The minute that has just begun, when a dozen of the seeded reminders are due. */
const thisMinute = (): Date => new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS);

/** The slot's own reminder, which nothing has been done with, or what is given. */
const reminderAt = (slot: Date, state: object = { state: "pending" }) => ({
  pk: "reminder",
  sk: `${slot.toISOString()}#own`,
  text: "Water the flowers",
  ...state,
});

const opened = async (store: Awaited<ReturnType<typeof setup>>) => {
  const worker = await store.loadWorker();
  await worker.openOutbox();
  const inState = async (state: string) =>
    (await store.itemsOf("reminder")).filter((item) => item["state"] === state).map(({ sk }) => String(sk));
  const delivered = async () => (await store.itemsOf("delivery")).map(({ sk }) => String(sk));
  return { ...worker, inState, delivered };
};

test("what is due is sent, and nothing else", async () => {
  await using store = await setup({ embedded: true });
  const { remindersJob, inState, delivered } = await opened(store);
  const slot = thisMinute();
  const due = (await inState("pending")).filter((id) => id <= `${slot.toISOString()}~`);
  const run = await testJob(remindersJob, { slot }).run();
  expect(due.length).toBeGreaterThan(0);
  expect(run.result).toEqual({ sentCount: due.length });
  expect(await inState("sent")).toEqual(due);
  expect(await inState("sending")).toEqual([]);
  expect(await delivered()).toEqual(due);
});

test("delivered twice, and run again, each reminder is sent once", async () => {
  await using store = await setup({ embedded: true });
  const { remindersJob, inState, delivered } = await opened(store);
  const slot = thisMinute();
  const run = await testJob(remindersJob, { slot }).deliverTwice();
  const sent = await inState("sent");
  expect(run).toMatchObject({ duplicates: 1, result: { sentCount: sent.length } });
  const again = await testJob(remindersJob, { slot }).run();
  expect(again.result).toEqual({ sentCount: 0 });
  expect(await delivered()).toEqual(sent);
});

test("killed between the sending and its record, the run takes its own up again and sends each once", async () => {
  await using store = await setup({ embedded: true });
  const { remindersJob, inState, delivered } = await opened(store);
  const tested = testJob(remindersJob, { slot: thisMinute() });
  tested.killHere("after-effect");
  const run = await tested.run();
  expect(run.attempts.map(({ outcome }) => outcome)).toEqual(["lost", "returned"]);
  expect(await inState("sending")).toEqual([]);
  expect(await inState("sent")).toEqual(await delivered());
  expect(run.result).toEqual({ sentCount: (await delivered()).length });
});

test("what another run is sending is left to it, until its lease is over", async () => {
  await using store = await setup({ embedded: true });
  const { remindersJob, inState, delivered } = await opened(store);
  const slot = thisMinute();
  const { sk } = reminderAt(slot);
  const held = { state: "sending", holder: "another run" };
  await store.put(reminderAt(slot, { ...held, leaseUntil: Date.now() + MINUTE_MS }));
  await testJob(remindersJob, { slot }).run();
  expect(await inState("sending")).toEqual([sk]);
  expect(await delivered()).not.toContain(sk);
  await store.put(reminderAt(slot, { ...held, leaseUntil: Date.now() - 1 }));
  expect((await testJob(remindersJob, { slot }).run()).result).toEqual({ sentCount: 1 });
  expect(await inState("sent")).toContain(sk);
  expect(await delivered()).toContain(sk);
});

test("a run that has lost its reminder to another cannot say that it is sent", async () => {
  await using store = await setup({ embedded: true });
  const { openOutbox, inState } = await opened(store);
  const outbox = await openOutbox();
  const { sk: id, ...rest } = reminderAt(thisMinute());
  await store.put({ sk: id, ...rest });
  const reminder = { id, text: rest.text };
  expect(await outbox.take(reminder, "first")).toBe(true);
  expect(await outbox.take(reminder, "second")).toBe(false);
  expect(await outbox.markSent(reminder, "second")).toBe(false);
  expect(await outbox.markSent(reminder, "first")).toBe(true);
  expect(await outbox.take(reminder, "second")).toBe(false);
  expect(await inState("sent")).toEqual([id]);
});
