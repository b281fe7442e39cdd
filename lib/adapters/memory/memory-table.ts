import { applied, holds, type Item, type Key } from "../../core/write.ts";
import type { Query, Table } from "../../ports/table.ts";

/** Beyond the port, for tests: everything in the table, in order of its key. */
export interface MemoryTable extends Table {
  items(): readonly Item[];
}

const SEPARATOR = "\u0000";
const textOf = (item: Item, name: string): string => String(item[name] ?? "");
const byText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0);

/** A table in this process's memory. Every read is consistent. */
export const memoryTable = (): MemoryTable => {
  const stored = new Map<string, Item>();
  const nameOf = ({ pk, sk }: Key): string => pk + SEPARATOR + sk;
  // A caller that changes what it was given must not change the table.
  const copyOf = (item: Item | undefined): Item | undefined => item && structuredClone(item);

  const matching = ({ pk, first, last, index }: Query): Item[] => {
    const [partition, sort] = index === "bad" ? ["badMonth", "badKey"] : ["pk", "sk"];
    return [...stored.values()]
      .filter((item) => item[partition] === pk)
      .filter((item) => textOf(item, sort) >= first && textOf(item, sort) <= last)
      .sort((left, right) => byText(textOf(left, sort), textOf(right, sort)));
  };

  return {
    async write(write) {
      const before = stored.get(nameOf(write.key));
      if (!holds(write.condition, before)) return { written: false, item: copyOf(before) };
      const after = structuredClone(applied(write, before));
      stored.set(nameOf(write.key), after);
      return { written: true, item: structuredClone(after) };
    },
    async get(key) {
      return copyOf(stored.get(nameOf(key)));
    },
    async getMany(keys) {
      return keys.map((key) => copyOf(stored.get(nameOf(key)))).filter((item) => item !== undefined);
    },
    async query(query) {
      const found = matching(query);
      if (query.descending === true) found.reverse();
      return structuredClone(found.slice(0, query.limit));
    },
    items() {
      return structuredClone(
        [...stored].sort(([left], [right]) => byText(left, right)).map(([, item]) => item),
      );
    },
  };
};
