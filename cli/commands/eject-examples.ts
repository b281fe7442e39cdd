import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { InvalidInput } from "../../lib/core/errors.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines } from "../output.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";
import { confirm } from "./acts.ts";

/** The example jobs, what they share, and their tests: all that goes when somebody makes the repository theirs. */
const EXAMPLES = [
  "jobs/clean-sessions.ts",
  "jobs/daily-digest.ts",
  "jobs/send-reminders.ts",
  "jobs/check-links.ts",
  "jobs/rebuild-index.ts",
  "jobs/store",
  "tests/integration/jobs",
];

/** Elsewhere files of these names are somebody's own. */
const checkFolder = (): void => {
  const isRepository =
    existsSync("package.json") && nameIn(readFileSync("package.json", "utf8")) === "belfry";
  if (!isRepository)
    throw new InvalidInput("no_examples", "this folder is not a clone of belfry, so it has no example jobs", {
      hint: "go to the folder that you cloned; in a project of your own, delete what you do not need",
    });
};

/** The line of serverless.yml that reads the store's own table would read a file that is gone. */
const forgetStore = (): void => {
  if (!existsSync("serverless.yml")) return;
  const lines = readFileSync("serverless.yml", "utf8").split("\n");
  writeFileSync("serverless.yml", lines.filter((line) => !line.includes("jobs/store/")).join("\n"));
};

const nameIn = (text: string): unknown => {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null && "name" in parsed ? parsed.name : undefined;
  } catch {
    return undefined;
  }
};

const ejectExamples = async (options: CommonOptions & { readonly yes?: true }): Promise<ExitCode> => {
  checkFolder();
  const found = EXAMPLES.filter((path) => existsSync(path));
  if (found.length > 0) {
    await confirm(`remove ${found.join(", ")}?`, options.yes === true);
    for (const path of found) rmSync(path, { recursive: true });
    forgetStore();
  }
  if (options.json) printJson({ removed: found });
  else printLines(found.map((path) => `removed ${path}`));
  note(found.length === 0 ? "there are no example jobs left" : "write your own: npx belfry new <job>");
  return EXIT.done;
};

/** `belfry eject-examples`: the repository without the jobs that only show how it is done. */
export const addEjectExamples = (program: Command): void => {
  addVerb(program, {
    usage: "eject-examples",
    summary: "remove the example jobs, their store and their tests from a clone",
    examples: [
      ["eject-examples", "shows what would go, and asks"],
      ["eject-examples --yes", "does not ask"],
    ],
    exits: ["0  removed, or nothing was left to remove"],
  })
    .addOption(new Option("--yes", "do not ask"))
    .action(ending(ejectExamples));
};
