import { expect, test } from "vitest";
import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { testReason } from "../../../lib/core/alarms/alarm-change.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { Unavailable } from "../../../lib/core/errors.ts";
import { CURSOR_KEY } from "../../../lib/core/items.ts";
import { AWS_TIMINGS } from "../../../lib/core/settings.ts";
import { type Key, set } from "../../../lib/core/write.ts";
import { notifierHandler } from "../../../lib/inbound/notifier.ts";
import type { Table } from "../../../lib/ports/table.ts";
import { msOf } from "../../support/path.ts";
import { makeReceiver, onNotify, onPage, setupOutbox } from "./setup.ts";

const NOW = "2026-10-08T02:00:00Z";
const definitions = new Map(
  alarmsOf({ jobs: [], pools: { default: { memoryMb: 256, concurrency: 10 } } }).map((each) => [
    `notes-prod-${each.key}`,
    each,
  ]),
);

/** The fields that CloudWatch publishes and we read, as it spells them. */
const alarmText = (name: string, state: string, at: string, reason = "Threshold Crossed"): string =>
  JSON.stringify({
    AlarmName: name,
    AlarmDescription: "somebody else's words",
    NewStateValue: state,
    OldStateValue: state === "OK" ? "ALARM" : "OK",
    NewStateReason: reason,
    StateChangeTime: at,
  });

/** As the topic puts them into the queue. */
const snsEvent = (...messages: readonly string[]) =>
  queueEvent(
    ...messages.map((Message, i) => JSON.stringify({ Type: "Notification", MessageId: `m${i}`, Message })),
  );

const queueEvent = (...bodies: readonly string[]) => ({
  Records: bodies.map((body, i) => ({ messageId: `q${i}`, body })),
});

const setupNotifier = async ({ watchdog }: { watchdog: "alive" | "silent" } = { watchdog: "alive" }) => {
  const [chat, pager] = [makeReceiver("chat", 1), makeReceiver("pager", 1)];
  const outbox = setupOutbox([onNotify(chat), onPage(pager)], { now: NOW });
  const silentMs = watchdog === "alive" ? 60_000 : 180_000;
  const untilMs = msOf(NOW) - AWS_TIMINGS.clockBoundMs - silentMs;
  await outbox.table.write({ key: CURSOR_KEY, changes: [set("notesUntilMs", untilMs)] });
  const handle = notifierHandler({
    ...outbox.deps,
    timings: AWS_TIMINGS,
    definitionOf: (name) => definitions.get(name),
  });
  return { chat, pager, outbox, handle };
};

const SILENT = "notes-prod-watchdog-silent";
const RINGS = alarmText(SILENT, "ALARM", "2026-10-08T02:00:00.250+0000");
const ENDS = alarmText(SILENT, "OK", "2026-10-08T02:10:00.250+0000");
const RING_ID = `${SILENT}~2026-10-08T02:00:00.250Z`;

test("an alarm about the machinery is told at once on its topic, and its end once", async () => {
  const { chat, pager, handle, outbox } = await setupNotifier();
  await handle(snsEvent(RINGS));
  expect([chat.heard, pager.heard]).toEqual([[[RING_ID]], [[RING_ID]]]);
  await handle(snsEvent(ENDS));
  await handle(snsEvent(alarmText(SILENT, "OK", "2026-10-08T02:30:00.000+0000")));
  expect(pager.heard).toEqual([[RING_ID], [`${RING_ID}~over`]]);
  expect(JSON.parse(String((await outbox.item(RING_ID))?.["alert"]))).toMatchObject({
    topic: "page",
    kind: "alarm",
    alarm: SILENT,
    reason: expect.stringMatching(/^The watchdog has made no good pass .+ \(Threshold Crossed\)$/),
    remedy: expect.stringContaining("belfry-watchdog"),
  });
});

test("the same change delivered again tells nothing again", async () => {
  const { pager, handle } = await setupNotifier();
  await handle(snsEvent(RINGS, RINGS));
  await handle(snsEvent(RINGS));
  await handle(snsEvent(ENDS, ENDS));
  await handle(snsEvent(RINGS));
  expect(pager.heard.flat()).toEqual([RING_ID, `${RING_ID}~over`]);
});

test("an end that overtakes its alarm is told after it", async () => {
  const { pager, handle } = await setupNotifier();
  await handle(snsEvent(ENDS));
  expect(pager.heard).toEqual([]);
  await handle(snsEvent(RINGS));
  expect(pager.heard.flat()).toEqual([RING_ID, `${RING_ID}~over`]);
});

test("an alarm that rings again is told again", async () => {
  const { pager, handle } = await setupNotifier();
  const again = alarmText(SILENT, "ALARM", "2026-10-08T03:00:00.000+0000");
  await handle(snsEvent(RINGS));
  await handle(snsEvent(ENDS));
  await handle(snsEvent(again));
  expect(pager.heard.flat()).toEqual([RING_ID, `${RING_ID}~over`, `${SILENT}~2026-10-08T03:00:00.000Z`]);
});

test("an old change that comes again does not hide the end of a newer one", async () => {
  const { pager, handle } = await setupNotifier();
  await handle(snsEvent(RINGS));
  await handle(snsEvent(ENDS));
  await handle(snsEvent(alarmText(SILENT, "ALARM", "2026-10-08T03:00:00.000+0000")));
  await handle(snsEvent(RINGS));
  await handle(snsEvent(ENDS));
  await handle(snsEvent(alarmText(SILENT, "OK", "2026-10-08T03:10:00.000+0000")));
  const again = `${SILENT}~2026-10-08T03:00:00.000Z`;
  expect(pager.heard.flat()).toEqual([RING_ID, `${RING_ID}~over`, again, `${again}~over`]);
});

test("an alarm about jobs is the watchdog's to tell while it works", async () => {
  const { chat, handle } = await setupNotifier({ watchdog: "alive" });
  await handle(snsEvent(alarmText("notes-prod-runs-dead", "ALARM", "2026-10-08T02:00:00.000+0000")));
  await handle(snsEvent(alarmText("notes-prod-runs-dead", "OK", "2026-10-08T02:01:00.000+0000")));
  expect(chat.heard).toEqual([]);
});

test("an alarm about jobs is told while the watchdog is silent, and then its end, whoever works by then", async () => {
  const { chat, handle, outbox } = await setupNotifier({ watchdog: "silent" });
  await handle(snsEvent(alarmText("notes-prod-runs-dead", "ALARM", "2026-10-08T02:00:00.000+0000")));
  await outbox.table.write({ key: CURSOR_KEY, changes: [set("notesUntilMs", msOf(NOW))] });
  await handle(snsEvent(alarmText("notes-prod-runs-dead", "OK", "2026-10-08T02:01:00.000+0000")));
  const id = "notes-prod-runs-dead~2026-10-08T02:00:00.000Z";
  expect(chat.heard).toEqual([[id], [`${id}~over`]]);
});

test("an alarm without data, and the end of one that was never told, tell nothing", async () => {
  const { chat, handle } = await setupNotifier();
  await handle(snsEvent(alarmText(SILENT, "INSUFFICIENT_DATA", "2026-10-08T02:00:00.000+0000"), ENDS));
  expect(chat.heard).toEqual([]);
});

test("an alarm that Belfry does not know is told in its own words", async () => {
  const { chat, handle, outbox } = await setupNotifier();
  await handle(snsEvent(alarmText("disk-full", "ALARM", "2026-10-08T02:00:00.000+0000")));
  expect(chat.heard).toEqual([["disk-full~2026-10-08T02:00:00.000Z"]]);
  expect(String((await outbox.item("disk-full~2026-10-08T02:00:00.000Z"))?.["alert"])).toContain(
    "somebody else's words (Threshold Crossed)",
  );
});

test("what is no alarm and comes to the alarms' topic is told and not dropped", async () => {
  const { chat, handle } = await setupNotifier();
  await handle(snsEvent("hello", '{"AlarmName":"x"}'));
  expect(chat.heard.flat().sort()).toEqual(["sns~m0", "sns~m1"]);
});

test("an alarm that is rung for a test is told as a test on the topic that was asked for", async () => {
  const { chat, pager, handle } = await setupNotifier();
  const reason = testReason("page", "test-1");
  await handle(
    snsEvent(alarmText("notes-prod-poison-messages", "ALARM", "2026-10-08T02:00:00.000+0000", reason)),
  );
  await handle(snsEvent(alarmText("notes-prod-poison-messages", "OK", "2026-10-08T02:01:00.000+0000")));
  expect([chat.heard, pager.heard]).toEqual([[["test-1"]], [["test-1"]]]);
});

test("the minute of its own schedule delivers what waits, and counts as a pass", async () => {
  const { chat, handle, outbox } = await setupNotifier();
  await outbox.put("a");
  await handle({});
  expect(chat.heard).toEqual([["a"]]);
  expect(outbox.notices.filter(({ code }) => code === "notifier-pass")).toHaveLength(1);
});

test("what somebody else puts into the alarms' queue is told and not dropped", async () => {
  const { chat, handle } = await setupNotifier();
  expect(await handle(queueEvent("hello", "{}", "[]"))).toEqual({ batchItemFailures: [] });
  expect(chat.heard.flat().sort()).toEqual(["sns~q0", "sns~q1", "sns~q2"]);
});

/** The notifier over a table that the test takes away, and the queue, which brings what was not taken. */
const setupOutage = async () => {
  const stored = memoryTable();
  const away = { all: false, alarms: [] as string[] };
  const isAway = (key: Key): boolean => away.all || away.alarms.some((name) => key.pk.includes(name));
  const guarded = async <Answer>(key: Key, call: () => Promise<Answer>): Promise<Answer> => {
    if (isAway(key)) throw new Unavailable("test", "the table does not answer");
    return call();
  };
  const table: Table = {
    ...stored,
    get: (key, options) => guarded(key, () => stored.get(key, options)),
    write: (write) => guarded(write.key, () => stored.write(write)),
    query: (query) => guarded({ pk: query.pk, sk: "" }, () => stored.query(query)),
  };
  const chat = makeReceiver("chat", 1);
  const outbox = setupOutbox([onNotify(chat)], { now: NOW, table });
  const handle = notifierHandler({
    ...outbox.deps,
    timings: AWS_TIMINGS,
    definitionOf: (name) => definitions.get(name),
  });
  let queue = snsEvent(RINGS, alarmText(SILENT_TOO, "ALARM", "2026-10-08T02:00:00.250+0000")).Records;
  const deliverQueue = async (): Promise<void> => {
    const failed = await handle({ Records: queue }).then(
      ({ batchItemFailures }) => batchItemFailures.map(({ itemIdentifier }) => itemIdentifier),
      () => queue.map(({ messageId }) => messageId),
    );
    queue = queue.filter(({ messageId }) => failed.includes(messageId));
  };
  return { away, chat, deliverQueue, left: () => queue.length, notices: outbox.notices };
};

const SILENT_TOO = "notes-prod-alerts-failing";

test("an alarm is not lost with a table that is away for longer than anybody tries: it comes back until it is told, once", async () => {
  const { away, chat, deliverQueue, left } = await setupOutage();
  away.all = true;
  // A day, minute by minute.
  for (let minute = 0; minute < 1_440; minute++) await deliverQueue();
  expect([chat.heard, left()]).toEqual([[], 2]);
  away.all = false;
  await deliverQueue();
  await deliverQueue();
  expect(chat.heard.flat().sort()).toEqual([`${SILENT_TOO}~2026-10-08T02:00:00.250Z`, RING_ID]);
  expect(left()).toBe(0);
});

test("an alarm that cannot be stored holds up no other of its batch, and is said", async () => {
  const { away, chat, deliverQueue, left, notices } = await setupOutage();
  away.alarms = [SILENT];
  await deliverQueue();
  expect(chat.heard).toEqual([[`${SILENT_TOO}~2026-10-08T02:00:00.250Z`]]);
  expect(left()).toBe(1);
  expect(notices.map(({ code }) => code)).toContain("invocation-failed");
  away.alarms = [];
  await deliverQueue();
  expect(chat.heard.flat()).toEqual([`${SILENT_TOO}~2026-10-08T02:00:00.250Z`, RING_ID]);
});
