import type { Json } from "./json.ts";

/**
 * DynamoDB nests 32 levels, and keeps numbers of 10^-130 to 10^125 with 38 digits; its client refuses whole numbers that
 * a double cannot tell apart. See https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
 */
const DEEPEST = 16;
const SMALLEST = 1e-100;

/**
 * Can the value be an attribute as it is? What cannot is kept as JSON text, which can be anything: deep nesting,
 * numbers beyond those of the table, names without a character, halves of characters.
 */
export const isPlain = (value: Json, depth = 0): boolean => {
  switch (typeof value) {
    case "number":
      return value === 0 || (Math.abs(value) >= SMALLEST && Math.abs(value) <= Number.MAX_SAFE_INTEGER);
    case "string":
      return value.isWellFormed();
    case "boolean":
      return true;
    default:
      return value === null || (depth < DEEPEST && isPlainInside(value, depth + 1));
  }
};

const isPlainInside = (value: Exclude<Json, string | number | boolean | null>, depth: number): boolean =>
  Object.entries(value).every(([name, inner]) => name !== "" && name.isWellFormed() && isPlain(inner, depth));
