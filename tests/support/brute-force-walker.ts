/**
 * A second opinion on schedules: looks at every minute, by rules written for the tests. It imports nothing from
 * the library, so that a fault there cannot hide here.
 */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export interface WalkOptions {
  readonly dialect: "unix" | "aws";
  readonly expression: string;
  readonly timezone: string;
  readonly from: number;
  readonly until: number;
  readonly gap?: "skip" | "run-after";
  /** What to do with local times that come twice; default: by the expression, see `isIntervalLike`. */
  readonly repeat?: "first" | "last" | "both";
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const formats = new Map<string, Intl.DateTimeFormat>();
const offsets = new Map<string, Map<number, number>>();

/** Local time less UTC, asked of Intl by the fields of a clock. */
export const offsetAt = (timezone: string, instant: number): number => {
  let format = formats.get(timezone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: timezone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(timezone, format);
  }
  const [day, month, year, hour, minute, second] = (format.format(instant).match(/\d+/g) ?? []).map(Number);
  return Date.UTC(year ?? 0, (month ?? 1) - 1, day, hour, minute, second) - Math.floor(instant / 1000) * 1000;
};

const offsetAtHour = (timezone: string, hour: number): number => {
  let known = offsets.get(timezone);
  if (known === undefined) {
    known = new Map();
    offsets.set(timezone, known);
  }
  let offset = known.get(hour);
  if (offset === undefined) {
    offset = offsetAt(timezone, hour * HOUR);
    known.set(hour, offset);
  }
  return offset;
};

/** The hours of the days in [from, until) in which the zone's offset changes, but for changes undone within a day. */
export const hoursOfChange = (timezone: string, from: number, until: number): number[] => {
  const found: number[] = [];
  for (let day = Math.floor(from / DAY); day * DAY < until; day++) {
    if (offsetAtHour(timezone, day * 24) === offsetAtHour(timezone, day * 24 + 24)) continue;
    for (let hour = day * 24; hour < day * 24 + 24; hour++) {
      if (offsetAtHour(timezone, hour) !== offsetAtHour(timezone, hour + 1)) found.push(hour * HOUR);
    }
  }
  return found;
};

const numberIn = (text: string, names: readonly string[], first: number): number => {
  const name = names.indexOf(text.toUpperCase());
  return name === -1 ? Number(text) : name + first;
};

interface FieldRule {
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

/** Does one value match a field? Ranges may run over the end (only AWS's do). */
const matches = (field: string, value: number, { min, max, names = [] }: FieldRule): boolean =>
  field.split(",").some((part) => {
    const [range = "", stepText] = part.split("/");
    const step = stepText === undefined ? 1 : Number(stepText);
    if (range === "*") return (value - min) % step === 0;
    const [lowText = "", highText] = range.split("-");
    const low = numberIn(lowText, names, min);
    const high =
      highText === undefined ? (stepText === undefined ? low : max) : numberIn(highText, names, min);
    const distance = value >= low ? value - low : value - low + (max - min + 1);
    const length = high >= low ? high - low : high - low + (max - min + 1);
    return distance <= length && distance % step === 0;
  });

interface LocalDay {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly weekday: number;
  readonly length: number;
}

const localDay = (wall: number): LocalDay => {
  const date = new Date(wall);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return {
    year,
    month: month + 1,
    day: date.getUTCDate(),
    weekday: date.getUTCDay(),
    length: new Date(Date.UTC(year, month + 1, 0)).getUTCDate(),
  };
};

const isWorkday = (weekday: number): boolean => weekday >= 1 && weekday <= 5;

/** Is this the weekday nearest to `wanted`, without leaving the month? */
const isNearest = ({ day, weekday, length }: LocalDay, wanted: number): boolean => {
  if (wanted > length || !isWorkday(weekday)) return false;
  const weekdayOn = (other: number): number => (((weekday + other - day) % 7) + 7) % 7;
  for (let distance = 0; distance < 3; distance++) {
    for (const candidate of [wanted - distance, wanted + distance]) {
      if (candidate >= 1 && candidate <= length && isWorkday(weekdayOn(candidate))) return candidate === day;
    }
  }
  return false;
};

const matchesMonthDay = (field: string, date: LocalDay): boolean =>
  field.split(",").some((part) => {
    const text = part.toUpperCase();
    if (text === "*" || text === "?") return true;
    if (text === "L") return date.day === date.length;
    if (text === "LW") {
      const tail = Array.from(
        { length: date.length - date.day },
        (_, index) => (date.weekday + index + 1) % 7,
      );
      return isWorkday(date.weekday) && !tail.some(isWorkday);
    }
    if (text.startsWith("L-")) return date.day === date.length - Number(text.slice(2));
    if (text.endsWith("W")) return isNearest(date, Number(text.slice(0, -1)));
    return matches(part, date.day, { min: 1, max: 31 });
  });

const matchesWeekDay = (field: string, date: LocalDay, dialect: WalkOptions["dialect"]): boolean => {
  const first = dialect === "aws" ? 1 : 0;
  const own = date.weekday + first;
  const numberOf = (text: string): number => numberIn(text, DAYS, first);
  const isOwn = (text: string): boolean =>
    numberOf(text) === own || (first === 0 && own === 0 && numberOf(text) === 7);
  return field.split(",").some((part) => {
    if (part === "*" || part === "?") return true;
    if (part.toUpperCase() === "L") return date.weekday === 6;
    if (part.includes("#")) {
      const [weekday = "", nth = ""] = part.split("#");
      return isOwn(weekday) && Math.ceil(date.day / 7) === Number(nth);
    }
    if (/L$/i.test(part)) return isOwn(part.slice(0, -1)) && date.day + 7 > date.length;
    if (first === 1) return matches(part, own, { min: 1, max: 7, names: DAYS });
    const rule = { min: 0, max: 7, names: DAYS };
    return matches(part, own, rule) || (own === 0 && matches(part, 7, rule));
  });
};

interface Matcher {
  readonly minutes: readonly boolean[];
  readonly hours: readonly boolean[];
  isDay(wall: number): boolean;
}

const MACROS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

const fieldsOf = ({ dialect, expression }: Pick<WalkOptions, "dialect" | "expression">): string[] =>
  (dialect === "aws" ? expression.replace(/^cron\((.*)\)$/, "$1") : (MACROS[expression] ?? expression))
    .trim()
    .split(/\s+/);

const matcherOf = (options: Pick<WalkOptions, "dialect" | "expression">): Matcher => {
  const [minute = "", hour = "", monthDay = "", month = "", weekDay = "", year = "*"] = fieldsOf(options);
  const { dialect } = options;
  const isOpen = (text: string): boolean => text.startsWith("*") || text === "?";
  const isEither = dialect === "unix" && !isOpen(monthDay) && !isOpen(weekDay);
  const days = new Map<number, boolean>();
  const judge = (wall: number): boolean => {
    const date = localDay(wall);
    if (date.year < 1970 || date.year > 2199) return false;
    if (!matches(month, date.month, { min: 1, max: 12, names: MONTHS })) return false;
    if (!matches(year, date.year, { min: 1970, max: 2199 })) return false;
    const byMonth = matchesMonthDay(monthDay, date);
    const byWeek = matchesWeekDay(weekDay, date, dialect);
    return isEither ? byMonth || byWeek : byMonth && byWeek;
  };
  return {
    minutes: Array.from({ length: 60 }, (_, value) => matches(minute, value, { min: 0, max: 59 })),
    hours: Array.from({ length: 24 }, (_, value) => matches(hour, value, { min: 0, max: 23 })),
    isDay: (wall) => {
      const day = Math.floor(wall / DAY);
      const known = days.get(day);
      if (known !== undefined) return known;
      const found = judge(wall);
      days.set(day, found);
      return found;
    },
  };
};

/** Cron in which the minute or hour field starts with a star: follows elapsed time. */
export const isIntervalLike = (options: Pick<WalkOptions, "dialect" | "expression">): boolean =>
  fieldsOf(options)
    .slice(0, 2)
    .some((field) => field.startsWith("*"));

interface Visits {
  /** The instants at which the clock shows a local time of the expression. */
  readonly byWall: Map<number, number[]>;
  /** The first instants after a gap that swallowed such a time. */
  readonly afterGaps: number[];
}

/** One minute; `earlier` is the offset a minute before. */
const visit = (
  { byWall, afterGaps }: Visits,
  isMatch: (wall: number) => boolean,
  [instant, offset, earlier]: readonly [number, number, number],
): void => {
  for (let lost = instant + earlier; lost < instant + offset; lost += MINUTE) {
    if (isMatch(lost)) afterGaps.push(instant);
  }
  const wall = instant + offset;
  if (isMatch(wall)) byWall.set(wall, [...(byWall.get(wall) ?? []), instant]);
};

const visitsIn = (
  timezone: string,
  from: number,
  until: number,
  isMatch: (wall: number) => boolean,
): Visits => {
  const visits: Visits = { byWall: new Map(), afterGaps: [] };
  for (let hour = Math.floor(from / HOUR); hour * HOUR < until; hour++) {
    const before = offsetAtHour(timezone, hour);
    const isSteady =
      before === offsetAtHour(timezone, hour + 1) && before === offsetAtHour(timezone, hour - 1);
    for (let minute = hour * 60; minute < hour * 60 + 60; minute++) {
      const instant = minute * MINUTE;
      const offset = isSteady ? before : offsetAt(timezone, instant);
      visit(visits, isMatch, [instant, offset, isSteady ? before : offsetAt(timezone, instant - MINUTE)]);
    }
  }
  return visits;
};

/** The slots in [from, until), ascending. Zones whose offsets are not whole minutes are beyond it. */
export const walk = (options: WalkOptions): number[] => {
  const matcher = matcherOf(options);
  const isMatch = (wall: number): boolean => {
    const minuteOfDay = Math.floor((((wall % DAY) + DAY) % DAY) / MINUTE);
    return (
      matcher.minutes[minuteOfDay % 60] === true &&
      matcher.hours[Math.floor(minuteOfDay / 60)] === true &&
      matcher.isDay(wall)
    );
  };
  const { timezone, from, until } = options;
  const { byWall, afterGaps } = visitsIn(timezone, from - 2 * DAY, until + 2 * DAY, isMatch);
  const isElapsed = isIntervalLike(options);
  const repeat = options.repeat ?? (isElapsed ? "both" : "first");
  const kept = [...byWall.values()].flatMap((instants) =>
    repeat === "both" ? instants : repeat === "first" ? instants.slice(0, 1) : instants.slice(-1),
  );
  const extra = options.gap === "run-after" && !isElapsed ? afterGaps : [];
  return [...new Set([...kept, ...extra])]
    .filter((instant) => instant >= options.from && instant < options.until)
    .sort((a, b) => a - b);
};
