import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isManualKey,
  isSlotKey,
  manualSlotKey,
  readRunId,
  runIdOf,
  slotKeyOf,
  slotMsOf,
} from "../../../lib/core/identity.ts";
import { msOf } from "../../support/path.ts";

/** From 1970 to the end of the year 9999. */
const instant = fc.integer({ min: 0, max: 253_402_300_799_999 });
const subject = fc.stringMatching(/^(automation:)?[a-z][a-z0-9-]{0,47}$/);
const suffix = fc.stringMatching(/^[a-z0-9]{4,16}$/);

test("the run id of a slot is readable, and without milliseconds where there are none", () => {
  const runId = (slotKey: string) => runIdOf({ subject: "clean-sessions", slotKey });
  expect(runId(slotKeyOf(msOf("2026-10-08T02:00:00Z")))).toBe("clean-sessions~20261008T020000Z");
  expect(runId(slotKeyOf(msOf("2026-10-08T02:00:00.010Z")))).toBe("clean-sessions~20261008T020000010Z");
  expect(runId(manualSlotKey(msOf("2026-10-08T02:00:03.123Z"), "k3x9f2"))).toBe(
    "clean-sessions~20261008T020003123Z-k3x9f2",
  );
});

test("every run id reads back as the occurrence it names, and goes into a URL as it is", () => {
  fc.assert(
    fc.property(subject, instant, fc.option(suffix), (name, atMs, tail) => {
      const slotKey = tail === null ? slotKeyOf(atMs) : manualSlotKey(atMs, tail);
      const runId = runIdOf({ subject: name, slotKey });
      expect(readRunId(runId)).toEqual({ subject: name, slotKey });
      expect(encodeURIComponent(runId.replace(":", ""))).toBe(runId.replace(":", ""));
      expect(slotMsOf(slotKey)).toBe(atMs);
      expect(isManualKey(slotKey)).toBe(tail !== null);
    }),
  );
});

test("two occurrences never share a run id", () => {
  const occurrence = fc.record({ subject, slotKey: instant.map(slotKeyOf) });
  fc.assert(
    fc.property(occurrence, occurrence, (one, other) => {
      const same = one.subject === other.subject && one.slotKey === other.slotKey;
      expect(runIdOf(one) === runIdOf(other)).toBe(same);
    }),
  );
});

test("slot keys sort as their instants do", () => {
  fc.assert(
    fc.property(instant, instant, (one, other) => {
      expect(slotKeyOf(one) < slotKeyOf(other)).toBe(one < other);
    }),
  );
});

describe.each([
  "",
  "report",
  "report~",
  "~20261008T020000Z",
  "report~20261008T020000",
  "report~20260229T020000Z",
  "report~20261308T020000Z",
  "report~20261008T250000Z",
  "report~20261008T020000Z-",
  "report~20261008T020000Z-ab",
  "report~20261008T020000Z-ABCD",
  "Report~20261008T020000Z",
  "re port~20261008T020000Z",
  "report~20261008T020000Z ",
])("'%s'", (text) => {
  test("is no run id", () => {
    expect(readRunId(text)).toBeUndefined();
  });
});

test.each(["", "2026-10-08T02:00:00Z", "2026-02-29T02:00:00.000Z", "2026-10-08T02:00:00.000Z-no", "soon"])(
  "'%s' is no slot key",
  (text) => {
    expect(isSlotKey(text)).toBe(false);
    expect(() => slotMsOf(text)).toThrow(expect.objectContaining({ code: "invalid_slot_key" }));
  },
);
