import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { InvalidInput } from "../lib/core/errors.ts";
import type { Json } from "../lib/core/json.ts";

const SPACE = /[ \t\n\r]*/y;
// From the space on: control characters must be escaped.
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;

/** The end of what the pattern matches from there on, or the same place. */
const skip = (text: string, pattern: RegExp, from: number): number => {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
};

class Broken {
  readonly offset: number;
  constructor(offset: number) {
    this.offset = offset;
  }
}

const string = (text: string, from: number): number => {
  const end = skip(text, STRING, from);
  if (end === from || text[end] !== '"') throw new Broken(end);
  return end + 1;
};

/** Members between brackets, with commas between them and none at the end. */
const members = (
  text: string,
  from: number,
  close: string,
  member: (text: string, from: number) => number,
): number => {
  let at = skip(text, SPACE, from);
  if (text[at] === close) return at + 1;
  for (;;) {
    at = skip(text, SPACE, member(text, skip(text, SPACE, at)));
    if (text[at] === close) return at + 1;
    if (text[at] !== ",") throw new Broken(at);
    at += 1;
  }
};

const pair = (text: string, from: number): number => {
  const colon = skip(text, SPACE, string(text, from));
  if (text[colon] !== ":") throw new Broken(colon);
  return value(text, skip(text, SPACE, colon + 1));
};

const value = (text: string, from: number): number => {
  if (text[from] === "{") return members(text, from + 1, "}", pair);
  if (text[from] === "[") return members(text, from + 1, "]", value);
  if (text[from] === '"') return string(text, from);
  const end = skip(text, SCALAR, from);
  if (end === from) throw new Broken(from);
  return end;
};

/**
 * Where the text stops being JSON: the offset of the first character that cannot stand there, which is the length of
 * the text when it only ends too early. Node's own message names a place for some faults and not for others.
 */
export const brokenAt = (text: string): number => {
  try {
    return skip(text, SPACE, value(text, skip(text, SPACE, 0)));
  } catch (error) {
    if (error instanceof Broken) return error.offset;
    throw error;
  }
};

const placeOf = (text: string, offset: number): string => {
  const before = text.slice(0, offset).split("\n");
  const found = text[offset] === undefined ? "the text ends there" : `found ${JSON.stringify(text[offset])}`;
  return `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}: ${found}`;
};

/** @throws InvalidInput (`invalid_json`) that names the place. */
export const parseInput = (text: string, source: string): Json => {
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    const place = placeOf(text, brokenAt(text));
    throw new InvalidInput("invalid_json", `${source} is no JSON at ${place}`, { field: "input" }, { cause });
  }
};

const readText = async (reading: Promise<string>, name: string): Promise<string> => {
  try {
    return await reading;
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable";
    throw new InvalidInput(
      "unreadable_input",
      `${name} cannot be read: ${why}`,
      { field: "input" },
      { cause },
    );
  }
};

/**
 * The value of `--input`: JSON text, `@<file>`, or `-` for standard input up to its end, however late that comes.
 * @throws InvalidInput (`invalid_json`, `unreadable_input`)
 */
export const readInput = async (
  given: string,
  stdin: () => Readable = () => process.stdin,
): Promise<Json> => {
  const read = async (reading: Promise<string>, name: string) =>
    parseInput(await readText(reading, name), name);
  // By its stream: a read of the descriptor fails while whoever writes into the pipe has not yet done so.
  if (given === "-") return read(textOf(stdin()), "standard input");
  if (given.startsWith("@")) return read(readFile(given.slice(1), "utf8"), given.slice(1));
  return parseInput(given, "--input");
};
