import { InvalidInput } from "../errors.ts";
import type { Json } from "../json.ts";

/**
 * The shards of one run are numbered from 0. So that neither an item outgrows a write unit nor many workers write to
 * the same one, they are counted in three steps: at most 64 in a bucket, 64 buckets in a stride, 64 strides in a run.
 */
const PER_BUCKET = 64;
export const PER_STRIDE = PER_BUCKET * PER_BUCKET;
/** 64 x 64 x 64: with more, the run's own record would outgrow a write unit. */
export const MAX_SHARDS = PER_STRIDE * PER_BUCKET;

/** Ten of them in one call to the queue stay within the 64 KB that are billed as one request. */
export const SHARD_INPUT_BYTES = 4 * 1024;
const SHARD_KEY_LENGTH = 100;

/** A shard as the job's list names it. */
export interface ListedShard {
  readonly key: string;
  readonly input?: Json;
}

/** Where a shard is counted. */
export interface ShardPlace {
  readonly stride: number;
  /** Within the stride, from 0. */
  readonly bucket: number;
  /** Within the bucket, from 0. */
  readonly seat: number;
}

export const strideCount = (total: number): number => Math.ceil(total / PER_STRIDE);

/** How many shards the stride has. */
export const strideSize = (stride: number, total: number): number =>
  Math.max(0, Math.min(PER_STRIDE, total - stride * PER_STRIDE));

/** How many buckets the stride has: as few as hold its shards. */
export const bucketCount = (stride: number, total: number): number =>
  Math.ceil(strideSize(stride, total) / PER_BUCKET);

export const bucketSize = (stride: number, bucket: number, total: number): number =>
  Math.ceil((strideSize(stride, total) - bucket) / bucketCount(stride, total));

/** Neighbours lie in different buckets, so that those who work side by side seldom write to the same item. */
export const placeOfShard = (index: number, total: number): ShardPlace => {
  const stride = Math.floor(index / PER_STRIDE);
  const within = index % PER_STRIDE;
  const buckets = bucketCount(stride, total);
  return { stride, bucket: within % buckets, seat: Math.floor(within / buckets) };
};

export const indexOfShard = ({ stride, bucket, seat }: ShardPlace, total: number): number =>
  stride * PER_STRIDE + seat * bucketCount(stride, total) + bucket;

/** Every bucket of the stride, in order. */
export const bucketsOf = (stride: number, total: number): readonly number[] =>
  Array.from({ length: bucketCount(stride, total) }, (_, bucket) => bucket);

/** What to write instead is part of the message: nothing else of the error comes into the run's record. */
const refused = (code: string, message: string, instead: string): InvalidInput =>
  new InvalidInput(code, `shards: ${message}; ${instead}`, { field: "shards" });

const jsonText = (input: unknown, key: string): string | undefined => {
  try {
    return JSON.stringify(input);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    throw refused("not_json", `the input of "${key}" is nothing that JSON can carry: ${why}`, "give its id");
  }
};

const inputOf = (input: unknown, key: string): Pick<ListedShard, "input"> => {
  if (input === undefined) return {};
  const text = jsonText(input, key);
  if (text === undefined) {
    throw refused(
      "not_json",
      `the input of "${key}" is a ${typeof input}, which JSON cannot carry`,
      "give its id",
    );
  }
  const bytes = new TextEncoder().encode(text).length;
  if (bytes <= SHARD_INPUT_BYTES) return { input: JSON.parse(text) as Json };
  throw refused(
    "too_large",
    `the input of "${key}" has ${bytes} bytes of JSON; at most ${SHARD_INPUT_BYTES} fit`,
    "give the id of the data, and let the handler read it",
  );
};

const keyOf = (entry: unknown, index: number): string => {
  const key: unknown = typeof entry === "object" && entry !== null && "key" in entry ? entry.key : entry;
  if (typeof key !== "string") {
    throw refused("bad_key", `entry ${index} has no key`, "list texts, or { key: 'text', input: ... }");
  }
  if (key === "" || key.length > SHARD_KEY_LENGTH || !key.isWellFormed()) {
    throw refused(
      "bad_key",
      `the key of entry ${index} is no text of 1 to ${SHARD_KEY_LENGTH} characters`,
      "give a short name that is the same in each run, such as an id",
    );
  }
  return key;
};

/**
 * Reads what a job lists, entry by entry, in order: a text, or `{ key, input? }`.
 * @throws InvalidInput `bad_key`, `duplicate_key`, `not_json`, `too_large` (an input over 4 KB), `too_many_shards`
 */
export const shardReader = (): ((entry: unknown) => ListedShard) => {
  const indexes = new Map<string, number>();
  return (entry) => {
    const index = indexes.size;
    if (index >= MAX_SHARDS) {
      throw refused(
        "too_many_shards",
        `there are more than ${MAX_SHARDS}`,
        "let each shard do several of them",
      );
    }
    const key = keyOf(entry, index);
    const known = indexes.get(key);
    if (known !== undefined) {
      throw refused(
        "duplicate_key",
        `the key "${key}" is there twice, as entry ${known} and entry ${index}`,
        "give each shard a key of its own",
      );
    }
    indexes.set(key, index);
    const input: unknown =
      typeof entry === "object" && entry !== null && "input" in entry ? entry.input : undefined;
    return { key, ...inputOf(input, key) };
  };
};

/** How many shards may fail without failing the run. */
export type Tolerance = { readonly count: number } | { readonly percent: number };

export const toleratedOf = (tolerance: Tolerance | undefined, total: number): number => {
  if (tolerance === undefined) return 0;
  return "count" in tolerance ? tolerance.count : Math.floor((total * tolerance.percent) / 100);
};

/** Which shards of a run are over, and how many of them failed; `failed` of `done + failed`. */
export interface ShardCounts {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
}
