import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { convertToAttr, convertToNative } from "@aws-sdk/util-dynamodb";
import type { Item, Value } from "../../core/write.ts";

export type Attributes = Record<string, AttributeValue>;

/** Most values are texts and numbers, which the library takes ten times as long for. */
export const attributeOf = (value: Value): AttributeValue => {
  if (typeof value === "string") return { S: value };
  if (Number.isSafeInteger(value)) return { N: String(value) };
  const attribute = convertToAttr(value, { removeUndefinedValues: true });
  if (attribute === undefined) throw new TypeError("a value that DynamoDB cannot hold");
  return attribute;
};

const nativeOf = (attribute: AttributeValue): Value => {
  if (attribute.S !== undefined) return attribute.S;
  if (attribute.M !== undefined) return itemOf(attribute.M);
  const number = attribute.N === undefined ? undefined : Number(attribute.N);
  if (Number.isSafeInteger(number)) return number as number;
  return attribute.L === undefined ? (convertToNative(attribute) as Value) : attribute.L.map(nativeOf);
};

export const itemOf = (attributes: Attributes): Item => {
  const item: Record<string, Value> = {};
  for (const name in attributes) item[name] = nativeOf(attributes[name] as AttributeValue);
  return item;
};
