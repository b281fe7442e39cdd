import fc from "fast-check";
import { expect, test } from "vitest";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import {
  dueMsOf,
  messageText,
  parseMessage,
  type RunMessage,
  TRIGGERS,
} from "../../../lib/core/runs/message.ts";
import { parseSchedulerEvent, schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { msOf } from "../../support/path.ts";

const message: fc.Arbitrary<RunMessage> = fc.record(
  {
    subject: fc.constantFrom("report", "automation:7"),
    slotKey: fc.integer({ min: 0, max: 4_102_444_800_000 }).map(slotKeyOf),
    epoch: fc.integer({ min: 1, max: 1_000 }),
    trigger: fc.constantFrom(...TRIGGERS),
    queuedAtMs: fc.integer({ min: 0 }),
  },
  { requiredKeys: ["subject", "slotKey", "epoch", "trigger", "queuedAtMs"] },
);

test("every message reads back as it was written", () => {
  fc.assert(
    fc.property(message, (one) => {
      expect(parseMessage(messageText(one))).toEqual(one);
    }),
  );
});

test("what newer code adds to a message does not keep older code from reading the rest", () => {
  fc.assert(
    fc.property(message, fc.dictionary(fc.string({ minLength: 20 }), fc.json()), (one, added) => {
      const text = JSON.stringify({ ...added, ...JSON.parse(messageText(one)) });
      expect(parseMessage(text)).toEqual(one);
    }),
  );
});

test("a message has no character that the queue does not take", () => {
  const subject = "a\u0000\u001f\ufffe\uffff\ud800 é \u{1f600}";
  const text = messageText({
    subject,
    slotKey: slotKeyOf(0),
    epoch: 1,
    trigger: "manual",
    queuedAtMs: 0,
  });
  expect([...text].filter((character) => character < " " || /[\ufffe\uffff]/.test(character))).toEqual([]);
  expect(text.isWellFormed()).toBe(true);
  expect(parseMessage(text).subject).toBe(subject);
});

test("any text is a message or poison, and nothing else", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      expect(() => parseMessage(text)).toThrow(expect.objectContaining({ code: "poison_message" }));
    }),
  );
});

test("the start deadline counts from the slot, or from when somebody asked", () => {
  const slotKey = "2026-10-08T02:00:00.000Z";
  const base: RunMessage = { subject: "report", slotKey, epoch: 1, trigger: "schedule", queuedAtMs: 7 };
  expect(dueMsOf(base)).toBe(msOf(slotKey));
  expect(dueMsOf({ ...base, trigger: "watchdog" })).toBe(msOf(slotKey));
  expect(dueMsOf({ ...base, trigger: "manual" })).toBe(7);
  expect(dueMsOf({ ...base, trigger: "backfill" })).toBe(7);
  expect(dueMsOf({ ...base, epoch: 2 })).toBe(7);
  expect(dueMsOf({ ...base, slotKey: `${slotKey}-k3x9f2` })).toBe(7);
});

test("a schedule's input, filled in by the scheduler, is its delivery", () => {
  const filled = { ...schedulerInput(["report", "sync"]), scheduledTime: "2026-10-08T02:00:00Z" };
  expect(parseSchedulerEvent(JSON.parse(JSON.stringify(filled)))).toEqual({
    subjects: ["report", "sync"],
    slotMs: msOf("2026-10-08T02:00:00Z"),
    isTick: false,
  });
});

test("a schedule's input that nobody filled in is refused", () => {
  expect(() => parseSchedulerEvent(schedulerInput(["report"]))).toThrow("unfilled");
});
