import type { Json } from "../json.ts";
import { isRecord } from "../json.ts";
import { json } from "../read-json.ts";
import { type Fault, listOf, matching, oneOrMore, type Reader, record, text } from "../read-options.ts";
import type { JobDefinition } from "./job.ts";

/** One IAM statement that allows; resources may hold `{stage}` and CloudFormation's `${...}`. */
export interface Permission {
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  /** As IAM writes them: `{ StringEquals: { "s3:prefix": "a/" } }`. */
  readonly conditions?: Json;
}

/**
 * What a job's handler needs of its surroundings. A worker serves every job of its pool, so all of this goes to the
 * pool: each of its jobs can do what one of them may.
 */
export interface JobNeeds {
  readonly permissions?: readonly Permission[];
  /** Variable -> value, with `{stage}` and, in a deployment, CloudFormation's `${...}`. */
  readonly environment?: { readonly [variable: string]: string };
  /** Variable -> `ssm:<parameter>` or `secretsmanager:<secret>`, with `{stage}`. */
  readonly secrets?: { readonly [variable: string]: string };
}

const ACTION_HINT = 'an action is a service and a call: "s3:GetObject", "dynamodb:*"';
const action = matching(/^[a-z0-9-]+:[A-Za-z0-9*?]+$/, ACTION_HINT);

/** CloudFormation's own way to name another resource of the template. */
const REFERENCE = ["$", "{NotesTable.Arn}"].join("");

const resource: Reader<string> = (value, place) => {
  const given = text(value, place);
  if (given === undefined || given === "*" || /^arn:|^\$\{/.test(given)) return given;
  return place.fault(
    `"${given}" is no ARN`,
    `write "arn:aws:s3:::notes/*", "${REFERENCE}" for a resource of the same serverless.yml, or "*"`,
  );
};

const conditions: Reader<Json> = (value, place) =>
  isRecord(value)
    ? json(value, place)
    : place.fault("this is no condition block of IAM", 'write { StringEquals: { "s3:prefix": "a/" } }');

const statement = record({ actions: oneOrMore(action), resources: oneOrMore(resource), conditions });

const permission: Reader<Permission> = (value, place) => {
  const read = statement(value, place);
  if (read === undefined) return undefined;
  const { actions, resources, ...rest } = read;
  if (actions === undefined || resources === undefined) {
    if (isRecord(value) && !("actions" in value && "resources" in value))
      place.fault(
        "actions and resources are both needed",
        '{ actions: "s3:GetObject", resources: "arn:..." }',
      );
    return undefined;
  }
  return { actions, resources, ...rest };
};

export const permissions = listOf(permission);

const VARIABLE = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;
/** Lambda's own names, and ours. See https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html */
const RESERVED = /^(?:AWS_|LAMBDA_|BELFRY_)/;

const variables =
  (read: Reader<string>): Reader<{ readonly [variable: string]: string }> =>
  (value, place) => {
    if (!isRecord(value)) return place.fault("this is not an object", '{ API_URL: "https://..." }');
    const entries = Object.entries(value).map(([name, given]) => {
      const inner = place.inner(name);
      if (!VARIABLE.test(name)) inner.fault(`"${name}" is no name of a variable`, "letters, digits and _");
      else if (RESERVED.test(name))
        inner.fault("the name is reserved", "AWS_, LAMBDA_ and BELFRY_ are not yours");
      return [name, read(given, inner) ?? ""] as const;
    });
    return Object.fromEntries(entries);
  };

export const environment = variables((value, place) =>
  typeof value === "string" ? value : place.fault("the value is not a text", "write it in quotes"),
);

const SECRET = /^(?:ssm:[A-Za-z0-9_./{}-]{1,1011}|secretsmanager:[A-Za-z0-9/_+=.@{}-]{1,512}(?:#[^#\s]+)?)$/;

export const secrets = variables((value, place) =>
  typeof value === "string" && SECRET.test(value)
    ? value
    : place.fault(
        "this is not where a secret lies",
        '"ssm:/notes/{stage}/api-key", "secretsmanager:notes/{stage}" or, for one key of a JSON secret, "secretsmanager:notes#password"; never the secret itself',
      ),
);

export interface SecretSource {
  readonly service: "ssm" | "secretsmanager";
  readonly name: string;
  /** Of a JSON secret. */
  readonly key?: string;
}

/** Where a secret lies, in a stage. */
export const secretSource = (reference: string, stage: string): SecretSource => {
  const [service, rest = ""] = inStage(reference, stage).split(/:(.*)/s);
  if (service === "ssm") return { service, name: rest };
  const [name = "", key] = rest.split("#");
  return { service: "secretsmanager", name, ...(key === undefined ? {} : { key }) };
};

/** `{stage}` in a text, filled in. */
export const inStage = (given: string, stage: string): string => given.replaceAll("{stage}", stage);

type Needy = Pick<JobDefinition, "name" | "pool" | "environment" | "secrets" | "permissions">;

const distinct = (all: readonly Permission[]): readonly Permission[] => [
  ...new Map(all.map((permission) => [JSON.stringify(permission), permission])).values(),
];

/**
 * The needs of all jobs of a pool, as one; what two jobs ask for in the same words is there once. Where two differ
 * about a variable, `clashingNeeds` says so before.
 */
export const needsOfPool = (jobs: readonly Needy[], pool: string): Required<JobNeeds> => {
  const ofPool = jobs.filter((job) => job.pool === pool);
  return {
    permissions: distinct(ofPool.flatMap((job) => job.permissions ?? [])),
    environment: Object.assign({}, ...ofPool.map((job) => job.environment ?? {})),
    secrets: Object.assign({}, ...ofPool.map((job) => job.secrets ?? {})),
  };
};

/** Variables of this job that an earlier job of its pool gives another value. */
export const clashingNeeds = (job: Needy, earlier: readonly Needy[]): readonly Fault[] =>
  (["environment", "secrets"] as const).flatMap((kind) =>
    Object.entries(job[kind] ?? {}).flatMap(([variable, value]): Fault[] => {
      const other = earlier.find(
        (one) =>
          one.pool === job.pool &&
          variableOf(one, variable) !== undefined &&
          variableOf(one, variable) !== value,
      );
      if (other === undefined && variableOf({ ...job, [kind]: undefined }, variable) === undefined) return [];
      const message =
        other === undefined
          ? `${variable} is in environment and in secrets`
          : `the job "${other.name}" of the same pool gives ${variable} another value`;
      return [
        {
          field: `${kind}.${variable}`,
          message,
          hint: "rename one of the two, or move a job to another pool",
        },
      ];
    }),
  );

const variableOf = ({ environment: values, secrets: places }: Needy, variable: string): string | undefined =>
  values?.[variable] ?? places?.[variable];
