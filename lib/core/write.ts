/**
 * Conditional writes as data. Every change of state in Belfry is one of these: changes to a single item under
 * one condition, decided by the table at one instant. Adapters compile them to their store's language; the
 * functions here give them their meaning, which is DynamoDB's: a comparison with an absent attribute is false.
 */

export type Value =
  | string
  | number
  | boolean
  | null
  | ReadonlySet<string>
  | readonly Value[]
  | { readonly [name: string]: Value };

export type Item = { readonly [name: string]: Value };

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** A top-level attribute, or one name inside a map attribute. */
export type Path = string | readonly [attribute: string, name: string];

export type Condition =
  | { readonly kind: "exists"; readonly path: Path }
  | { readonly kind: "absent"; readonly path: Path }
  | {
      readonly kind: "compare";
      readonly path: Path;
      readonly operator: "=" | "<" | "<=" | ">";
      readonly value: string | number;
    }
  | { readonly kind: "contains"; readonly path: Path; readonly member: string }
  | { readonly kind: "not"; readonly condition: Condition }
  | { readonly kind: "all"; readonly conditions: readonly Condition[] }
  | { readonly kind: "any"; readonly conditions: readonly Condition[] };

export type Change =
  | { readonly kind: "set"; readonly path: Path; readonly value: Value }
  | { readonly kind: "set-once"; readonly path: Path; readonly value: Value }
  | { readonly kind: "increment"; readonly path: Path; readonly by: number }
  | { readonly kind: "remove"; readonly path: Path }
  | { readonly kind: "add-members"; readonly path: string; readonly members: readonly string[] }
  | { readonly kind: "delete-members"; readonly path: string; readonly members: readonly string[] };

export interface Write {
  readonly key: Key;
  readonly changes: readonly Change[];
  /** None = unconditional. */
  readonly condition?: Condition;
}

export const exists = (path: Path): Condition => ({ kind: "exists", path });
export const absent = (path: Path): Condition => ({ kind: "absent", path });
export const equals = (path: Path, value: string | number): Condition => ({
  kind: "compare",
  path,
  operator: "=",
  value,
});
export const lessThan = (path: Path, value: string | number): Condition => ({
  kind: "compare",
  path,
  operator: "<",
  value,
});
export const atMost = (path: Path, value: string | number): Condition => ({
  kind: "compare",
  path,
  operator: "<=",
  value,
});
export const contains = (path: Path, member: string): Condition => ({ kind: "contains", path, member });
export const not = (condition: Condition): Condition => ({ kind: "not", condition });
export const all = (...conditions: readonly Condition[]): Condition => ({ kind: "all", conditions });
export const any = (...conditions: readonly Condition[]): Condition => ({ kind: "any", conditions });

export const set = (path: Path, value: Value): Change => ({ kind: "set", path, value });
/** Sets the attribute unless it is there. */
export const setOnce = (path: Path, value: Value): Change => ({ kind: "set-once", path, value });
/** Adds to a number; an absent one counts as 0. */
export const increment = (path: Path, by: number): Change => ({ kind: "increment", path, by });
export const remove = (path: Path): Change => ({ kind: "remove", path });
export const addMembers = (path: string, ...members: readonly string[]): Change => ({
  kind: "add-members",
  path,
  members,
});
/** The attribute goes with its last member. */
export const deleteMembers = (path: string, ...members: readonly string[]): Change => ({
  kind: "delete-members",
  path,
  members,
});

/** Of a stored value: is it a map attribute? */
export const isMap = (value: Value | undefined): value is { readonly [name: string]: Value } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Set);

const read = (item: Item | undefined, path: Path): Value | undefined => {
  if (typeof path === "string") return item?.[path];
  const map = item?.[path[0]];
  return isMap(map) ? map[path[1]] : undefined;
};

const compare = (
  left: Value | undefined,
  operator: "=" | "<" | "<=" | ">",
  right: string | number,
): boolean => {
  if (typeof left !== typeof right || (typeof left !== "string" && typeof left !== "number")) return false;
  switch (operator) {
    case "=":
      return left === right;
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
  }
};

const hasMember = (value: Value | undefined, member: string): boolean =>
  value instanceof Set ? value.has(member) : false;

/** Does the condition hold on the item (undefined = no such item)? */
export const holds = (condition: Condition | undefined, item: Item | undefined): boolean => {
  if (condition === undefined) return true;
  switch (condition.kind) {
    case "exists":
      return read(item, condition.path) !== undefined;
    case "absent":
      return read(item, condition.path) === undefined;
    case "compare":
      return compare(read(item, condition.path), condition.operator, condition.value);
    case "contains":
      return hasMember(read(item, condition.path), condition.member);
    case "not":
      return !holds(condition.condition, item);
    case "all":
      return condition.conditions.every((part) => holds(part, item));
    case "any":
      return condition.conditions.some((part) => holds(part, item));
  }
};

type Draft = Record<string, Value>;

const assign = (draft: Draft, path: Path, value: Value | undefined): void => {
  if (typeof path !== "string") {
    const map = draft[path[0]];
    if (!isMap(map)) throw new TypeError(`no map attribute ${path[0]} to change ${path[1]} in`);
    const copy: Draft = { ...map };
    assign(copy, path[1], value);
    draft[path[0]] = copy;
  } else if (value === undefined) delete draft[path];
  else draft[path] = value;
};

const membersOf = (value: Value | undefined): ReadonlySet<string> =>
  value instanceof Set ? value : new Set<string>();

/** The attribute's value after the change; undefined = the attribute is gone. */
const changedValue = (change: Change, before: Item | undefined): Value | undefined => {
  const old = read(before, change.path);
  switch (change.kind) {
    case "set":
      return change.value;
    case "set-once":
      return old ?? change.value;
    case "increment":
      return Number(old ?? 0) + change.by;
    case "remove":
      return undefined;
    case "add-members":
      return new Set([...membersOf(old), ...change.members]);
    case "delete-members": {
      const rest = [...membersOf(old)].filter((member) => !change.members.includes(member));
      return rest.length > 0 ? new Set(rest) : undefined;
    }
  }
};

/** The item after the write's changes; as in DynamoDB, every right-hand side sees the item as it was before. */
export const applied = (write: Write, before: Item | undefined): Item => {
  const draft: Draft = { ...before, pk: write.key.pk, sk: write.key.sk };
  for (const change of write.changes) assign(draft, change.path, changedValue(change, before));
  return draft;
};
