import { CloudWatchClient, SetAlarmStateCommand } from "@aws-sdk/client-cloudwatch";
import { mockClient } from "aws-sdk-client-mock";
import { expect, test } from "vitest";
import { ringAlarm } from "../../../lib/adapters/cloudwatch/ring-alarm.ts";
import { deliver } from "../../../lib/app/notify/deliver.ts";
import { makeListAlerts } from "../../../lib/app/notify/list-alerts.ts";
import { putAlert } from "../../../lib/app/notify/outbox.ts";
import { makeTestAlert } from "../../../lib/app/notify/test-alert.ts";
import { testAlert, testIn, testReason } from "../../../lib/core/alarms/alarm-change.ts";
import { alarmsOf, TEST_ALARM } from "../../../lib/core/alarms/alarms.ts";
import type { Bell } from "../../../lib/ports/bell.ts";
import { away, makeReceiver, onNotify, onPage, setupOutbox, taken } from "./setup.ts";

const SECOND_MS = 1_000;

const setupTest = (
  options: { readonly bell?: Partial<Bell>; readonly onWait?: () => Promise<void> } = {},
) => {
  const [chat, pager] = [makeReceiver("chat"), makeReceiver("pager", 1)];
  const outbox = setupOutbox([onNotify(chat), onPage(pager)]);
  const { deps } = outbox;
  const bell: Bell = {
    name: "outbox",
    channels: (topic) => (topic === "page" ? ["chat", "pager"] : ["chat"]),
    ring: async (topic, id) => {
      await putAlert(outbox.table, testAlert(topic, id, outbox.nowMs));
      await deliver(deps);
    },
    ...options.bell,
  };
  /** Time passes only while somebody waits. */
  const timers = {
    after: (waitMs: number, callback: () => void) => {
      outbox.nowMs += waitMs;
      void (options.onWait?.() ?? Promise.resolve()).then(callback);
      return { cancel: () => undefined };
    },
  };
  return { chat, pager, outbox, test: makeTestAlert({ ...deps, timers, bell }) };
};

test("a test alert goes to the channels of its topic, and each hop is told", async () => {
  const { chat, pager, test: run } = setupTest();
  const answer = await run("page");
  expect(answer).toMatchObject({
    topic: "page",
    ok: true,
    hops: [
      { name: "outbox", ok: true },
      { name: "notifier", ok: true },
      { name: "chat", ok: true },
      { name: "pager", ok: true },
    ],
  });
  expect([chat.heard, pager.heard]).toEqual([[[answer.id]], [[answer.id]]]);
});

test("a channel that does not take it fails with its reason, and the others are told all the same", async () => {
  const { chat, test: run } = setupTest();
  chat.answer = () => ({ kind: "not-now", reason: "HTTP 404: no_service" });
  const { ok, hops } = await run("page");
  expect(ok).toBe(false);
  expect(hops.slice(2)).toEqual([
    { name: "chat", ok: false, why: "HTTP 404: no_service" },
    { name: "pager", ok: true },
  ]);
});

test("a channel that an earlier alert has found away names what that met, and when it is tried again", async () => {
  const { chat, outbox, test: run } = setupTest();
  chat.answer = () => ({ kind: "not-now", reason: "HTTP 429", retryAfterMs: 3_600_000 });
  await outbox.put("a");
  await outbox.pass();
  const { hops } = await run("notify");
  expect(hops[2]).toEqual({
    name: "chat",
    ok: false,
    why: "HTTP 429; it is tried again at 2026-10-08T03:00:00Z",
  });
});

test("a channel that tells nothing here says why", async () => {
  const absent = { name: "mail", why: "only a deployed stage sends e-mail" };
  const { test: run } = setupTest({ bell: { channels: () => ["chat", absent] } });
  expect((await run("notify")).hops[3]).toEqual({ ...absent, ok: false });
});

test("a topic that no channel hears of is a fault, and nothing is rung", async () => {
  const ring = () => Promise.reject(new Error("rung"));
  const { test: run } = setupTest({ bell: { channels: () => [], ring } });
  expect(await run("page")).toMatchObject({
    ok: false,
    hops: [{ name: "channels", ok: false, why: expect.stringContaining("no channel hears of page") }],
  });
});

test("an alarm that cannot be rung is the first hop that fails", async () => {
  const ring = () => Promise.reject(new Error("AccessDenied"));
  const { test: run } = setupTest({ bell: { name: "alarm x", ring } });
  expect((await run("notify")).hops).toEqual([{ name: "alarm x", ok: false, why: "AccessDenied" }]);
});

test("an alarm whose alert comes after some seconds is waited for; one whose alert never comes fails at the notifier", async () => {
  let rung: (() => Promise<void>) | undefined;
  let waits = 0;
  const { outbox, test: run } = setupTest({
    bell: {
      ring: async (topic, id) => {
        rung = async () => {
          await putAlert(outbox.table, testAlert(topic, id, outbox.nowMs));
          await deliver(outbox.deps);
        };
      },
    },
    onWait: async () => {
      waits += 1;
      if (waits === 3) await rung?.();
    },
  });
  expect((await run("notify")).ok).toBe(true);
  const beganMs = outbox.nowMs;
  expect((await run("notify")).hops).toMatchObject([{ ok: true }, { name: "notifier", ok: false }]);
  expect(outbox.nowMs - beganMs).toBe(25 * SECOND_MS);
});

test("in a deployed stage a real alarm is rung, about the machinery, with a reason that makes it a test", async () => {
  const cloudWatch = mockClient(CloudWatchClient);
  cloudWatch.on(SetAlarmStateCommand).resolves({});
  const alarm = `notes-prod-${TEST_ALARM}`;
  await ringAlarm({ region: "us-east-1", alarm, reason: testReason("page", "test-1") });
  const [call] = cloudWatch.commandCalls(SetAlarmStateCommand);
  expect(call?.args[0].input).toMatchObject({ AlarmName: alarm, StateValue: "ALARM" });
  const reason = call?.args[0].input.StateReason ?? "";
  expect(testIn({ name: alarm, state: "ringing", atMs: 0, reason })).toMatchObject({
    id: "test-1",
    topic: "page",
    kind: "test",
  });
  const definitions = alarmsOf({ jobs: [], pools: { default: { memoryMb: 256, concurrency: 10 } } });
  expect(definitions.find(({ key }) => key === TEST_ALARM)?.about).toBe("machinery");
});

test("a test that nobody took is forgotten after ten minutes, so that it tells nobody later", async () => {
  const { chat, outbox, test: run } = setupTest();
  chat.answer = () => away;
  const { id } = await run("notify");
  await outbox.pass(11 * 60 * SECOND_MS);
  const gaveUpAtMs = outbox.nowMs;
  chat.answer = () => taken;
  await outbox.pass(11 * 60 * SECOND_MS);
  expect(chat.heard).toEqual([]);
  expect((await outbox.delivery(id, "chat"))?.gaveUpAtMs).toBe(gaveUpAtMs);
});

test("alerts are listed newest first over months, with who has them and what waits", async () => {
  const { chat, outbox } = setupTest();
  const list = makeListAlerts(outbox.deps);
  await outbox.put("a", { job: "report", runId: "report~20261008T020000Z" });
  await outbox.pass();
  outbox.nowMs = Date.parse("2026-11-30T23:00:00Z");
  await outbox.put("b");
  await outbox.pass();
  chat.answer = () => away;
  await outbox.put("c");
  await outbox.pass(SECOND_MS);
  await outbox.put("d");
  const [d, c, b, a, ...none] = await list(20);
  expect(none).toEqual([]);
  expect(a).toEqual({
    id: "a",
    topic: "notify",
    kind: "failed",
    at: "2026-10-08T02:00:00Z",
    job: "report",
    runId: "report~20261008T020000Z",
    reason: "it threw",
    waits: false,
    channels: [{ name: "chat", state: "told", attempts: 1, at: "2026-10-08T02:00:00Z" }],
  });
  expect(b?.id).toBe("b");
  expect(c).toMatchObject({
    id: "c",
    waits: true,
    channels: [{ name: "chat", state: "waiting", error: "HTTP 502", at: "2026-11-30T23:00:31Z" }],
  });
  expect(d).toMatchObject({ id: "d", waits: true, channels: [] });
  expect((await list(2)).map(({ id }) => id)).toEqual(["d", "c"]);
});
