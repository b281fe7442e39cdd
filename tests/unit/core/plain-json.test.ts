import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Json } from "../../../lib/core/json.ts";
import { isPlain } from "../../../lib/core/plain-json.ts";

const nested = (depth: number): Json => (depth === 0 ? 1 : [nested(depth - 1)]);

test("what is plain is an attribute as it is, and comes back the same", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (any) => {
      const value = JSON.parse(JSON.stringify(any)) as Json;
      if (isPlain(value)) expect(unmarshall(marshall({ value }))).toEqual({ value });
    }),
  );
});

test.each([
  ["a number over 2^53", 2 ** 60],
  ["a number under what the table keeps", [-5e-324]],
  ["a name that is empty", { a: [{ "": 1 }] }],
  ["half a character", ["\ud800"]],
  ["half a character in a name", { "\udc00": 1 }],
  ["seventeen levels", nested(17)],
])("%s is not plain", (_what, value) => {
  expect(isPlain(value)).toBe(false);
});

test.each([
  ["nothing", null],
  ["the largest whole number", [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 0, 1.5]],
  ["empty things", ["", [], {}]],
  ["null bytes", "a\u0000b"],
  ["sixteen levels", nested(16)],
])("%s is plain", (_what, value) => {
  expect(isPlain(value)).toBe(true);
});
