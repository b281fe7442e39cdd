import { InvalidInput } from "./errors.ts";
import type { Json } from "./json.ts";

/** Deeper values are cut off: no person reads them, and recursion must end before the stack does. */
const DEEPEST = 50;

/**
 * Any value as JSON carries it, whatever it is and whatever its getters do; undefined where JSON has nothing
 * (undefined itself). What JSON cannot carry becomes a text: BigInt its digits, a function or symbol its name,
 * a cycle `[circular]`, a getter that throws `[unreadable]`. Never throws.
 */
export const toJson = (value: unknown): Json | undefined => convert(value, []);

const convert = (value: unknown, above: readonly object[]): Json | undefined => {
  switch (typeof value) {
    case "undefined":
      return undefined;
    case "string":
      return value.toWellFormed();
    case "boolean":
      return value;
    case "number":
      // JSON has no negative zero.
      return Number.isFinite(value) ? value + 0 : String(value);
    case "bigint":
    case "symbol":
      return String(value);
    case "object":
    case "function":
      return guarded(() => convertObject(value, above), "[unreadable]");
  }
};

const convertObject = (value: object | null, above: readonly object[]): Json | undefined => {
  if (value === null) return null;
  if (typeof value === "function") return `[function ${String(value.name).slice(0, 100)}]`;
  if (above.includes(value)) return "[circular]";
  if (above.length >= DEEPEST) return "[too deep]";
  const inside = [...above, value];
  if (value instanceof Error) return { ...errorFacts(value) };
  if ("toJSON" in value && typeof value.toJSON === "function") return convert(value.toJSON(""), inside);
  if (Array.isArray(value)) return Array.from(value, (entry) => convert(entry, inside) ?? null);
  return Object.fromEntries(
    Object.keys(value).flatMap((key) => {
      const carried = guarded(() => convert(Reflect.get(value, key), inside), "[unreadable]");
      return carried === undefined ? [] : [[key.toWellFormed(), carried]];
    }),
  );
};

const guarded = <T, F>(read: () => T, fallback: F): T | F => {
  try {
    return read();
  } catch {
    return fallback;
  }
};

/** At most so many bytes of UTF-8, with a mark where something was taken off. */
export const trimmed = (text: string, maxBytes: number): string => {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = new TextEncoder().encode(text).length;
  if (bytes <= maxBytes) return text;
  const mark = `… [trimmed: ${bytes} bytes]`;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes - mark.length - 2));
  return text.slice(0, read) + mark;
};

/** The value, when its JSON text has at most so many bytes, else the beginning of that text with a mark. */
export const boundedJson = (value: Json, maxBytes: number): Json => {
  const text = JSON.stringify(value);
  const kept = trimmed(text, maxBytes);
  return kept === text ? value : kept;
};

const NAME_BYTES = 200;
const MESSAGE_BYTES = 4 * 1024;
const STACK_BYTES = 16 * 1024;
const CAUSES = 5;

/**
 * Name, message and stack of anything that was thrown, each bounded; causes stand below the stack. What to write instead
 * is part of the message, since nothing else of an error is kept. Never throws.
 */
export const errorFacts = (
  thrown: unknown,
): { readonly name: string; readonly message: string; readonly stack?: string } => {
  const name = textOf(thrown, "name");
  const message = textOf(thrown, "message");
  const stack = stackOf(thrown, CAUSES);
  const isError = typeof thrown === "object" && thrown !== null && (message ?? stack) !== undefined;
  return {
    name: trimmed(isError ? (name ?? "Error") : "NonError", NAME_BYTES),
    message: trimmed((isError ? message : undefined) ?? described(thrown), MESSAGE_BYTES) + hintOf(thrown),
    ...(stack !== undefined && { stack: trimmed(stack, STACK_BYTES) }),
  };
};

const hintOf = (thrown: unknown): string =>
  thrown instanceof InvalidInput && thrown.hint !== undefined ? ` (${thrown.hint})` : "";

const textOf = (value: unknown, key: string): string | undefined => {
  const found = guarded(
    () => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
    undefined,
  );
  return typeof found === "string" ? found.toWellFormed() : undefined;
};

const described = (thrown: unknown): string => {
  if (typeof thrown === "string") return thrown.toWellFormed();
  if (guarded(() => thrown instanceof Error, true)) return "[unreadable]";
  return guarded(() => JSON.stringify(toJson(thrown)) ?? "undefined was thrown", "[unreadable]");
};

const stackOf = (thrown: unknown, causes: number): string | undefined => {
  const stack = textOf(thrown, "stack");
  if (stack === undefined || typeof thrown !== "object" || thrown === null || causes === 0) return stack;
  const parts: readonly unknown[] = guarded(() => {
    const errors: unknown = Reflect.get(thrown, "errors");
    return [Reflect.get(thrown, "cause"), ...(Array.isArray(errors) ? errors.slice(0, CAUSES) : [])];
  }, []);
  const below = parts
    .filter((part) => part !== undefined && part !== null)
    .map((part) => `Caused by: ${stackOf(part, causes - 1) ?? textOf(part, "message") ?? described(part)}`);
  return [stack, ...below].join("\n");
};
