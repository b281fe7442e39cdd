import { once } from "node:events";
import { createInterface } from "node:readline";
import { type Command, Option } from "commander";
import type { JobPreview } from "../../lib/app/inspect/preview-job.ts";
import { InvalidInput } from "../../lib/core/errors.ts";
import { NAME_PATTERN } from "../../lib/core/identity.ts";
import type { Preview, PreviewRequest } from "../../lib/core/schedule/preview.ts";
import { shortIsoOf } from "../../lib/core/time.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, pairLines, printJson, printLines, tableLines } from "../output.ts";
import { localText } from "../times.ts";
import { addVerb, type CommonOptions, ending, wholeNumber } from "../verb.ts";

interface NextOptions extends CommonOptions {
  readonly timezone?: string;
  readonly from?: string;
  readonly count?: number;
  readonly dialect?: "unix" | "aws" | "quartz";
  readonly stdin?: true;
}

/** No expression of any dialect looks like a name of a job. */
const isJobName = (text: string): boolean => NAME_PATTERN.test(text);

const previewExpression = async (expression: string, options: NextOptions): Promise<Preview> => {
  const { preview, readFrom } = await import("../../lib/core/schedule/preview.ts");
  const { timezone, from, count, dialect } = options;
  const request: PreviewRequest = {
    expression,
    ...(timezone === undefined ? {} : { timezone }),
    // No job is named whose clock could be meant, so a time without a zone is UTC.
    ...(from === undefined ? {} : { from: shortIsoOf(readFrom(from, "UTC")) }),
    ...(count === undefined ? {} : { count }),
    ...(dialect === undefined ? {} : { dialect }),
  };
  return preview(request, Date.now());
};

const previewOfJob = (job: string, options: NextOptions): Promise<JobPreview> => {
  for (const field of ["timezone", "dialect"] as const)
    if (options[field] !== undefined)
      throw new InvalidInput("usage", `--${field} goes with an expression: the job ${job} has its own`, {
        field,
      });
  const { from, count } = options;
  return connect(options).get<JobPreview>(`/v1/jobs/${job}/next`, { from, count });
};

/** By how much the clock of the zone differs from UTC's, in minutes. */
const offsetMinutes = (iso: string, zone: string): number =>
  Math.round((Date.parse(`${localText(iso, zone).replace(" ", "T")}Z`) - Date.parse(iso)) / 60_000);

/** The clocks changed between the two slots. */
const dstMark = (iso: string, before: string | undefined, zone: string): string => {
  if (before === undefined) return "";
  const change = offsetMinutes(iso, zone) - offsetMinutes(before, zone);
  if (change === 0) return "";
  return `clocks went ${change > 0 ? "forward" : "back"} ${Math.abs(change)} min before this slot`;
};

const previewLines = (preview: Preview | JobPreview): readonly string[] => {
  const { expression, dialect, timezone, description, occurrences } = preview;
  const isUtc = timezone === "UTC";
  const rows = occurrences.map((iso, index) => [
    ...(isUtc ? [] : [localText(iso, timezone)]),
    iso,
    dstMark(iso, occurrences[index - 1], timezone),
  ]);
  const headings = [...(isUtc ? [] : [`SLOT (${timezone})`]), "SLOT (UTC)", ""];
  return [
    ...pairLines([
      ["schedule", expression === "" ? "-" : `${expression} (${String(dialect)})`],
      ["means", `${description}, ${timezone}`],
    ]),
    "",
    ...(rows.length === 0 ? ["no further slots"] : tableLines(headings, rows)),
  ];
};

/** One answer line per line, written before the next one is read, so that a program can hold a dialogue. */
const answerStdin = async (): Promise<ExitCode> => {
  const { previewLine } = await import("../../lib/core/schedule/preview.ts");
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === "") continue;
    if (!process.stdout.write(`${previewLine(line, Date.now())}\n`)) await once(process.stdout, "drain");
  }
  return EXIT.done;
};

const next = async (given: string | undefined, options: NextOptions): Promise<ExitCode> => {
  if (options.stdin && given === undefined) return answerStdin();
  if (options.stdin || given === undefined)
    throw new InvalidInput("usage", "next takes an expression or a job, or else --stdin");
  const preview = isJobName(given)
    ? await previewOfJob(given, options)
    : await previewExpression(given, options);
  if (options.json) printJson(preview);
  else {
    printLines(previewLines(preview));
    for (const { message } of preview.warnings) note(`warning: ${message}`);
  }
  return EXIT.done;
};

/** `belfry next`: the slots to come. */
export const addNext = (program: Command): void => {
  addVerb(program, {
    usage: "next [expression-or-job]",
    summary: "show the next slots of an expression, or of a job",
    examples: [
      ["next '0 9 * * 1-5' --timezone Asia/Shanghai", "five slots of a cron expression"],
      ["next 'cron(0 2 L * ? *)' --count 12 --json", "twelve of an AWS expression, for a program"],
      ["next daily-digest", "of a job of the running stack"],
      ["next --stdin < questions.jsonl", "a JSON line in, a JSON line out"],
    ],
    exits: ["0  shown", "4  a job is named, and no stack answers"],
  })
    .option("--timezone <zone>", "IANA name, for an expression (default: UTC)")
    .option("--from <time>", "slots strictly after this (default: now); without a zone the job's, else UTC")
    .addOption(wholeNumber("--count <n>", "how many slots (default: 5)", [1, 1_000]))
    .addOption(
      new Option("--dialect <name>", "how to read the expression (default: recognised)").choices([
        "unix",
        "aws",
        "quartz",
      ]),
    )
    .option("--stdin", "answer JSON lines {id?, expression, dialect?, timezone?, from?, count?} from stdin")
    .action(ending(next));
};
