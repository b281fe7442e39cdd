export const ZONE = "Asia/Shanghai";

export const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/** `2026-10-08`: the date on the calendar of the zone. */
export const localDate = (at: Date): string =>
  new Intl.DateTimeFormat("en-CA", { timeZone: ZONE }).format(at);
