/**
 * Next slot: ours beside croner and cron-parser, in one run. For each expression that all three accept, and each
 * zone, the answers are compared first (where they differ, ours is held against tests/fixtures), then timed:
 * 100 slots in a row from one parsed schedule (warm), parse and first slot from a fixed instant (fresh object,
 * zone known), and parse with the first slot of a zone that this process has not met (cold). Also the price of refusing junk.
 */
import { cpus } from "node:os";
import { parseSchedule } from "../lib/core/schedule/schedule.ts";
import { timeCases } from "../tests/support/schedule-cases.ts";
import { ENGINES, EXPRESSIONS, FROM, IN_A_ROW, TIMEZONES } from "./engines.ts";

/** Links that nothing above asks for, so that each is met once. */
const NEW_ZONES = [
  "US/Eastern",
  "US/Pacific",
  "US/Central",
  "Canada/Eastern",
  "Europe/Vienna",
  "Europe/Prague",
  "Europe/Oslo",
  "Europe/Rome",
  "America/Denver",
  "America/Toronto",
  "America/Chicago",
  "Europe/Madrid",
  "Europe/Athens",
  "Europe/Sofia",
  "Europe/Riga",
];

/** Microseconds of processor time that one run takes: what is measured once must not count other processes. */
const processorMicroseconds = (work: () => void): number => {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
};

/** Microseconds of the fastest of several rounds; a round lasts some milliseconds. */
const microsecondsOf = (work: () => void): number => {
  work();
  let times = 1;
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 7; ) {
    const start = performance.now();
    for (let index = 0; index < times; index++) work();
    const spent = performance.now() - start;
    if (spent < 4) times *= 2;
    else {
      best = Math.min(best, (spent * 1_000) / times);
      round += 1;
    }
  }
  return best;
};

const number = (value: number): string =>
  value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0);

interface Row {
  readonly label: string;
  readonly times: readonly number[];
}

/** Within the budget: not slower than the slower of the two, nor than twice the faster. */
const isWithin = ([own = 0, ...others]: readonly number[]): boolean =>
  own <= Math.max(...others) && own <= 2 * Math.min(...others);

const print = (title: string, rows: readonly Row[]): void => {
  console.log(
    `\n### ${title}\n\n| | ${ENGINES.map(({ name }) => name).join(" | ")} | within budget |\n|---|---|---|---|---|`,
  );
  for (const { label, times } of rows) {
    console.log(`| ${label} | ${times.map(number).join(" | ")} | ${isWithin(times) ? "yes" : "NO"} |`);
  }
};

const timed = (count: number): Row[] =>
  EXPRESSIONS.flatMap(([name, expression]) =>
    TIMEZONES.map((timezone) => ({
      label: `${name} \`${expression}\` ${timezone}`,
      times: ENGINES.map((engine) => microsecondsOf(() => engine.run(expression, timezone, count)) / count),
    })),
  );

/** How each engine answers the cases of five fields: the documented slots, or another answer that also counts. */
const printRight = (): void => {
  const cases = timeCases().filter(({ dialect }) => dialect === "unix");
  console.log(
    `\n### Right answers to the ${cases.length} cases in five fields\n\n| engine | right | wrong |\n|---|---|---|`,
  );
  for (const { name, run } of ENGINES) {
    const right = cases.filter(({ expression, timezone, from, expect = [], error, alt = [] }) => {
      const answers = [error ? "error" : expect, ...alt].map((answer) => JSON.stringify(answer));
      try {
        const slots = run(expression, timezone, 5, Date.parse(from));
        return answers.includes(
          JSON.stringify(slots.map((slot) => new Date(slot).toISOString().replace(".000Z", "Z"))),
        );
      } catch {
        return answers.includes('"error"');
      }
    });
    console.log(`| ${name} | ${right.length} | ${cases.length - right.length} |`);
  }
};

/** Each engine meets zones of its own for the first time; the mean of five. */
const cold = (): Row[] =>
  (["30 2 * * *", "0 0 1 1 *", "0 0 29 2 *"] as const).map((expression, part) => ({
    label: `\`${expression}\``,
    times: ENGINES.map((engine) => {
      let spent = 0;
      const zones = NEW_ZONES.slice(part * 5, part * 5 + 5);
      for (const timezone of zones) {
        spent += processorMicroseconds(() => engine.run(expression, timezone, 1));
      }
      return spent / zones.length;
    }),
  }));

const JUNK = [
  ["empty", ""],
  ["10 kB of stars", "*".repeat(10_000)],
  ["10 kB list", `${"0,".repeat(5_000)}0 * * * *`],
  ["1,000 steps", `*${"/5".repeat(480)} * * * *`],
  ["backwards", "5-1 * * * *"],
  ["30 February", "0 0 30 2 *"],
  ["31st of short months", "0 0 31 2,4,6,9,11 *"],
  ["unicode", "\u6bcf\u5929\u5341\u70b9"],
] as const;

const firstRefusal = (expression: string): number =>
  processorMicroseconds(() => {
    try {
      parseSchedule(expression);
    } catch {
      return;
    }
    throw new Error(`accepted: ${expression}`);
  }) / 1_000;

const printJunk = (): void => {
  console.log(
    "\n### Refusing junk (milliseconds of processor time, the first time)\n\n| input | ms |\n|---|---|",
  );
  for (const [name, expression] of JUNK) console.log(`| ${name} | ${firstRefusal(expression).toFixed(3)} |`);
};

/** The hardest questions that are accepted: slots that a gap swallows every year until the schedule's last. */
const printHard = (): void => {
  console.log(
    "\n### The hardest accepted inputs (milliseconds of processor time, the first time)\n\n| input | ms |\n|---|---|",
  );
  const hard = [
    ["a Sunday that is always in the gap, until 2199", "cron(30 2 ? 3 1#2 *)", "America/Detroit"],
    ["the same, backwards in time", "cron(30 2 ? 3 1#2 *)", "America/Boise"],
    ["a fifth Monday of a leap February", "cron(0 0 ? 2 2#5 *)", "America/Phoenix"],
    ["the last year", "cron(0 0 31 12 ? 2199)", "Europe/Paris"],
  ] as const;
  for (const [name, expression, timezone] of hard) {
    const schedule = parseSchedule(expression, { timezone });
    const spent = processorMicroseconds(() => {
      if (name.includes("backwards")) schedule.previous(Date.parse("2199-12-31T00:00:00Z"));
      else schedule.next(FROM);
    });
    console.log(`| ${name} | ${(spent / 1_000).toFixed(3)} |`);
  }
};

/** Where answers differ, the reader should know; a wrong answer has no speed. */
const printDifferences = (): void => {
  console.log("\n### Where the answers differ (the first of 100 slots)\n");
  for (const [name, expression] of EXPRESSIONS) {
    for (const timezone of TIMEZONES) {
      const [own = [], ...others] = ENGINES.map((engine) => engine.run(expression, timezone, IN_A_ROW));
      others.forEach((slots, index) => {
        const at = slots.findIndex((slot, each) => slot !== own[each]);
        if (at === -1) return;
        const text = [slots[at], own[at]].map((slot) =>
          slot === undefined ? "none" : new Date(slot).toISOString(),
        );
        console.log(`- ${name} in ${timezone}: ${ENGINES[index + 1]?.name} ${text[0]}, belfry ${text[1]}`);
      });
    }
  }
};

console.log(
  `Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model}, tz data ${process.versions["tz"]}`,
);
// What a process pays once for Intl and for compiling each engine is not the price of a zone.
for (const engine of ENGINES)
  for (const timezone of ["Europe/London", "Europe/Dublin"]) engine.run("7 7 * * *", timezone, 9);
printRight();
print("Cold: parse, first slot, a zone never met (microseconds of processor time)", cold());
print("Parse and first slot (microseconds)", timed(1));
print("100 slots in a row, parse included (microseconds per slot)", timed(IN_A_ROW));
printJunk();
printHard();
printDifferences();
