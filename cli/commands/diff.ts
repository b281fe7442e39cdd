import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { buildProject, formatFaults } from "../../infra/build/build.ts";
import { InvalidInput } from "../../lib/core/errors.ts";
import { diffJobs, type JobChange } from "../../lib/core/jobs/diff.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { type JobList, jobList } from "../../lib/core/jobs/job-list.ts";
import type { DefinitionsAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines } from "../output.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";

/** The jobs of the project in this folder, as a deploy would take them. */
export const buildHere = async (): Promise<Manifest> => {
  const outDir = await mkdtemp(join(tmpdir(), "belfry-diff-"));
  try {
    const built = await buildProject({ projectDir: process.cwd(), outDir });
    if (built.ok) return built.manifest;
    throw new InvalidInput("invalid_project", formatFaults(built.faults));
  } finally {
    await rm(outDir, { recursive: true, force: true });
  }
};

/** What the stage runs now. */
export const deployedJobs = async (options: CommonOptions): Promise<JobList> => {
  const { stage, hash, jobs } = await connect(options).get<DefinitionsAnswer>("/v1/definitions");
  return jobList({ jobs, hash }, stage);
};

const slotsText = (slots: readonly string[]): string => (slots.length === 0 ? "never" : slots.join(", "));

const SIGNS = { added: "+", changed: "~", removed: "-" } as const;

const linesOf = ({ job, change, options, nextBefore, nextAfter }: JobChange): readonly string[] => {
  const head = `${SIGNS[change]} ${job}${options.length === 0 ? "" : `: ${options.join(", ")}`}`;
  if (change === "added") return [head, `    next   ${slotsText(nextAfter)}`];
  if (change === "removed") return [head, `    next   ${slotsText(nextBefore)}, and then no more`];
  if (slotsText(nextBefore) === slotsText(nextAfter))
    return [head, `    next   ${slotsText(nextAfter)}, as before`];
  return [head, `    before ${slotsText(nextBefore)}`, `    after  ${slotsText(nextAfter)}`];
};

const diff = async (options: CommonOptions): Promise<ExitCode> => {
  const [manifest, before] = await Promise.all([buildHere(), deployedJobs(options)]);
  const after = jobList(manifest, before.stage);
  const changes = diffJobs(before, after, Date.now());
  if (options.json) printJson({ stage: before.stage, changes });
  else if (changes.length === 0) note(`the jobs of ${before.stage} are those of this folder`);
  else {
    printLines(changes.flatMap(linesOf));
    note("a changed schedule starts from the change: nothing that has passed is run by a deploy");
  }
  return EXIT.done;
};

/** `belfry diff`: what a deploy of this folder would change. */
export const addDiff = (program: Command): void => {
  addVerb(program, {
    usage: "diff",
    summary: "show what a deploy of this folder would change, and the next slots before and after",
    examples: [
      ["diff --stage prod", "the jobs of this folder beside those of prod"],
      ["diff --stage prod --json", "the same for a program"],
    ],
    exits: ["0  shown", "4  no stack answers"],
  }).action(ending(diff));
};
