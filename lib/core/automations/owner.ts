import { idInOwnedAttribute, ownedAttribute, ownerKey } from "../items.ts";
import {
  absent,
  all,
  any,
  exists,
  type Item,
  increment,
  lessThan,
  remove,
  set,
  type Write,
} from "../write.ts";

/** An automation that is on its owner's list. */
export interface Owned {
  readonly id: string;
  readonly enteredAtMs: number;
}

/** In order of the id. */
export const ownedIn = (item: Item | undefined): readonly Owned[] =>
  Object.entries(item ?? {})
    .flatMap(([name, value]): Owned[] => {
      const id = idInOwnedAttribute(name);
      return id === undefined ? [] : [{ id, enteredAtMs: Number(value) }];
    })
    .sort((left, right) => (left.id < right.id ? -1 : 1));

/** Before its record is written: so that no automation fires that is on nobody's list, and none is over the limit. */
export const enterOwned = (owner: string, { id, enteredAtMs }: Owned, perOwner: number): Write => ({
  key: ownerKey(owner),
  condition: all(absent(ownedAttribute(id)), any(absent("n"), lessThan("n", perOwner))),
  changes: [set(ownedAttribute(id), enteredAtMs), increment("n", 1)],
});

export const strikeOwned = (owner: string, id: string): Write => ({
  key: ownerKey(owner),
  condition: exists(ownedAttribute(id)),
  changes: [remove(ownedAttribute(id)), increment("n", -1)],
});
