import { afterAll, beforeAll, expect, test } from "vitest";
import { dynamoTable } from "../../lib/adapters/dynamo/dynamo-table.ts";
import { deliver } from "../../lib/app/notify/deliver.ts";
import { makeListAlerts } from "../../lib/app/notify/list-alerts.ts";
import { notifyAlarm } from "../../lib/app/notify/notify-alarm.ts";
import { AWS_TIMINGS } from "../../lib/core/settings.ts";
import { embeddedTable } from "../support/embedded-table.ts";
import { away, makeReceiver, onNotify, onPage, refusal, setupOutbox, taken } from "../unit/notify/setup.ts";

let embedded: Awaited<ReturnType<typeof embeddedTable>>;
beforeAll(async () => {
  embedded = await embeddedTable();
});
afterAll(() => embedded.close());

const MINUTE_MS = 60_000;

test("the outbox does on DynamoDB what it does in memory: claims, marks, waits, gives up, closes, lists", async () => {
  const [chat, pager] = [makeReceiver("chat"), makeReceiver("pager", 1)];
  const table = dynamoTable(embedded.db, embedded.tableName);
  const outbox = setupOutbox([onNotify(chat), onPage(pager)], { table });
  const list = makeListAlerts(outbox.deps);
  const states = async () =>
    (await list(20)).map(({ id, waits, channels }) => [
      id,
      waits,
      ...channels.map(({ name, state }) => `${name} ${state}`),
    ]);

  chat.answer = () => away;
  await outbox.put("a", { topic: "page" });
  await outbox.put("a", { topic: "page", reason: "said again" });
  await Promise.all([deliver(outbox.deps), deliver(outbox.deps)]);
  expect(pager.heard).toEqual([["a"]]);
  expect(await states()).toEqual([["a", true, "chat waiting", "pager told"]]);

  chat.answer = (ids) => (ids.includes("b") ? refusal : taken);
  await outbox.pass(MINUTE_MS);
  await outbox.put("b");
  await outbox.pass();
  await outbox.put("c");
  await outbox.pass(1_000);
  expect(chat.heard).toEqual([["a"], ["c"]]);
  await outbox.pass(8 * 24 * 60 * MINUTE_MS);
  expect(await states()).toEqual([
    ["c", false, "chat told"],
    ["b", false, "chat given-up"],
    ["a", false, "chat told", "pager told"],
  ]);

  const alarms = { ...outbox.deps, timings: AWS_TIMINGS, definitionOf: () => undefined };
  const change = { name: "x", reason: "r" } as const;
  await notifyAlarm(alarms, { ...change, state: "over", atMs: outbox.nowMs + 2_000 });
  await notifyAlarm(alarms, { ...change, state: "ringing", atMs: outbox.nowMs });
  await notifyAlarm(alarms, { ...change, state: "ringing", atMs: outbox.nowMs });
  await outbox.pass(5_000);
  expect(chat.heard.at(-1)).toHaveLength(2);
});
