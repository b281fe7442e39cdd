import fc from "fast-check";
import { expect, test } from "vitest";
import { InvalidInput } from "../../../lib/core/errors.ts";
import { boundedJson, errorFacts, toJson, trimmed } from "../../../lib/core/json-safe.ts";

test("what JSON can carry comes through unchanged", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.stringify(toJson(value))).toBe(JSON.stringify(value));
    }),
  );
});

test("anything at all becomes something that JSON can carry", () => {
  fc.assert(
    fc.property(
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withSparseArray: true }),
      (value) => {
        const safe = toJson(value);
        if (safe !== undefined) expect(JSON.parse(JSON.stringify(safe))).toEqual(safe);
      },
    ),
  );
});

test("negative zero is zero, as JSON has it", () => {
  expect(toJson([-0])).toEqual([0]);
});

test("the same object twice is no cycle; itself inside itself is", () => {
  const shared = { a: 1 };
  expect(toJson([shared, shared])).toEqual([{ a: 1 }, { a: 1 }]);
  const ring: { self?: object } = {};
  ring.self = ring;
  expect(toJson(ring)).toEqual({ self: "[circular]" });
});

test("a depth that would overflow the stack is cut off", () => {
  let deep: object = {};
  for (let n = 0; n < 100_000; n++) deep = { deep };
  expect(JSON.stringify(toJson(deep))).toContain("[too deep]");
});

test("a trimmed text has at most so many bytes, whole characters, and says how many it had", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.integer({ min: 60, max: 400 }),
      (text, limit) => {
        const kept = trimmed(text.toWellFormed(), limit);
        expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(limit);
        expect(kept.isWellFormed()).toBe(true);
      },
    ),
  );
  expect(trimmed("é".repeat(100), 60)).toBe(`${"é".repeat(18)}… [trimmed: 200 bytes]`);
  expect(trimmed("short", 60)).toBe("short");
});

test("a value with too much text becomes the beginning of its text", () => {
  expect(boundedJson({ a: 1 }, 100)).toEqual({ a: 1 });
  expect(boundedJson({ text: "x".repeat(1_000) }, 100)).toMatch(/^\{"text":"x+… \[trimmed: 1011 bytes\]$/);
});

test("anything that is thrown has a name and a message", () => {
  fc.assert(
    fc.property(fc.anything(), (thrown) => {
      const { name, message } = errorFacts(thrown);
      expect(name.length).toBeGreaterThan(0);
      expect(typeof message).toBe("string");
    }),
  );
});

test("what to write instead is told with the error that says what is wrong", () => {
  const { message } = errorFacts(new InvalidInput("bad", "the list is empty", { hint: "leave it out" }));
  expect(message).toBe("the list is empty (leave it out)");
  expect(errorFacts(new InvalidInput("bad", "the list is empty")).message).toBe("the list is empty");
});
