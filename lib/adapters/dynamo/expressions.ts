import type { UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import type { Change, Condition, Path, Value, Write } from "../../core/write.ts";
import { type Attributes, attributeOf } from "./attributes.ts";

/** Collects names and values; all names go through placeholders, since several of ours are reserved words. */
class Placeholders {
  readonly names: Record<string, string> = {};
  readonly values: Attributes = {};
  readonly #nameOf = new Map<string, string>();
  #valueCount = 0;

  path(path: Path): string {
    return typeof path === "string" ? this.#name(path) : path.map((part) => this.#name(part)).join(".");
  }

  value(value: Value): string {
    const placeholder = `:v${this.#valueCount}`;
    this.values[placeholder] = attributeOf(value);
    this.#valueCount += 1;
    return placeholder;
  }

  #name(name: string): string {
    const known = this.#nameOf.get(name);
    if (known !== undefined) return known;
    const placeholder = `#n${this.#nameOf.size}`;
    this.#nameOf.set(name, placeholder);
    this.names[placeholder] = name;
    return placeholder;
  }
}

const conditionText = (condition: Condition, to: Placeholders): string => {
  switch (condition.kind) {
    case "exists":
      return `attribute_exists(${to.path(condition.path)})`;
    case "absent":
      return `attribute_not_exists(${to.path(condition.path)})`;
    case "compare":
      return `${to.path(condition.path)} ${condition.operator} ${to.value(condition.value)}`;
    case "contains":
      return `contains(${to.path(condition.path)}, ${to.value(condition.member)})`;
    case "not":
      return `NOT (${conditionText(condition.condition, to)})`;
    case "all":
      return joined(condition.conditions, "AND", to);
    case "any":
      return joined(condition.conditions, "OR", to);
  }
};

/** Parentheses only around what needs them: DynamoDB refuses an expression with redundant ones. */
const joined = (parts: readonly Condition[], operator: "AND" | "OR", to: Placeholders): string => {
  const [only, ...others] = parts;
  if (only !== undefined && others.length === 0) return conditionText(only, to);
  return parts.map((part) => inParentheses(part, to)).join(` ${operator} `);
};

const inParentheses = (condition: Condition, to: Placeholders): string => {
  const text = conditionText(condition, to);
  return isComposite(condition) ? `(${text})` : text;
};

const isComposite = (condition: Condition): boolean => {
  if (condition.kind !== "all" && condition.kind !== "any") return false;
  const [only, ...others] = condition.conditions;
  return others.length > 0 || (only !== undefined && isComposite(only));
};

const changeText = (change: Change, to: Placeholders): readonly [clause: string, text: string] => {
  const path = to.path(change.path);
  switch (change.kind) {
    case "set":
      return ["SET", `${path} = ${to.value(change.value)}`];
    case "set-once":
      return ["SET", `${path} = if_not_exists(${path}, ${to.value(change.value)})`];
    case "increment":
      return ["SET", `${path} = if_not_exists(${path}, ${to.value(0)}) + ${to.value(change.by)}`];
    case "remove":
      return ["REMOVE", path];
    case "add-members":
      return ["ADD", `${path} ${to.value(new Set(change.members))}`];
    case "delete-members":
      return ["DELETE", `${path} ${to.value(new Set(change.members))}`];
  }
};

/** The write in DynamoDB's language. */
export const updateOf = (
  write: Write,
): Pick<
  UpdateItemCommandInput,
  "UpdateExpression" | "ConditionExpression" | "ExpressionAttributeNames" | "ExpressionAttributeValues"
> => {
  const to = new Placeholders();
  const clauses = new Map<string, string[]>();
  for (const change of write.changes) {
    const [clause, text] = changeText(change, to);
    clauses.set(clause, [...(clauses.get(clause) ?? []), text]);
  }
  const update = [...clauses].map(([clause, texts]) => `${clause} ${texts.join(", ")}`).join(" ");
  const condition = write.condition && conditionText(write.condition, to);
  const isEmpty = (record: object): boolean => Object.keys(record).length === 0;
  return {
    ...(update === "" ? {} : { UpdateExpression: update }),
    ...(condition === undefined ? {} : { ConditionExpression: condition }),
    ...(isEmpty(to.names) ? {} : { ExpressionAttributeNames: to.names }),
    ...(isEmpty(to.values) ? {} : { ExpressionAttributeValues: to.values }),
  };
};
