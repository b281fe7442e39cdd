import type { Item, Value } from "../../lib/core/write.ts";

const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

const bytesOfNumber = (value: number): number => {
  const digits = String(Math.abs(value)).replace(".", "").replace(/^0+/, "").replace(/0+$/, "").length;
  return Math.ceil(digits / 2) + 1 + (value < 0 ? 1 : 0);
};

const bytesOf = (value: Value): number => {
  if (value === null || typeof value === "boolean") return 1;
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number") return bytesOfNumber(value);
  if (value instanceof Set) return [...value].reduce((sum, member) => sum + Buffer.byteLength(member), 0);
  if (isList(value)) return value.reduce((sum: number, one) => sum + 1 + bytesOf(one), 3);
  return Object.entries(value).reduce(
    (sum, [name, one]) => sum + 1 + Buffer.byteLength(name) + bytesOf(one),
    3,
  );
};

/**
 * The bytes that DynamoDB counts for an item: names and values, a number by its digits, 3 bytes for a list or map and
 * 1 for each entry. See https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
export const itemBytes = (item: Item): number =>
  Object.entries(item).reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + bytesOf(value), 0);
