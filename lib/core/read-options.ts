import { durationMs, durationText } from "./duration.ts";
import { InvalidInput } from "./errors.ts";
import { isRecord } from "./json.ts";

/** One thing that is wrong with what somebody wrote, and what to write instead. */
export interface Fault {
  /** The option, with its path: `retry.firstWait`, `schedule[1]`. */
  readonly field?: string;
  readonly message: string;
  readonly hint?: string;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** Where a reader stands, and where it puts what it finds wrong, so that one pass finds all faults. */
export interface Place {
  readonly field: string;
  /** Notes the fault; undefined, so that a reader can return it. */
  fault(message: string, hint?: string): undefined;
  inner(path: string): Place;
}

/** The value, or undefined after a fault has been noted. */
export type Reader<T> = (value: unknown, place: Place) => T | undefined;

export const placeOf = (field: string, faults: Fault[]): Place => ({
  field,
  fault: (message, hint) => {
    faults.push({ ...(field && { field }), message, ...(hint !== undefined && { hint }) });
    return undefined;
  },
  inner: (path) => placeOf(field && !path.startsWith("[") ? `${field}.${path}` : `${field}${path}`, faults),
});

/** Runs what throws `InvalidInput` and notes it as a fault of this place. */
export const noted = <T>(place: Place, read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    return place.fault(error.message, error.hint);
  }
};

const shown = (value: unknown): string => {
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  return typeof value === "string" ? JSON.stringify(value) : String(value);
};

export const text: Reader<string> = (value, place) => {
  if (typeof value !== "string") return place.fault(`${shown(value)} is not a text`);
  if (value.trim() === "") return place.fault("the text is empty", "leave the option out instead");
  if (value.length > 500) return place.fault(`the text has ${value.length} characters; at most 500 fit`);
  return value;
};

export const flag: Reader<boolean> = (value, place) =>
  typeof value === "boolean" ? value : place.fault("this is neither true nor false");

/** Letters to add, drop or change to get from one word to the other. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
};

/** The name that was probably meant, when one is near enough. */
export const nearest = (word: string, names: readonly string[]): string | undefined => {
  const limit = Math.ceil(word.length / 3);
  const near = names
    .map((name) => ({ name, apart: distance(word.toLowerCase(), name.toLowerCase()) }))
    .filter(({ apart }) => apart <= limit)
    .sort((a, b) => a.apart - b.apart);
  return near[0]?.name;
};

export const didYouMean = (word: string, names: readonly string[]): string | undefined => {
  const name = nearest(word, names);
  return name === undefined ? undefined : `did you mean "${name}"?`;
};

/** One of a few words; `later` are words that are known and not accepted yet. */
export const choice =
  <const W extends string>(words: readonly W[], later: readonly string[] = []): Reader<W> =>
  (value, place) => {
    const found = words.find((word) => word === value);
    if (found !== undefined) return found;
    const accepted = words.map((word) => `"${word}"`).join(", ");
    const is =
      typeof value === "string" && later.includes(value) ? "is not available yet" : "is not accepted";
    return place.fault(`${shown(value)} ${is}`, `write one of ${accepted}`);
  };

export const number =
  ({ min, max, whole = false }: { min: number; max: number; whole?: boolean }): Reader<number> =>
  (value, place) => {
    const fits =
      typeof value === "number" && value >= min && value <= max && (!whole || Number.isInteger(value));
    if (fits) return value;
    return place.fault(`${shown(value)} is not a ${whole ? "whole number" : "number"} from ${min} to ${max}`);
  };

/** Milliseconds; bounds are included, `why` says where the upper one comes from. */
export const duration =
  ({ minMs = 1_000, maxMs, why }: { minMs?: number; maxMs: number; why: string }): Reader<number> =>
  (value, place) => {
    const ms = noted(place, () => durationMs(value, place.field));
    if (ms === undefined) return undefined;
    if (ms < minMs) return place.fault(`${shown(value)} is too short; at least ${durationText(minMs)}`);
    if (ms > maxMs) return place.fault(`${shown(value)} is too long; at most ${durationText(maxMs)}`, why);
    return ms;
  };

export const matching =
  (pattern: RegExp, hint: string): Reader<string> =>
  (value, place) =>
    typeof value === "string" && pattern.test(value)
      ? value
      : place.fault(`${shown(value)} is no name`, hint);

/** A list with at least one entry. */
export const listOf =
  <T>(read: Reader<T>): Reader<readonly T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) return place.fault(`${shown(value)} is not a list`);
    if (value.length === 0) return place.fault("the list is empty", "leave the option out instead");
    return value.flatMap((entry: unknown, i) => read(entry, place.inner(`[${i}]`)) ?? []);
  };

/** One value, or a list of them. */
export const oneOrMore =
  <T>(read: Reader<T>): Reader<readonly T[]> =>
  (value, place) => {
    if (Array.isArray(value)) return listOf(read)(value, place);
    const one = read(value, place);
    return one === undefined ? undefined : [one];
  };

type Shape = { readonly [name: string]: Reader<unknown> };
type Read<S extends Shape> = { readonly [K in keyof S]?: NonNullable<ReturnType<S[K]>> };

/**
 * An object with these options and no others, each of which may be absent. `later` are options that are known
 * and not accepted yet.
 */
export const record =
  <S extends Shape>(shape: S, later: readonly string[] = []): Reader<Read<S>> =>
  (value, place) => {
    if (!isRecord(value)) return place.fault(`${shown(value)} is not an object`);
    const given = Object.entries(value).filter(([, option]) => option !== undefined);
    const read = given.map(([name, option]) => {
      const reader = Object.hasOwn(shape, name) ? shape[name] : undefined;
      if (!reader) return [name, refuse(name, Object.keys(shape), later, place.inner(name))];
      return [name, reader(option, place.inner(name))];
    });
    // The one place where a table of readers becomes the type that it describes.
    return Object.fromEntries(read) as Read<S>;
  };

const refuse = (name: string, names: readonly string[], later: readonly string[], place: Place): undefined =>
  later.includes(name)
    ? place.fault("this option is not available yet", "leave it out")
    : place.fault("there is no such option", didYouMean(name, names) ?? `options are ${names.join(", ")}`);

/** The same without what is undefined. */
export const defined = <T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  // `fromEntries` forgets the names that it is given.
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
