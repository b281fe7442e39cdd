import { readFileSync } from "node:fs";
import type { StackConfig } from "../../lib/compose/config.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import { EMBEDDED_TIMINGS } from "../../lib/core/settings.ts";
import type { Endpoints } from "./environment.ts";
import {
  DISPATCH_FAILURES,
  deadLetterQueue,
  poolQueue,
  queueUrl,
  REGION,
  SERVICE,
  STAGE,
  TABLE_NAME,
} from "./resources.ts";

/** A manifest that our own build has just written; it is not checked again. */
export const readManifest = (file: string): Manifest => JSON.parse(readFileSync(file, "utf8"));

/** The deployment facts of the stack on this machine, for the same composition that Lambda runs. */
export const stackConfig = (endpoints: Endpoints, manifest: Manifest): StackConfig => {
  const urls = (nameOf: (pool: string) => string) =>
    Object.fromEntries(
      Object.keys(manifest.pools).map((pool) => [pool, queueUrl(endpoints.sqs, nameOf(pool))]),
    );
  return {
    ...EMBEDDED_TIMINGS,
    service: SERVICE,
    stage: STAGE,
    region: REGION,
    tableName: TABLE_NAME,
    queueUrls: urls(poolQueue),
    deadLetterUrls: urls(deadLetterQueue),
    dispatchFailuresUrl: queueUrl(endpoints.sqs, DISPATCH_FAILURES),
    endpoints,
  };
};
