import type { Command } from "commander";
import { durationMs } from "../../lib/core/duration.ts";
import { SECOND_MS } from "../../lib/core/time.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines } from "../output.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface Options extends CommonOptions {
  readonly from: string;
  readonly to: string;
  readonly speed?: number;
  readonly faults?: number;
  readonly dry?: true;
  readonly lasts?: string;
  readonly limit?: string;
  readonly realDate?: true;
}

const LIMIT_MS = 30 * SECOND_MS;

const act = async (jobs: readonly string[], options: Options): Promise<ExitCode> => {
  const { from, to, speed, faults, lasts, limit, stage, data } = options;
  const { simulate } = await import("../simulate/simulate.ts");
  const answer = await simulate(jobs, {
    from,
    to,
    dry: options.dry === true,
    realDate: options.realDate === true,
    limitMs: limit === undefined ? LIMIT_MS : durationMs(limit, "limit"),
    note,
    ...(speed === undefined ? {} : { speed }),
    ...(faults === undefined ? {} : { faults }),
    ...(lasts === undefined ? {} : { lastsMs: durationMs(lasts, "lasts") }),
    ...(stage === undefined ? {} : { stage }),
    ...(data === undefined ? {} : { data }),
  });
  if (options.json) printJson(answer);
  else {
    const { answerLines } = await import("../simulate/text.ts");
    printLines(answerLines(answer));
  }
  return answer.broken.length + answer.deadRuns.length > 0 ? EXIT.failed : EXIT.done;
};

/** `belfry simulate`: the project's own jobs on a virtual clock. */
export const addSimulate = (program: Command): void => {
  addVerb(program, {
    usage: "simulate [job...]",
    summary: "play the slots of the project's jobs on a virtual clock, a month in seconds",
    stage: "only what fires in this stage (default: every job that has a schedule)",
    examples: [
      [
        "simulate --from 2026-10-01 --to 2026-11-01 --dry",
        "what would run, and what would not; calls no handler",
      ],
      [
        "simulate --from 2026-10-01 --to 2026-11-01 --faults 7",
        "with crashes, lost and double messages, by seed",
      ],
      [
        "simulate report --from 2026-10-01 --to 2026-10-08 --lasts '2 hours'",
        "if it took two hours, what is skipped?",
      ],
      ["simulate --from 2026-03-28 --to 2026-03-30 --speed 3600", "watch it, an hour a second"],
    ],
    exits: ["0  played: every promise held, no run is dead", "1  a run is dead, or a promise did not hold"],
  })
    .requiredOption("--from <time>", "the first slots; without a zone that of the one job named, else UTC")
    .requiredOption("--to <time>", "the end, not included; a year after --from at most")
    .addOption(
      wholeNumber(
        "--speed <n>",
        "so many virtual seconds a second (default: as fast as it goes)",
        [1, 10_000_000],
      ),
    )
    .addOption(
      wholeNumber(
        "--faults <seed>",
        "let things go wrong; the same seed, the same story",
        [0, 4_294_967_295],
      ),
    )
    .option("--dry", "call no handler: each attempt succeeds after a second")
    .option(
      "--lasts <duration>",
      "how long each attempt lasts (default: as long as the handler really takes)",
    )
    .option(
      "--limit <duration>",
      "real time that a handler may take until it counts as timed out (default: 30 seconds)",
    )
    .option("--real-date", "handlers see the real date in Date, not the simulated one")
    .action(ending(act));
};
