import { alternate, medianOf, ratioOf } from "../alternate.ts";
import { ENGINES, type Engine, EXPRESSIONS, IN_A_ROW, TIMEZONES } from "../engines.ts";
import { type Section, table } from "../section.ts";

const CASES = EXPRESSIONS.flatMap(([name, expression]) =>
  TIMEZONES.map((timezone) => ({ name: `${name} in ${timezone}`, expression, timezone })),
);

/** Microseconds of processor time for a slot, case by case: the schedule is read, then 100 slots in a row. */
const timesOf = ({ run }: Engine): readonly number[] =>
  CASES.map(({ expression, timezone }) => {
    const before = process.cpuUsage();
    run(expression, timezone, IN_A_ROW);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / IN_A_ROW;
  });

/** Next slots beside croner and cron-parser, on the expressions that all three accept. */
export const nextSlots = async (rounds: number): Promise<Section> => {
  const measured = await alternate(
    ENGINES.map((engine) => ({ name: engine.name, measure: async () => timesOf(engine) })),
    rounds,
  );
  const column = (engine: string, index: number): readonly number[] =>
    (measured.get(engine) ?? []).map((times) => times[index] ?? Number.NaN);
  const rows = CASES.map(({ name }, index) => {
    const [own = 0, croner = 0, cronParser = 0] = ENGINES.map((engine) =>
      medianOf(column(engine.name, index)),
    );
    const toCroner = ratioOf(column("belfry", index), column("croner", index));
    const toParser = ratioOf(column("belfry", index), column("cron-parser", index));
    return { name, own, croner, cronParser, toCroner, toParser };
  });
  const isWithin = ({ toCroner, toParser }: (typeof rows)[number]): boolean =>
    Math.min(toCroner, toParser) <= 1 && Math.max(toCroner, toParser) <= 2;
  const within = rows.filter(isWithin).length;
  const worst = rows.toSorted(
    (left, right) => Math.max(right.toCroner, right.toParser) - Math.max(left.toCroner, left.toParser),
  );
  return {
    title: "Next slots",
    text: [
      `${CASES.length} cases (${EXPRESSIONS.length} expressions in ${TIMEZONES.length} zones): read, then ${IN_A_ROW} slots in a row, ${rounds} rounds in turn.`,
      "The five in which we compare worst; [results/schedule.md](results/schedule.md) has them all, cold starts, and which answers are right.",
      "",
      table(
        ["", "belfry, us a slot", "croner", "cron-parser", "to croner", "to cron-parser"],
        worst
          .slice(0, 5)
          .map(({ name, own, croner, cronParser, toCroner, toParser }) => [
            name,
            ...[own, croner, cronParser, toCroner, toParser].map((figure) => figure.toFixed(2)),
          ]),
      ),
    ].join("\n"),
    budgets: [
      {
        what: "next slot, beside croner and cron-parser",
        budget: "not slower than the slower, within 2 x of the faster",
        measured: `${within} of ${CASES.length} cases`,
        met: within === CASES.length,
      },
    ],
  };
};
