import { applied, holds, type Item, type Key, type Value, type Write } from "../../core/write.ts";
import type { Query, Table } from "../../ports/table.ts";

/** Beyond the port, for tests: everything in the table, in order of its key. */
export interface MemoryTable extends Table {
  items(): readonly Item[];
  /** Removes what a time to live has removed by then. */
  expire(nowMs: number): void;
}

const textOf = (item: Item, name: string): string => String(item[name] ?? "");
const byText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0);

/** A caller that changes what it was given must not change the table. (`structuredClone` takes ten times as long.) */
const copyOf = <Some extends Value>(value: Some): Some => copied(value) as Some;
const copied = (value: Value): Value => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copied);
  if (value instanceof Set) return new Set(value);
  const copy: Record<string, Value> = {};
  for (const [name, member] of Object.entries(value)) copy[name] = copied(member);
  return copy;
};

/** Items of one partition key, and their sort keys in order. */
interface Partition {
  readonly items: Map<string, Item>;
  readonly keys: string[];
}

/** Where the key is, or would be, in the ordered keys. */
const placeOf = (keys: readonly string[], key: string): number => {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] ?? "") < key) low = middle + 1;
    else high = middle;
  }
  return low;
};

const put = ({ items, keys }: Partition, sk: string, item: Item): void => {
  if (!items.has(sk)) keys.splice(placeOf(keys, sk), 0, sk);
  items.set(sk, item);
};

const rangeOf = ({ items, keys }: Partition, { first, last }: Query): readonly Item[] => {
  const found: Item[] = [];
  for (let place = placeOf(keys, first); place < keys.length; place++) {
    const sk = keys[place] ?? "";
    if (sk > last) break;
    const item = items.get(sk);
    if (item !== undefined) found.push(item);
  }
  return found;
};

const badOnes = (all: Iterable<Partition>, { pk, first, last }: Query): readonly Item[] =>
  [...all]
    .flatMap(({ items }) => [...items.values()])
    .filter((item) => item["badMonth"] === pk)
    .filter((item) => textOf(item, "badKey") >= first && textOf(item, "badKey") <= last)
    .sort((left, right) => byText(textOf(left, "badKey"), textOf(right, "badKey")));

/** As DynamoDB, which takes no write that changes the same attribute twice, or a name in a map that it replaces. */
const checkPaths = ({ changes }: Write): void => {
  const paths = changes.map(({ path }) => (typeof path === "string" ? [path] : path));
  for (const [index, path] of paths.entries()) {
    const twice = paths.some(
      (other, place) => place !== index && path.every((name, part) => other[part] === name),
    );
    if (twice) throw new TypeError(`two changes of one write overlap at ${path.join(".")}`);
  }
};

/** A table in this process's memory. Every read is consistent. */
export const memoryTable = (): MemoryTable => {
  const partitions = new Map<string, Partition>();
  const partitionOf = (pk: string): Partition => {
    const known = partitions.get(pk) ?? { items: new Map(), keys: [] };
    partitions.set(pk, known);
    return known;
  };
  const copyAt = ({ pk, sk }: Key): Item | undefined => {
    const item = partitions.get(pk)?.items.get(sk);
    return item && copyOf(item);
  };

  const matching = (query: Query): readonly Item[] => {
    if (query.index === "bad") return badOnes(partitions.values(), query);
    const partition = partitions.get(query.pk);
    return partition === undefined ? [] : rangeOf(partition, query);
  };

  return {
    async write(write) {
      checkPaths(write);
      const { pk, sk } = write.key;
      const before = partitions.get(pk)?.items.get(sk);
      if (!holds(write.condition, before)) return { written: false, item: copyAt(write.key) };
      const after = copyOf(applied(write, before));
      put(partitionOf(pk), sk, after);
      return { written: true, item: copyOf(after) };
    },
    async get(key) {
      return copyAt(key);
    },
    async getMany(keys) {
      return keys.map(copyAt).filter((item) => item !== undefined);
    },
    async query(query) {
      const found = matching(query);
      const ordered = query.descending === true ? found.toReversed() : found;
      return ordered.slice(0, query.limit).map(copyOf);
    },
    expire(nowMs) {
      for (const [pk, { items, keys }] of partitions) {
        const isOver = (sk: string) => Number(items.get(sk)?.["expiresAtS"]) * 1_000 < nowMs;
        const kept = keys.filter((sk) => !isOver(sk) || !items.delete(sk));
        keys.splice(0, keys.length, ...kept);
        if (kept.length === 0) partitions.delete(pk);
      }
    },
    items() {
      const ordered = [...partitions].sort(([left], [right]) => byText(left, right));
      return ordered.flatMap(([, { items, keys }]) =>
        keys
          .map((sk) => items.get(sk))
          .filter((item) => item !== undefined)
          .map(copyOf),
      );
    },
  };
};
