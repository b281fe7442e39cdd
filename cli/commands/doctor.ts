import type { Command } from "commander";
import type { Deployment } from "../../infra/naming.ts";
import { unheard } from "../../infra/reach.ts";
import { NO_ALERTS } from "../../lib/core/alerts/alert-channels.ts";
import { InvalidInput } from "../../lib/core/errors.ts";
import { diffJobs } from "../../lib/core/jobs/diff.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { type JobList, jobList } from "../../lib/core/jobs/job-list.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines } from "../output.ts";
import { type Finding, findingsOf } from "../stage/drift.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";
import { buildHere, deployedJobs } from "./diff.ts";

const jobFindings = (before: JobList, manifest: Manifest, stage: string): readonly Finding[] => {
  const changes = diffJobs(before, jobList(manifest, stage), Date.now());
  return findingsOf(
    "jobs",
    changes.map(({ job, change }) => `${job} is ${change} in this folder`),
    {
      level: "warning",
      well: `the ${before.all.length} jobs of the stage are those of this folder`,
      advice: `"npx belfry diff --stage ${stage}" shows what a deploy would change`,
    },
  );
};

const alertFindings = async (
  deployment: Deployment,
  { alerts = NO_ALERTS }: Manifest,
): Promise<readonly Finding[]> => {
  const { warnOfUnconfirmed } = await import("../../infra/confirmed.ts");
  const texts = [...unheard(alerts, deployment.stage)];
  await warnOfUnconfirmed({ deployment, alerts, warn: (line) => texts.push(line) });
  return findingsOf("alerts", texts, {
    level: "warning",
    well: "what goes wrong is told to somebody",
    advice: `"npx belfry alert test --stage ${deployment.stage}" tries every hop`,
  });
};

/** `.` well, `?` to be looked at, `!` wrong. */
const SIGNS = { ok: ".", warning: "?", fault: "!" } as const;

const lineOf = ({ about, level, message, advice }: Finding): string =>
  `${SIGNS[level]} ${about.padEnd(9)}  ${message}${advice === undefined ? "" : ` (${advice})`}`;

const doctor = async (options: CommonOptions): Promise<ExitCode> => {
  const { stage } = options;
  if (stage === undefined)
    throw new InvalidInput("usage", "doctor looks at a deployed stage: name it with --stage", {
      field: "stage",
    });
  const [{ deploymentOf }, { examine }] = await Promise.all([
    import("../stage/service.ts"),
    import("../stage/examine.ts"),
  ]);
  const deployment = deploymentOf(stage);
  const [manifest, jobs] = await Promise.all([buildHere(), deployedJobs(options)]);
  const findings = [
    ...(await examine(deployment, jobs, Date.now())),
    ...jobFindings(jobs, manifest, stage),
    ...(await alertFindings(deployment, manifest)),
  ];
  const faults = findings.filter(({ level }) => level === "fault").length;
  if (options.json) printJson({ stage, findings });
  else {
    printLines(findings.map(lineOf));
    note(faults === 0 ? `nothing is wrong with ${stage}` : `${faults} wrong with ${stage}`);
  }
  return faults === 0 ? EXIT.done : EXIT.failed;
};

/** `belfry doctor`: is a deployed stage as it should be? */
export const addDoctor = (program: Command): void => {
  addVerb(program, {
    usage: "doctor",
    summary: "look whether a deployed stage is as its jobs ask for, and whether somebody hears of it",
    examples: [
      ["doctor --stage prod", "stack, schedules, queues, jobs and alerts of prod"],
      ["doctor --stage prod --json", "the same for a program"],
    ],
    exits: ["0  nothing is wrong", "1  something is", "4  the stage or AWS does not answer"],
  }).action(ending(doctor));
};
