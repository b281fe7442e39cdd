import { NAME_PATTERN } from "../lib/core/identity.ts";
import type { Manifest } from "../lib/core/jobs/job.ts";
import { inStage, needsOfPool } from "../lib/core/jobs/job-needs.ts";
import type { BuildFault } from "./build/faults.ts";
import type { Resource, Resources } from "./cloudformation.ts";
import { type Deployment, LONGEST_NAME, type Name, namesOf } from "./naming.ts";
import { MOST_RESOURCES, type Stack } from "./stack.ts";

/** What the project's own serverless.yml defines. */
export interface Project {
  readonly functionKeys: readonly string[];
  readonly resourceIds: readonly string[];
}

const SERVERLESS = "serverless.yml";
const CONFIG = "belfry.config.ts";

/** Before the jobs are built: the stage is part of every name. */
export const stageFaults = (stage: string): readonly BuildFault[] =>
  NAME_PATTERN.test(stage)
    ? []
    : [
        {
          file: SERVERLESS,
          field: "stage",
          message: `"${stage}" is no name of a stage`,
          hint: "a stage is a-z, 0-9 and -, begins with a letter and has at most 48 characters",
        },
      ];

const SETTING = "custom.belfry";
const TABLE_NAME = /^[A-Za-z0-9_.-]{3,255}$/;

/** `custom.belfry.table` of serverless.yml, once `settingFaults` has none. */
export const keptTableIn = (settings: unknown): { readonly keptTable?: string } => {
  const { table } = (settings ?? {}) as { readonly table?: unknown };
  return typeof table === "string" ? { keptTable: table } : {};
};

/** `custom.belfry` of serverless.yml. */
export const settingFaults = (deployment: Deployment, settings: unknown): readonly BuildFault[] => {
  const fault = (field: string, message: string, hint: string): BuildFault[] => [
    { file: SERVERLESS, field, message, hint },
  ];
  if (typeof settings !== "object" || settings === null || Array.isArray(settings))
    return fault(SETTING, "these are no settings", "write { table: <name> }, or leave it out");
  const unknown = Object.keys(settings).filter((key) => key !== "table");
  if (unknown.length > 0)
    return fault(`${SETTING}.${unknown[0]}`, "there is no such setting", "there is one: table");
  const { table } = settings as { readonly table?: unknown };
  if (table === undefined) return [];
  if (typeof table !== "string" || !TABLE_NAME.test(table))
    return fault(`${SETTING}.table`, "this is no name of a table", "as DynamoDB lists it, not its ARN");
  // As CloudFormation names a table that has no name of its own.
  const owner = /^(.+)-BelfryTable-[A-Z0-9]+$/.exec(table)?.[1];
  const here = `${deployment.service}-${deployment.stage}`;
  if (owner === undefined || owner === here) return [];
  const hint = `name one of ${here}, so that no two stages share runs, claims and pauses`;
  return fault(`${SETTING}.table`, `${table} is the table of ${owner}, and this is ${here}`, hint);
};

/** Everything that AWS, or another part of the project, would refuse later: one line each. */
export const deploymentFaults = (
  { service, stage }: Deployment,
  manifest: Manifest,
  project: Project,
): readonly BuildFault[] => [
  ...unknownStage(stage, manifest.stages),
  ...longNames(service, manifest),
  ...equalNames(namesOf({ service, stage }, Object.keys(manifest.pools))),
  ...takenNames(project),
  ...Object.keys(manifest.pools).flatMap((pool) => bigEnvironment({ service, stage }, manifest, pool)),
];

const unknownStage = (stage: string, stages: readonly string[]): readonly BuildFault[] =>
  stages.includes(stage)
    ? []
    : [
        {
          file: CONFIG,
          field: "stages",
          message: `there is no stage named "${stage}"`,
          hint: `it has ${stages.join(", ")}; add "${stage}" if you mean it`,
        },
      ];

/** Told for every stage at once, so that what can be packaged for dev can be for prod. */
const longNames = (service: string, { stages, pools }: Manifest): readonly BuildFault[] => {
  const longest = new Map<string, Name & { readonly stage: string }>();
  for (const stage of stages)
    for (const name of namesOf({ service, stage }, Object.keys(pools))) {
      const owner = `${name.what} ${name.pool ?? ""}`;
      const known = longest.get(owner);
      if (known === undefined || known.name.length < name.name.length) longest.set(owner, { ...name, stage });
    }
  return [...longest.values()].flatMap(({ what, name, pool, stage }): BuildFault[] => {
    const over = name.length - LONGEST_NAME[what];
    if (over <= 0) return [];
    return [
      {
        file: pool === undefined ? SERVERLESS : CONFIG,
        field: pool === undefined ? "service" : `pools.${pool}`,
        message: `the name of a ${what}, "${name}", has ${name.length} characters in the stage ${stage}; AWS takes ${LONGEST_NAME[what]}`,
        hint: `shorten the name of the service, the stage${pool === undefined ? "" : " or the pool"} by ${over}`,
      },
    ];
  });
};

const equalNames = (names: readonly Name[]): readonly BuildFault[] =>
  names.flatMap(({ what, name }, i) =>
    names.slice(0, i).some((other) => other.what === what && other.name === name)
      ? [{ file: CONFIG, field: "pools", message: `two of them give one ${what} named "${name}"` }]
      : [],
  );

/** Resources of ours have names that begin so. */
const OURS = /^Belfry/;

const takenNames = ({ functionKeys, resourceIds }: Project): readonly BuildFault[] => {
  const keys = functionKeys.filter((key) => /^belfry-/i.test(key));
  const ids = resourceIds.filter((id) => OURS.test(id));
  return [
    ...keys.map((key) => taken(`functions.${key}`)),
    ...ids.map((id) => taken(`resources.Resources.${id}`)),
  ];
};

const taken = (field: string): BuildFault => ({
  file: SERVERLESS,
  field,
  message: "names that begin with Belfry are those of the plugin",
  hint: "rename it; to change a resource of the plugin use resources.extensions",
});

/** Lambda takes so many bytes of variables. */
const LARGEST_ENVIRONMENT = 4_096;
/** The longest that a region, an account and a host take in a queue's address. */
const ADDRESS_BYTES = 60;

const bigEnvironment = (deployment: Deployment, manifest: Manifest, pool: string): readonly BuildFault[] => {
  const { environment } = needsOfPool(manifest.jobs, pool);
  const queues = namesOf(deployment, Object.keys(manifest.pools)).filter(({ what }) => what === "queue");
  const ours =
    300 + queues.reduce((sum, { name, pool: of = "" }) => sum + name.length + of.length + ADDRESS_BYTES, 0);
  const theirs = Object.entries(environment).reduce(
    (sum, [name, value]) => sum + new TextEncoder().encode(name + inStage(value, deployment.stage)).length,
    0,
  );
  if (ours + theirs <= LARGEST_ENVIRONMENT) return [];
  return [
    {
      file: CONFIG,
      field: `pools.${pool}`,
      message: `the variables of its jobs have ${theirs} bytes and Belfry's own about ${ours}; a function takes ${LARGEST_ENVIRONMENT}`,
      hint:
        theirs > ours
          ? "move a job with its environment to another pool, or keep long values elsewhere"
          : "use fewer pools: the addresses of their queues take most of it",
    },
  ];
};

/** EventBridge Scheduler takes so many bytes of input. */
const LARGEST_INPUT = 256 * 1_024;

/** Limits of the finished template. */
export const stackFaults = (
  { resources, functions }: Stack,
  otherResources: number,
): readonly BuildFault[] => {
  const count = Object.keys(resources).length + 2 * functions.length + otherResources;
  const tooMany: BuildFault = {
    file: SERVERLESS,
    message: `the template has ${count} resources, ${otherResources} of them not of Belfry; CloudFormation takes ${MOST_RESOURCES}`,
    hint: "use fewer pools, set ownAlarms in fewer jobs, or deploy what is yours as a stack of its own",
  };
  return [...(count > MOST_RESOURCES ? [tooMany] : []), ...bigInputs(resources)];
};

const bigInputs = (resources: Resources): readonly BuildFault[] =>
  Object.entries(resources).flatMap(([id, resource]) => {
    const bytes = inputBytes(resource);
    if (bytes <= LARGEST_INPUT) return [];
    const message = `the schedule ${id} has an input of ${bytes} bytes; EventBridge Scheduler takes ${LARGEST_INPUT}`;
    return [{ file: "jobs", message, hint: "split the project into two services" }];
  });

const inputBytes = ({ Type, Properties }: Resource): number => {
  if (Type !== "AWS::Scheduler::Schedule") return 0;
  const target: unknown = Properties["Target"];
  const input = typeof target === "object" && target !== null ? Reflect.get(target, "Input") : "";
  return new TextEncoder().encode(String(input)).length;
};
