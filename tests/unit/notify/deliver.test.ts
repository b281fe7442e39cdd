import { expect, test } from "vitest";
import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { deliver } from "../../../lib/app/notify/deliver.ts";
import { ANY_ALERT, alertKey, WAITING_ALERTS } from "../../../lib/core/items.ts";
import { set } from "../../../lib/core/write.ts";
import type { Table } from "../../../lib/ports/table.ts";
import { away, makeReceiver, onNotify, onPage, refusal, setupOutbox, taken } from "./setup.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

test("a stored alert is told once to each channel of its topic, and waits no more", async () => {
  const [chat, pager] = [makeReceiver("chat"), makeReceiver("pager", 1)];
  const outbox = setupOutbox([onNotify(chat), onPage(pager)]);
  await outbox.put("a");
  await outbox.pass();
  await outbox.pass(MINUTE_MS);
  expect(chat.heard).toEqual([["a"]]);
  expect(pager.heard).toEqual([]);
  expect((await outbox.item("a"))?.["badMonth"]).toBe("A#2026-10");
});

test("an alert whose claim was written by a call of which the answer was lost is told at once", async () => {
  const chat = makeReceiver("chat");
  const memory = memoryTable();
  // The SDK makes a call again when it hears nothing: the second one meets what the first one wrote.
  const write: Table["write"] = async (change) => {
    await memory.write(change);
    return memory.write(change);
  };
  const outbox = setupOutbox([onNotify(chat)], { table: { ...memory, write } });
  await outbox.put("a");
  await outbox.pass();
  expect(chat.heard).toEqual([["a"]]);
});

test("a page is told to the pager and to the channels of notify", async () => {
  const [chat, pager] = [makeReceiver("chat"), makeReceiver("pager", 1)];
  const outbox = setupOutbox([onNotify(chat), onPage(pager)]);
  await outbox.put("a", { topic: "page" });
  await outbox.pass();
  expect([chat.heard, pager.heard]).toEqual([[["a"]], [["a"]]]);
});

test.each([10 * MINUTE_MS, 5 * HOUR_MS])(
  "a chat that is away for %i ms loses none and hears each once, in order",
  async (outageMs) => {
    const [chat, other] = [makeReceiver("chat"), makeReceiver("other")];
    const outbox = setupOutbox([onNotify(chat), onNotify(other)]);
    chat.answer = () => away;
    const names = Array.from(
      { length: outageMs / (2 * MINUTE_MS) },
      (_, i) => `a${String(i).padStart(3, "0")}`,
    );
    for (const name of names) {
      await outbox.put(name);
      await outbox.pass(MINUTE_MS);
      await outbox.pass(MINUTE_MS);
    }
    expect(chat.heard).toEqual([]);
    expect(other.heard.flat()).toEqual(names);
    chat.answer = () => taken;
    // Its next try is at most five minutes away; then a pass takes ten messages of ten.
    for (let minute = 0; minute < 8; minute++) await outbox.pass(MINUTE_MS);
    expect(chat.heard.flat()).toEqual(names);
    expect(await outbox.table.query({ ...ANY_ALERT, pk: WAITING_ALERTS })).toEqual([]);
  },
);

test("a channel that is away is tried by one alert, at growing waits", async () => {
  const chat = makeReceiver("chat");
  const outbox = setupOutbox([onNotify(chat)]);
  const tries: number[] = [];
  chat.answer = (ids) => {
    tries.push(outbox.nowMs);
    expect(ids[0]).toBe("a");
    return away;
  };
  await outbox.put("a");
  for (let i = 0; i < 100; i++) {
    await outbox.pass(10 * SECOND_MS);
    if (i === 0) await outbox.put("b");
  }
  const waits = tries.slice(1).map((atMs, i) => (atMs - (tries[i] ?? 0)) / SECOND_MS);
  expect(waits).toEqual([30, 60, 120, 240, 300]);
});

test("a receiver that says when to come again is not asked before", async () => {
  const chat = makeReceiver("chat");
  const outbox = setupOutbox([onNotify(chat)]);
  let asked = 0;
  chat.answer = () => {
    asked += 1;
    return asked === 1 ? { kind: "not-now", reason: "HTTP 429", retryAfterMs: 20 * MINUTE_MS } : taken;
  };
  await outbox.put("a");
  await outbox.pass();
  await outbox.put("b");
  for (let minute = 1; minute < 20; minute++) await outbox.pass(MINUTE_MS);
  expect(asked).toBe(1);
  await outbox.pass(MINUTE_MS);
  expect(chat.heard).toEqual([["a", "b"]]);
});

test("an alert that a channel has is not told there again because another channel does not have it", async () => {
  const [chat, mail] = [makeReceiver("chat"), makeReceiver("mail")];
  const outbox = setupOutbox([onNotify(chat), onNotify(mail)]);
  mail.answer = () => away;
  await outbox.put("a");
  for (let minute = 0; minute < 20; minute++) await outbox.pass(MINUTE_MS);
  mail.answer = () => taken;
  for (let minute = 0; minute < 6; minute++) await outbox.pass(MINUTE_MS);
  expect([chat.heard, mail.heard]).toEqual([[["a"]], [["a"]]]);
});

test("a channel that throws counts as away, and holds up no other", async () => {
  const [chat, mail] = [makeReceiver("chat"), makeReceiver("mail")];
  const outbox = setupOutbox([onNotify(chat), onNotify(mail)]);
  chat.answer = () => Promise.reject(new Error("no route to host"));
  await outbox.put("a");
  await outbox.pass();
  expect(mail.heard).toEqual([["a"]]);
  expect((await outbox.delivery("a", "chat"))?.error).toBe("no route to host");
});

test("an alert that a receiver does not like goes alone from then on, and holds up no other", async () => {
  const chat = makeReceiver("chat");
  const outbox = setupOutbox([onNotify(chat)]);
  chat.answer = (ids) => (ids.includes("b") ? refusal : taken);
  for (const id of ["a", "b", "c"]) await outbox.put(id);
  await outbox.pass();
  await outbox.pass(MINUTE_MS);
  await outbox.put("d");
  await outbox.pass(SECOND_MS);
  expect(chat.heard).toEqual([["a"], ["c"], ["d"]]);
});

test("what nobody takes for a week is given up with its reason, and said", async () => {
  const chat = makeReceiver("chat");
  const outbox = setupOutbox([onNotify(chat)]);
  chat.answer = () => away;
  await outbox.put("a");
  await outbox.put("b");
  await outbox.pass();
  await outbox.pass(7 * DAY_MS);
  expect((await outbox.delivery("a", "chat"))?.gaveUpAtMs).toBeUndefined();
  await outbox.pass(6 * MINUTE_MS);
  expect(await outbox.delivery("a", "chat")).toMatchObject({ gaveUpAtMs: outbox.nowMs, error: "HTTP 502" });
  expect((await outbox.item("b"))?.["badMonth"]).toBe("A#2026-10");
  expect(outbox.notices.filter(({ code }) => code === "alert-given-up")).toHaveLength(2);
});

test("an alert that no channel hears of is closed, and said as untold", async () => {
  const pager = makeReceiver("pager", 1);
  const outbox = setupOutbox([onPage(pager)]);
  await outbox.put("a");
  await outbox.pass();
  await outbox.pass(MINUTE_MS);
  expect(outbox.notices).toEqual([{ code: "alert-untold", fields: { alert: "a" } }]);
  expect((await outbox.item("a"))?.["badMonth"]).toBe("A#2026-10");
});

test("quiet hours hold notify until the morning, and let pages and tests through", async () => {
  const chat = makeReceiver("chat");
  const quietHours = { fromMinute: 22 * 60, untilMinute: 7 * 60, timezone: "Asia/Shanghai" };
  const outbox = setupOutbox([onNotify(chat)], { quietHours, now: "2026-10-08T13:59:00Z" });
  await outbox.put("evening");
  await outbox.pass();
  for (const id of ["night-1", "night-2"]) {
    await outbox.put(id);
    await outbox.pass(MINUTE_MS);
  }
  await outbox.put("page", { topic: "page" });
  await outbox.put("test", { kind: "test" });
  await outbox.pass(MINUTE_MS);
  expect(chat.heard).toEqual([["evening"], ["page", "test"]]);
  outbox.nowMs = Date.parse("2026-10-08T22:59:59Z");
  await outbox.pass();
  expect(chat.heard).toHaveLength(2);
  await outbox.pass(SECOND_MS);
  expect(chat.heard[2]).toEqual(["night-1", "night-2"]);
});

test("a pass sends a channel ten messages at most, and the next one goes on", async () => {
  const pager = makeReceiver("pager", 1);
  const outbox = setupOutbox([onNotify(pager)]);
  for (let i = 10; i < 25; i++) await outbox.put(`a${i}`);
  await outbox.pass();
  expect(pager.heard).toHaveLength(10);
  await outbox.pass(MINUTE_MS);
  expect(pager.heard.flat()).toEqual(Array.from({ length: 15 }, (_, i) => `a${i + 10}`));
});

test("a slow receiver does not keep a pass beyond its minute", async () => {
  const pager = makeReceiver("pager", 1);
  const outbox = setupOutbox([onNotify(pager)]);
  for (let i = 10; i < 20; i++) await outbox.put(`a${i}`);
  pager.answer = () => {
    outbox.nowMs += 9 * SECOND_MS;
    return taken;
  };
  await outbox.pass();
  expect(pager.heard).toHaveLength(5);
});

test("behind six hundred alerts that one channel does not take, the other channel hears a new one at once", async () => {
  const [chat, mail] = [makeReceiver("chat"), makeReceiver("mail")];
  const outbox = setupOutbox([onNotify(chat), onNotify(mail)]);
  chat.answer = () => away;
  for (let i = 0; i < 600; i++) await outbox.put(`a${String(i).padStart(3, "0")}`);
  for (let minute = 0; minute < 6; minute++) await outbox.pass(MINUTE_MS);
  await outbox.put("new", { atMs: outbox.nowMs });
  await outbox.pass(MINUTE_MS);
  await outbox.pass(MINUTE_MS);
  expect(mail.heard.flat()).toContain("new");
});

test("of two passes at once one sends each alert", async () => {
  const chat = makeReceiver("chat");
  const outbox = setupOutbox([onNotify(chat)]);
  for (const id of ["a", "b", "c"]) await outbox.put(id);
  await Promise.all([deliver(outbox.deps), deliver(outbox.deps)]);
  await outbox.pass(MINUTE_MS);
  expect(chat.heard.flat()).toEqual(["a", "b", "c"]);
});

test("an index that is behind by minutes does not make an alert be told again", async () => {
  const chat = makeReceiver("chat");
  const outbox = setupOutbox([onNotify(chat)]);
  await outbox.put("a");
  const before = await outbox.table.query({ ...ANY_ALERT, pk: WAITING_ALERTS });
  await outbox.pass();
  outbox.nowMs += 10 * MINUTE_MS;
  await deliver({ ...outbox.deps, table: { ...outbox.table, query: async () => before } });
  expect(chat.heard).toEqual([["a"]]);
});

test("an alert that nobody can read is set aside and said, and the others are told", async () => {
  const chat = makeReceiver("chat");
  const outbox = setupOutbox([onNotify(chat)]);
  await outbox.put("a");
  await outbox.put("b");
  await outbox.table.write({ key: alertKey("a"), changes: [set("alert", "{")] });
  await outbox.pass();
  await outbox.pass(MINUTE_MS);
  expect(chat.heard).toEqual([["b"]]);
  expect(outbox.notices.filter(({ code }) => code === "alert-untold")).toHaveLength(1);
  expect((await outbox.item("a"))?.["badMonth"]).toBe("A#2026-10");
});
