import { InvalidInput } from "../errors.ts";

/** One field of a cron expression: its name in messages and its values. */
export interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names for min, min + 1, ... (three letters, any case). */
  readonly names: readonly string[];
  /** May `22-4` run over the end? Documented by AWS for hours, by Quartz for all but years; not in crontab(5). */
  readonly wraps: boolean;
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
export const WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const field = (name: string, min: number, max: number, names: readonly string[] = []): Field => ({
  name,
  min,
  max,
  names,
  wraps: false,
});

/** crontab(5); the weekday 7 is Sunday again. */
export const UNIX_FIELDS = {
  minute: field("minute", 0, 59),
  hour: field("hour", 0, 23),
  dayOfMonth: field("day-of-month", 1, 31),
  month: field("month", 1, 12, MONTHS),
  dayOfWeek: field("day-of-week", 0, 7, WEEKDAYS),
};

/** EventBridge Scheduler and Quartz: weekdays count from 1 = Sunday, ranges may run over the end. */
export const AWS_FIELDS = {
  minute: { ...UNIX_FIELDS.minute, wraps: true },
  hour: { ...UNIX_FIELDS.hour, wraps: true },
  dayOfMonth: { ...UNIX_FIELDS.dayOfMonth, wraps: true },
  month: { ...UNIX_FIELDS.month, wraps: true },
  dayOfWeek: { ...field("day-of-week", 1, 7, WEEKDAYS), wraps: true },
  year: field("year", 1970, 2199),
};

/** `0-59`, `1-12 or JAN-DEC`. */
const allowed = ({ min, max, names }: Field): string =>
  names.length === 0 ? `${min}-${max}` : `${min}-${max} or ${names[0]}-${names.at(-1)}`;

/** A part of a long or strange text, fit for a message. */
export const quote = (text: string): string => {
  const shown = text.length > 40 ? `${text.slice(0, 40)}...` : text;
  return `'${shown.replace(/[^\x20-\x7e]/g, "?")}'`;
};

export const refuseField = (field: Field, what: string, hint?: string): InvalidInput =>
  new InvalidInput("invalid_schedule", `${field.name}: ${what}`, {
    field: field.name,
    hint: hint ?? `${field.name} takes ${allowed(field)}`,
  });

/** A number or a name of the field. */
export const parseValue = (field: Field, text: string): number => {
  const name = field.names.indexOf(text.toUpperCase());
  if (name !== -1) return field.min + name;
  if (!/^\d+$/.test(text)) throw refuseField(field, `cannot read ${quote(text)}`);
  const value = text.length > 4 ? Number.POSITIVE_INFINITY : Number(text);
  if (value < field.min || value > field.max) {
    throw refuseField(field, `${quote(text)} is outside ${field.min}-${field.max}`);
  }
  return value;
};

const parseStep = (field: Field, text: string): number => {
  if (!/^\d{1,4}$/.test(text) || Number(text) < 1) {
    throw refuseField(field, `step ${quote(text)} is not a number from 1 to ${field.max}`);
  }
  const step = Number(text);
  if (step > field.max) {
    throw refuseField(field, `step ${step} is larger than ${field.max}, so it would never step`);
  }
  return step;
};

/** The names SUN in `FRI-SUN` and 7 in `5-7` are one day; elsewhere a range that runs backwards is refused. */
const rangeEnd = (field: Field, first: number, text: string): number => {
  const last = parseValue(field, text);
  const isSundayAsLast = field.min === 0 && field.max === 7 && last === 0 && /^sun$/i.test(text);
  return isSundayAsLast && first > 0 ? 7 : last;
};

const valuesBetween = (field: Field, text: string, [first, last, step]: readonly number[]): number[] => {
  const from = first ?? field.min;
  const size = field.max - field.min + 1;
  let end = last ?? field.max;
  if (end < from) {
    if (!field.wraps) {
      throw refuseField(
        field,
        `range ${quote(text)} runs backwards in ${field.min}-${field.max}`,
        `write it as two ranges, or swap its ends`,
      );
    }
    end += size;
  }
  const values: number[] = [];
  for (let value = from; value <= end; value += step ?? 1) {
    values.push(value > field.max ? value - size : value);
  }
  return values;
};

/** A star, `5`, `1-5`, a star or range with a step, and `10/5`, which is 10-max/5; the values, unsorted. */
const parsePart = (field: Field, text: string): number[] => {
  const [range = "", step, ...moreSteps] = text.split("/");
  if (text === "") throw refuseField(field, "an item of the list is empty");
  if (moreSteps.length > 0) throw refuseField(field, `two steps in ${quote(text)}`);
  const by = step === undefined ? 1 : parseStep(field, step);
  if (range === "*") return valuesBetween(field, text, [field.min, field.max, by]);
  const [low = "", high, ...moreEnds] = range.split("-");
  if (moreEnds.length > 0 || low === "" || high === "")
    throw refuseField(field, `cannot read ${quote(text)}`);
  const first = parseValue(field, low);
  if (high !== undefined) return valuesBetween(field, text, [first, rangeEnd(field, first, high), by]);
  if (step === undefined) return [first];
  refuseWeekdayStep(field, text, first, by);
  return valuesBetween(field, text, [first, field.max, by]);
};

/** Does `1/2` end on Saturday or on the Sunday that is also 7? Programs differ, so nobody can know what is meant. */
const refuseWeekdayStep = (field: Field, text: string, first: number, step: number): void => {
  const isUnixWeekday = field.min === 0 && field.max === 7;
  if (!isUnixWeekday || first === 0 || (7 - first) % step !== 0) return;
  throw refuseField(
    field,
    `${quote(text)} is read as ${first}-6/${step} by some programs, as ${first}-7/${step} (7 = Sunday) by others`,
    `write '${first}-6/${step}' or '${first}-7/${step}'`,
  );
};

/** The values that a list names, ascending, each once. */
export const parseList = (field: Field, text: string): readonly number[] => {
  const values = new Set<number>();
  for (const part of text.split(",")) {
    for (const value of parsePart(field, part)) values.add(value);
  }
  return [...values].sort((a, b) => a - b);
};
