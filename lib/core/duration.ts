import { InvalidInput } from "./errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "./time.ts";

type Unit = "second" | "minute" | "hour" | "day" | "week";

/** `'90 seconds'`, `'5 minutes'`, `'1 hour'`, `'2 days'`: a whole number, a space, a unit. */
export type Duration = `${number} ${Unit | `${Unit}s`}`;

const UNIT_MS: { readonly [unit in Unit]: number } = {
  second: SECOND_MS,
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
  week: 7 * DAY_MS,
};
const UNITS_DOWN = ["week", "day", "hour", "minute", "second"] as const;

const isUnit = (text: string | undefined): text is Unit => text !== undefined && Object.hasOwn(UNIT_MS, text);

const shown = (value: unknown): string =>
  typeof value === "object" && value !== null ? "an object" : String(value);

const invalid = (field: string, value: unknown): InvalidInput =>
  new InvalidInput(
    "invalid_duration",
    `${typeof value === "string" ? JSON.stringify(value) : shown(value)} is not a duration`,
    {
      field,
      hint: "write a whole number and a unit, for example '90 seconds', '5 minutes', '1 hour' or '2 days'",
    },
  );

/**
 * The milliseconds that a duration text names. A day is 24 hours, a week seven days.
 * @throws InvalidInput (`invalid_duration`) with the field, for anything else.
 */
export const durationMs = (value: unknown, field: string): number => {
  const match = typeof value === "string" ? /^(\d{1,6}) (second|minute|hour|day|week)s?$/.exec(value) : null;
  const unit = match?.[2];
  if (!match || !isUnit(unit)) throw invalid(field, value);
  return Number(match[1]) * UNIT_MS[unit];
};

/** As a person says it, in the largest unit that fits without a remainder: `90 seconds`, `5 minutes`. */
export const durationText = (ms: number): string => {
  const unit = UNITS_DOWN.find((name) => ms >= UNIT_MS[name] && ms % UNIT_MS[name] === 0);
  if (unit === undefined) return `${ms / SECOND_MS} seconds`;
  const count = ms / UNIT_MS[unit];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
};

/**
 * Roughly, as a person says it: whole seconds, at least one; from two minutes on minutes, from two hours on hours, from
 * two days on days.
 */
export const roughText = (ms: number): string => {
  const unitMs = [DAY_MS, HOUR_MS, MINUTE_MS].find((long) => ms >= 2 * long) ?? SECOND_MS;
  return durationText(Math.max(1, Math.floor(ms / unitMs)) * unitMs);
};
