import type { Json } from "./json.ts";
import type { Reader } from "./read-options.ts";

/** A value that JSON carries unchanged. */
export const json: Reader<Json> = (value, place) => {
  try {
    const carried: unknown = JSON.parse(JSON.stringify(value));
    if (sameJson(carried, value)) return carried as Json;
  } catch {
    // Said below: a cycle, a BigInt or a function has no JSON text.
  }
  return place.fault(
    "JSON cannot carry this value unchanged",
    "use texts, numbers, booleans, null, lists and plain objects",
  );
};

const sameJson = (a: unknown, b: unknown): boolean => {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return Object.is(a, b);
  const names = Object.keys(b);
  if (Array.isArray(a) !== Array.isArray(b) || Object.keys(a).length !== names.length) return false;
  return names.every((key) => sameJson(Reflect.get(a, key), Reflect.get(b, key)));
};
