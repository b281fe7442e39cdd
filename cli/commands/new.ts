import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { Conflict, InvalidInput } from "../../lib/core/errors.ts";
import { NAME_PATTERN } from "../../lib/core/identity.ts";
import { NAME_HINT } from "../../lib/core/jobs/job-options.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines } from "../output.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";

/** What a person changes first is at the top; every other option has a default. */
const TEMPLATE = `import { defineJob } from "belfry";

export default defineJob({
  description: "Says what this job is for; shown in lists and alerts",
  schedule: "0 2 * * *",
  timezone: "UTC",
  timeout: "5 minutes",

  // Called once per slot, and again after a failure: count from \`slot\`, not from the clock, so that a repeat does
  // the same as the first try.
  async handler({ slot, log }) {
    log.info("hello", { slot });
    return { done: true };
  },
});
`;

/** Endings that a job's file may have: a job of that name may be there already in another one. */
const EXTENSIONS = ["ts", "js", "mjs"];

const newJob = async (name: string, options: CommonOptions): Promise<ExitCode> => {
  if (!NAME_PATTERN.test(name))
    throw new InvalidInput("invalid_name", `"${name}" is no name of a job`, {
      field: "job",
      hint: NAME_HINT,
    });
  const taken = EXTENSIONS.map((extension) => join("jobs", `${name}.${extension}`)).find((file) =>
    existsSync(file),
  );
  if (taken !== undefined) throw new Conflict("job_exists", `${taken} exists already; nothing was written`);
  const file = join("jobs", `${name}.ts`);
  mkdirSync("jobs", { recursive: true });
  // Whatever was written in between stays as it is.
  writeFileSync(file, TEMPLATE, { flag: "wx" });
  if (options.json) printJson({ job: name, file });
  else printLines([file]);
  note(`edit it, then: npx belfry dev, and in a second terminal: npx belfry run ${name} --wait`);
  return EXIT.done;
};

/** `belfry new`: a job's file from a template. */
export const addNew = (program: Command): void => {
  addVerb(program, {
    usage: "new <job>",
    summary: "write jobs/<job>.ts from a template; nothing is overwritten",
    examples: [
      ["new clean-sessions", "makes jobs/clean-sessions.ts, to be edited"],
      ["new clean-sessions --json", "answers its place for a program"],
    ],
    exits: ["0  written", "3  a job of that name exists already"],
  }).action(ending(newJob));
};
