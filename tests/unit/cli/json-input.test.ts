import { PassThrough } from "node:stream";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { brokenAt, parseInput, readInput } from "../../../cli/json-input.ts";

test.each([
  ["", 0],
  ["{", 1],
  ['{"a": 1', 7],
  ["{a: 1}", 1],
  ['{"a" 1}', 5],
  ['{"a": 1,}', 8],
  ["[1,]", 3],
  ["[1 2]", 3],
  ["tru", 0],
  ["01", 0],
  ["1.", 0],
  ["[1] []", 4],
  ['"a\nb"', 2],
  ['"\\x"', 1],
  ['"abc', 4],
  ["undefined", 0],
])("%j stops being JSON at %d", (text, offset) => {
  expect(brokenAt(text)).toBe(offset);
  expect(() => JSON.parse(text)).toThrow();
});

test("the message names line, column and what is there", () => {
  expect(() => parseInput('{\n  "a": 1,\n  b: 2\n}', "input.json")).toThrow(
    'input.json is no JSON at line 3, column 3: found "b"',
  );
  expect(() => parseInput("[1", "--input")).toThrow(
    "--input is no JSON at line 1, column 3: the text ends there",
  );
});

test("whatever JSON there is, is JSON to its end", async () => {
  const property = fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom(undefined, 2), (text, indent) => {
    const spaced = JSON.stringify(JSON.parse(text), undefined, indent);
    expect(brokenAt(spaced)).toBe(spaced.length);
  });
  await fc.assert(property, { numRuns: 500 });
});

test("a text broken before its end is one that JSON.parse refuses, whatever its pieces", async () => {
  const pieces = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "a",
    "1",
    "-",
    ".",
    "e",
    "true",
    " ",
    "\\",
    "\n",
  );
  const texts = fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join(""));
  const property = fc.property(texts, (text) => {
    const offset = brokenAt(text);
    expect(offset).toBeLessThanOrEqual(text.length);
    if (offset < text.length) expect(() => JSON.parse(text)).toThrow();
  });
  await fc.assert(property, { numRuns: 2_000 });
});

test("standard input is waited for, and taken up to its end", async () => {
  const stdin = new PassThrough();
  const read = readInput("-", () => stdin);
  await new Promise(setImmediate);
  stdin.write('{"a":');
  await new Promise(setImmediate);
  stdin.end(" 1}");
  expect(await read).toEqual({ a: 1 });
});
