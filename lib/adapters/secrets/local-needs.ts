import { parseEnv } from "node:util";
import { inStage, type JobNeeds } from "../../core/jobs/job-needs.ts";

export interface LocalNeeds {
  /** To be added to the worker's environment. */
  readonly variables: { readonly [variable: string]: string };
  /** Secrets that neither `.env` nor the environment has. */
  readonly missing: readonly string[];
}

/**
 * What a job's `environment` and `secrets` are on a laptop: the shell's own value, else `.env`'s, else, for
 * `environment`, what the job says - unless that refers to a resource of the deployment: it is unset then.
 * @param dotenv the text of the project's `.env`; empty where there is none
 */
export const localNeeds = (
  { environment, secrets }: Required<JobNeeds>,
  dotenv: string,
  shell: { readonly [variable: string]: string | undefined },
  stage: string,
): LocalNeeds => {
  const file = parseEnv(dotenv);
  const variableOf = (variable: string): string | undefined => shell[variable] ?? file[variable];
  const declared = Object.entries(environment).flatMap(([variable, value]): [string, string][] => {
    const own = variableOf(variable);
    if (own !== undefined) return [[variable, own]];
    // Only a deployment knows what another resource is called.
    return value.includes("${") ? [] : [[variable, inStage(value, stage)]];
  });
  const known = Object.keys(secrets).flatMap((variable): [string, string][] => {
    const value = variableOf(variable);
    return value === undefined ? [] : [[variable, value]];
  });
  return {
    variables: Object.fromEntries([...declared, ...known]),
    missing: Object.keys(secrets).filter((variable) => variableOf(variable) === undefined),
  };
};
