import { DAY_MS, MINUTE_MS } from "../time.ts";
import { dayNumberOf } from "./calendar.ts";
import { finderOf, type Pattern } from "./pattern.ts";
import type { Rule } from "./rule.ts";

const minutesOfDay = ({ hours, minutes }: Pattern): readonly number[] =>
  hours.flatMap((hour) => minutes.map((minute) => hour * 60 + minute));

/** All days of a pattern, ascending. */
function* daysOf(pattern: Pattern): Iterable<number> {
  const finder = finderOf(pattern);
  for (let year = finder.firstYear; year <= finder.lastYear; year++) {
    if (!finder.hasYear(year)) continue;
    for (const month of pattern.months) {
      for (let left = finder.daysOf(year, month); left !== 0; left &= left - 1) {
        yield dayNumberOf({ year, month, day: 32 - Math.clz32(left & -left) });
      }
    }
  }
}

/** The smallest number of days between two days of a pattern; undefined when it names at most one day. */
const smallestDayGap = (pattern: Pattern): number | undefined => {
  let last: number | undefined;
  let smallest: number | undefined;
  for (const day of daysOf(pattern)) {
    if (last !== undefined) smallest = Math.min(smallest ?? Number.POSITIVE_INFINITY, day - last);
    if (smallest === 1) break;
    last = day;
  }
  return smallest;
};

const patternGap = (pattern: Pattern): number | undefined => {
  const times = minutesOfDay(pattern);
  const [first = 0] = times;
  const last = times.at(-1) ?? 0;
  const gaps = times.slice(1).map((time, index) => (time - (times[index] ?? 0)) * MINUTE_MS);
  const days = smallestDayGap(pattern);
  if (days !== undefined) gaps.push(days * DAY_MS - (last - first) * MINUTE_MS);
  return gaps.length === 0 ? undefined : Math.min(...gaps);
};

/**
 * The smallest distance between two slots, by the clock on the wall: the day a clock changes may bring two slots
 * closer by as much as it moves. Undefined where there is at most one slot.
 */
export const smallestGapOf = (rule: Rule): number | undefined => {
  if (rule.kind === "interval") return rule.everyMs;
  return rule.kind === "once" ? undefined : patternGap(rule.pattern);
};
