import { InvalidInput } from "../../lib/core/errors.ts";
import type { JobDefinition, Manifest } from "../../lib/core/jobs/job.ts";
import { isMonitor } from "../../lib/core/monitors/monitor.ts";

const listed = (names: readonly string[]): string => names.join(", ");

const checkName = ({ jobs }: Manifest, name: string): void => {
  const job = jobs.find((one) => one.name === name);
  if (job === undefined) {
    throw new InvalidInput("unknown_job", `there is no job "${name}"`, {
      field: "job",
      hint: `the project has ${listed(jobs.map((one) => one.name))}`,
    });
  }
  if (isMonitor(job)) {
    throw new InvalidInput("runs_elsewhere", `${name} is a monitor: there is nothing to simulate`, {
      field: "job",
      hint: "name jobs that run here",
    });
  }
  if (job.schedules.length > 0) return;
  throw new InvalidInput("no_schedule", `${name} runs by hand only: there is nothing to simulate`, {
    field: "job",
    hint: "try one run of it in a test, with belfry/testing",
  });
};

/** @throws InvalidInput for a stage that the project does not have */
export const checkStage = ({ stages }: Manifest, stage: string | undefined): void => {
  if (stage === undefined || stages.includes(stage)) return;
  throw new InvalidInput("unknown_stage", `there is no stage "${stage}"`, {
    field: "stage",
    hint: `belfry.config.ts has ${listed(stages)}`,
  });
};

/** Everywhere its schedule fires; the simulated deployment is no stage of the project. */
const anywhere = ({ stages: _, ...job }: JobDefinition): JobDefinition => job;

/**
 * The jobs to be simulated, in order of name: those named, else all that have a schedule; with a stage, only what
 * fires there.
 * @throws InvalidInput for a job or a stage that the project does not have, and where nothing is left
 */
export const chooseJobs = (
  manifest: Manifest,
  names: readonly string[],
  stage: string | undefined,
): readonly JobDefinition[] => {
  checkStage(manifest, stage);
  for (const name of names) checkName(manifest, name);
  const wanted = manifest.jobs.filter(({ name }) => names.length === 0 || names.includes(name));
  const chosen = wanted.filter(
    ({ monitor, schedules, stages }) =>
      monitor === undefined &&
      schedules.length > 0 &&
      (stage === undefined || stages === undefined || stages.includes(stage)),
  );
  if (chosen.length > 0) return chosen.map(anywhere);
  throw new InvalidInput("no_schedule", "none of the jobs has a schedule that fires there", { field: "job" });
};
