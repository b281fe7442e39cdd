import type { Manifest } from "../core/jobs/job.ts";
import { needsOfPool } from "../core/jobs/job-needs.ts";
import type { StackConfig } from "./config.ts";

/**
 * Puts the secrets of a pool's jobs into the environment that handlers inherit. Workers without secrets load no
 * client for them.
 * @throws InvalidInput for a secret that is not there: better no worker, and an alarm, than a handler with half of
 *   what it needs
 */
export const fillSecrets = async (
  { stage, region }: Pick<StackConfig, "stage" | "region">,
  { jobs }: Pick<Manifest, "jobs">,
  pool: string,
  environment: { [variable: string]: string | undefined },
): Promise<void> => {
  const { secrets } = needsOfPool(jobs, pool);
  if (Object.keys(secrets).length === 0) return;
  const { readSecrets } = await import("../adapters/secrets/aws-secrets.ts");
  Object.assign(environment, await readSecrets(secrets, { stage, region }));
};
