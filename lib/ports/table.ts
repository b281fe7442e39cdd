import type { Item, Key, Write } from "../core/write.ts";

export type WriteAnswer =
  | { readonly written: true /** The item after the write. */; readonly item: Item }
  | {
      readonly written: false;
      /** The item that refused, as it was at that instant; undefined when there was none. */ readonly item:
        | Item
        | undefined;
    };

export interface Query {
  readonly pk: string;
  /** Bounds of the sort key, both included. */
  readonly first: string;
  readonly last: string;
  readonly descending?: boolean;
  /** At most so many items in all; none = all of them. */
  readonly limit?: number;
  /** The sparse index of runs that ended badly or wait for a person, instead of the table itself. */
  readonly index?: "bad";
}

/**
 * One DynamoDB table, or something that keeps its promises.
 *
 * - `write` is atomic on one item. A refusal is an answer, not an error. After `Unavailable` the outcome is
 *   unknown: the write may have happened, and may even happen later; it must be repeatable by the same caller.
 * - `get` with `consistent: true` sees every write answered before it; without, it may be some time behind.
 * - `getMany` and `query` are eventually consistent. `query` sees items in order of the sort key.
 * @throws Unavailable when the table answers with neither yes nor no.
 */
export interface Table {
  write(write: Write): Promise<WriteAnswer>;
  get(key: Key, options: { readonly consistent: boolean }): Promise<Item | undefined>;
  /** Items that exist among the keys, in no particular order; any number of keys. */
  getMany(keys: readonly Key[]): Promise<readonly Item[]>;
  query(query: Query): Promise<readonly Item[]>;
}
