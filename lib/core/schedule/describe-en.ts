import type { DayTimes, DayWords, PatternWords, Words } from "./describe.ts";
import { stepOf } from "./pattern-text.ts";

const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ORDINALS = ["", "first", "second", "third", "fourth", "fifth"];

const join = (items: readonly string[], word = "and"): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} ${word} ${items.at(-1)}`;

/** `1 to 5` for three or more in a row. */
const ranges = (values: readonly number[], nameOf: (value: number) => string): readonly string[] => {
  const parts: string[] = [];
  for (let index = 0; index < values.length; ) {
    let end = index;
    while (values[end + 1] === (values[end] ?? 0) + 1) end++;
    if (end - index < 2) end = index;
    const [from = 0, to = 0] = [values[index], values[end]];
    parts.push(from === to ? nameOf(from) : `${nameOf(from)} to ${nameOf(to)}`);
    index = end + 1;
  }
  return parts;
};

const plural = (values: readonly unknown[], word: string): string => (values.length > 1 ? `${word}s` : word);

const hour = (value: number): string => String(value).padStart(2, "0");

/** `from 09:00 to 17:59`, `in the hours 09, 12 and 17`. */
const inHours = (hours: readonly number[] | undefined): string => {
  if (hours === undefined) return "";
  const [first = 0] = hours;
  const last = hours.at(-1) ?? 0;
  if (last - first === hours.length - 1) return ` from ${hour(first)}:00 to ${hour(last)}:59`;
  return ` in the ${plural(hours, "hour")} ${join(ranges(hours, hour))}`;
};

const timeWords = (time: DayTimes): string => {
  if (time.kind === "times") return `at ${join(time.times)}`;
  if (time.kind === "steps") {
    const { step, from, hours } = time;
    if (step === 1) return `every minute${inHours(hours)}`;
    const isEven = 60 % step === 0;
    const start = from === 0 && isEven ? "" : `, counted from minute ${from} of each hour`;
    return `every ${step} minutes${inHours(hours)}${start}`;
  }
  const { minutes } = time;
  const at = `at ${plural(minutes, "minute")} ${join(ranges(minutes, String))}`;
  if (time.kind === "hour-steps") {
    const { step, from } = time;
    return `every ${step} hours${from === 0 && 24 % step === 0 ? "" : ` from ${hour(from)}:00 on`}, ${at}`;
  }
  const { hours } = time;
  if (hours === undefined) return minutes.join() === "0" ? "every hour" : `every hour ${at}`;
  return `${at} of every hour${inHours(hours)}`;
};

const fromLast = (back: number): string =>
  back === 0 ? "the last day of the month" : `the day ${back} before the last of the month`;

const ORDINAL_ENDS = ["th", "st", "nd", "rd"];

const ordinal = (value: number): string =>
  `${value}${value > 10 && value < 14 ? "th" : (ORDINAL_ENDS[value % 10] ?? "th")}`;

const dateWords = (dates: readonly number[]): readonly string[] => {
  if (dates.length === 0) return [];
  const step = dates.length > 3 ? stepOf(dates, 31) : undefined;
  return step === undefined
    ? [`${plural(dates, "day")} ${join(ranges(dates, String))} of the month`]
    : [`every ${ordinal(step)} day from day ${dates[0]} of the month`];
};

const dayPhrases = (days: DayWords): readonly string[] => [
  ...dateWords(days.dates),
  ...days.fromLast.map(fromLast),
  ...days.nearest.map((day) => `the weekday nearest to day ${day} of the month`),
  ...(days.lastWorkday ? ["the last weekday of the month"] : []),
  ...(days.weekdays.length === 0 ? [] : [join(ranges(days.weekdays, (day) => WEEKDAYS[day] ?? ""))]),
  ...days.lastWeekdays.map((day) => `the last ${WEEKDAYS[day]} of the month`),
  ...days.nthWeekdays.map(({ weekday, nth }) => `the ${ORDINALS[nth]} ${WEEKDAYS[weekday]} of the month`),
];

const dayWords = ({ monthDays, weekDays, dayRule, time }: PatternWords): string => {
  const month = monthDays === undefined ? "" : join(dayPhrases(monthDays));
  const week = weekDays === undefined ? "" : join(dayPhrases(weekDays));
  if (month !== "" && week !== "") {
    return dayRule === "either" ? ` on ${month}, or on ${week}` : ` on ${month} when it is ${week}`;
  }
  if (month !== "" || week !== "") return ` on ${month}${week}`;
  return time.kind === "times" ? " every day" : "";
};

export const english: Words = {
  pattern(words) {
    const months =
      words.months.length === 0
        ? ""
        : ` in ${join(ranges(words.months, (month) => MONTHS[month - 1] ?? ""))}`;
    const years = words.years.length === 0 ? "" : `, in ${join(ranges(words.years, String))}`;
    return `${timeWords(words.time)}${dayWords(words)}${months}${years}`;
  },
  interval: (amount, unit) => (amount === 1 ? `every ${unit}` : `every ${amount} ${unit}s`),
  once: (localTime) => `once, at ${localTime}`,
};
