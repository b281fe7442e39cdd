import type { DayTimes, DayWords, PatternWords, Words } from "./describe.ts";

const WEEKDAYS = ["周日", "周一", "周二", "周三", "周四", "周五", "周六"];
const UNITS = { minute: "分钟", hour: "小时", day: "天", week: "周" };

/** `1至5` for three or more in a row. */
const ranges = (values: readonly number[], nameOf: (value: number) => string): string => {
  const parts: string[] = [];
  for (let index = 0; index < values.length; ) {
    let end = index;
    while (values[end + 1] === (values[end] ?? 0) + 1) end++;
    if (end - index < 2) end = index;
    const [from = 0, to = 0] = [values[index], values[end]];
    parts.push(from === to ? nameOf(from) : `${nameOf(from)}至${nameOf(to)}`);
    index = end + 1;
  }
  return parts.join("、");
};

const inHours = (hours: readonly number[] | undefined): string =>
  hours === undefined ? "" : `${ranges(hours, String)}点期间`;

const timeWords = (time: DayTimes): string => {
  if (time.kind === "times") return time.times.join("、");
  if (time.kind === "steps") {
    const { step, from, hours } = time;
    if (step === 1) return `${inHours(hours)}每分钟`;
    const start = from === 0 && 60 % step === 0 ? "" : `（每小时从第 ${from} 分起算）`;
    return `${inHours(hours)}每 ${step} 分钟${start}`;
  }
  const { minutes } = time;
  const at = minutes.join() === "0" ? "整点" : `第 ${ranges(minutes, String)} 分`;
  if (time.kind === "hour-steps") {
    const { step, from } = time;
    return `${from === 0 && 24 % step === 0 ? "" : `从 ${from} 点起`}每 ${step} 小时${at}`;
  }
  const { hours } = time;
  return hours === undefined ? `每小时${at}` : `${inHours(hours)}每小时${at}`;
};

const dayPhrases = (days: DayWords): string => {
  const phrases = [
    ...(days.dates.length === 0 ? [] : [`每月 ${ranges(days.dates, String)} 日`]),
    ...days.fromLast.map((back) => (back === 0 ? "每月最后一天" : `每月最后一天的前 ${back} 天`)),
    ...days.nearest.map((day) => `每月离 ${day} 日最近的工作日`),
    ...(days.lastWorkday ? ["每月最后一个工作日"] : []),
    ...(days.weekdays.length === 0 ? [] : [`每${ranges(days.weekdays, (day) => WEEKDAYS[day] ?? "")}`]),
    ...days.lastWeekdays.map((day) => `每月最后一个${WEEKDAYS[day]}`),
    ...days.nthWeekdays.map(({ weekday, nth }) => `每月第 ${nth} 个${WEEKDAYS[weekday]}`),
  ];
  return phrases.join("和");
};

const dayWords = ({ monthDays, weekDays, dayRule, time }: PatternWords): string => {
  const month = monthDays === undefined ? "" : dayPhrases(monthDays);
  const week = weekDays === undefined ? "" : dayPhrases(weekDays);
  if (month !== "" && week !== "")
    return dayRule === "either" ? `${month}或${week} ` : `${month}且为${week} `;
  if (month !== "" || week !== "") return `${month}${week} `;
  return time.kind === "times" ? "每天 " : "";
};

export const chinese: Words = {
  pattern(words) {
    const years = words.years.length === 0 ? "" : `${ranges(words.years, String)} 年 `;
    const months = words.months.length === 0 ? "" : `${ranges(words.months, String)} 月 `;
    return `${years}${months}${dayWords(words)}${timeWords(words.time)}`;
  },
  interval: (amount, unit) => (amount === 1 ? `每${UNITS[unit]}` : `每 ${amount} ${UNITS[unit]}`),
  once: (localTime) => `仅一次：${localTime}`,
};
