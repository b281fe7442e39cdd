import { walk } from "./brute-force-walker.ts";

/**
 * When EventBridge Scheduler fires a deployed expression, by its user guide ("Schedule types"): local times that do
 * not exist are skipped, repeated ones fire at the first pass. For wildcard crons the guide is silent, so both
 * readings can be asked for. It imports nothing from the library.
 */
export type Reading = "first" | "both";

const ITEM = String.raw`(?:\*|\d+(?:[-/]\d+)?)`;
const LIST = `${ITEM}(?:,${ITEM})*`;
const WEEKDAY = "(?:SUN|MON|TUE|WED|THU|FRI|SAT)";
const WEEKDAYS = `${WEEKDAY}(?:-${WEEKDAY})?(?:,${WEEKDAY}(?:-${WEEKDAY})?)*`;
const CRON = new RegExp(
  String.raw`^cron\(${LIST} ${LIST} (?:(?:${LIST}|L|\d+W) ${LIST} \?|\? ${LIST} (?:${WEEKDAYS}|[1-7]L|[1-7]#[1-5])) (?:\*|${LIST})\)$`,
);
const AT = /^at\(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\)$/;

/** Is it a form that the guide documents? */
export const isDocumented = (expression: string): boolean =>
  expression.length <= 256 && (CRON.test(expression) || AT.test(expression));

const isWildcard = (expression: string): boolean =>
  /[*/]/.test(expression.split(" ").slice(0, 2).join(" ").slice(5));

export const awsFires = (
  { expression, timezone }: { readonly expression: string; readonly timezone: string },
  [from, until]: readonly [number, number],
  reading: Reading,
): number[] => {
  if (expression.startsWith("at(")) {
    if (timezone !== "UTC") throw new Error("only UTC is evaluated for at()");
    const instant = Date.parse(`${expression.slice(3, -1)}Z`);
    return instant >= from && instant < until ? [instant] : [];
  }
  const repeat = isWildcard(expression) ? reading : "first";
  return walk({ dialect: "aws", expression, timezone, from, until, gap: "skip", repeat });
};
