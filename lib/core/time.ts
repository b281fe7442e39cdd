/**
 * Instants are numbers: milliseconds since 1970-01-01T00:00Z (`...Ms`, `...AtMs`). This is the only file of
 * core that names `Date`; it turns instants into text and back, and never asks what time it is.
 */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** No calendar text names a later instant: 275760-09-13T00:00Z. See ECMA-262, "Time Values and Time Range". */
export const LAST_INSTANT_MS = 8.64e15;

/** ISO 8601 in UTC with milliseconds: `2026-10-08T02:00:00.000Z`. Sorts as text. */
export const isoOf = (atMs: number): string => new Date(atMs).toISOString();

/** The instant of a text as `isoOf` makes it; undefined for any other. */
export const readIso = (text: string): number | undefined => {
  const atMs = Date.parse(text);
  // Date.parse takes 30 February for 2 March.
  return Number.isNaN(atMs) || isoOf(atMs) !== text ? undefined : atMs;
};

/** ISO 8601 in UTC without a zero millisecond part: `2026-10-08T02:00:00Z`. For people and JSON output. */
export const shortIsoOf = (atMs: number): string => isoOf(atMs).replace(".000Z", "Z");

/**
 * The instant that an ISO 8601 text with a zone (`Z` or an offset) names.
 * Undefined for anything else, dates that do not exist included: a text without a zone has no instant until
 * somebody says whose clock it means.
 */
export const readInstant = (text: string): number | undefined => {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  // Date.parse takes 30 February for 2 March.
  const date = text.slice(0, 10);
  const midnightMs = Date.parse(`${date}T00:00Z`);
  if (Number.isNaN(midnightMs) || isoOf(midnightMs).slice(0, 10) !== date) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : atMs;
};
