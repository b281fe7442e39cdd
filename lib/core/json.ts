/** A value that JSON can carry unchanged. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** Is it a JSON object: neither null nor a list? */
export const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
