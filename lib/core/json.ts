/** A value that JSON can carry unchanged. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };
