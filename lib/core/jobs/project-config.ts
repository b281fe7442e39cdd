import { type AlertsConfig, alerts, NO_ALERTS } from "../alerts/alert-channels.ts";
import { durationText } from "../duration.ts";
import { NAME_PATTERN } from "../identity.ts";
import { isRecord } from "../json.ts";
import {
  type Checked,
  didYouMean,
  duration,
  type Fault,
  listOf,
  matching,
  number,
  placeOf,
  type Reader,
  record,
  text,
} from "../read-options.ts";
import { isConfig } from "./authoring.ts";
import { DEFAULT_POOL, DEFAULTS, type JobDefinition, type PoolDefinition } from "./job.ts";
import { NAME_HINT } from "./job-options.ts";
import { LONGEST_TIMEOUT_MS } from "./pool.ts";

export interface ProjectConfig {
  readonly stages: readonly string[];
  readonly pools: { readonly [name: string]: PoolDefinition };
  readonly alerts: AlertsConfig;
}

const DEFAULT_STAGES = ["dev", "prod"];

const pool = record({
  memory: number({ min: 128, max: 10_240, whole: true }),
  // Lambda's `maximumConcurrency` of a queue begins at 2.
  concurrency: number({ min: 2, max: 1_000, whole: true }),
  timeout: duration({ maxMs: LONGEST_TIMEOUT_MS, why: "a Lambda function ends after 15 minutes" }),
  vpc: record({ securityGroups: listOf(text), subnets: listOf(text) }),
});
const name = matching(NAME_PATTERN, NAME_HINT);

const pools: Reader<ProjectConfig["pools"]> = (value, place) => {
  if (!isRecord(value)) return place.fault("this is not an object", "pools: { slow: { memory: 512 } }");
  const read = Object.entries(value).map(([poolName, given]): [string, PoolDefinition] => {
    const inner = place.inner(poolName);
    name(poolName, inner);
    const { memory, concurrency, timeout, vpc } = pool(given, inner) ?? {};
    const { securityGroups, subnets } = vpc ?? {};
    if (vpc && !(securityGroups && subnets))
      inner.inner("vpc").fault("securityGroups and subnets are both needed", "a list of ids each");
    return [
      poolName,
      {
        memoryMb: memory ?? DEFAULT_POOL.memoryMb,
        concurrency: concurrency ?? DEFAULT_POOL.concurrency,
        ...(timeout !== undefined && { timeoutMs: timeout }),
        ...(securityGroups && subnets && { vpc: { securityGroups, subnets } }),
      },
    ];
  });
  return Object.fromEntries(read);
};

/** The default export of `belfry.config.ts` with its defaults; undefined = there is no such file. */
export const checkConfig = (exported: unknown): Checked<ProjectConfig> => {
  const faults: Fault[] = [];
  const place = placeOf("", faults);
  if (exported !== undefined && !isConfig(exported)) {
    place.fault("there is no default export made by defineConfig", "export default defineConfig({ ... })");
    return { ok: false, faults };
  }
  const read = record({ stages: listOf(name), pools, alerts })(exported?.config ?? {}, place);
  if (faults.length > 0) return { ok: false, faults };
  return {
    ok: true,
    value: {
      stages: read?.stages ?? DEFAULT_STAGES,
      pools: { [DEFAULTS.pool]: DEFAULT_POOL, ...read?.pools },
      alerts: read?.alerts ?? NO_ALERTS,
    },
  };
};

/** What a job names that the project does not have. */
export const faultsAgainst = (
  config: ProjectConfig,
  job: Pick<JobDefinition, "pool" | "stages" | "timeoutMs">,
): readonly Fault[] => {
  const faults: Fault[] = [];
  const known = Object.keys(config.pools);
  const pool = config.pools[job.pool];
  if (!pool) faults.push(unknown("pool", job.pool, known));
  const longestMs = pool?.timeoutMs ?? LONGEST_TIMEOUT_MS;
  if (pool && job.timeoutMs > longestMs)
    faults.push({
      field: "timeout",
      message: `${durationText(job.timeoutMs)} is over what the pool "${job.pool}" allows, ${durationText(longestMs)}`,
      hint: "choose another pool, a shorter timeout, or split the work",
    });
  job.stages?.forEach((stage, i) => {
    if (!config.stages.includes(stage)) faults.push(unknown(`stages[${i}]`, stage, config.stages));
  });
  return faults;
};

const unknown = (field: string, given: string, known: readonly string[]): Fault => ({
  field,
  message: `belfry.config.ts has no ${field.replace(/s?\[.*/, "")} named "${given}"`,
  hint: didYouMean(given, known) ?? `it has ${known.join(", ")}`,
});
