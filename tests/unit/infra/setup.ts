import type { Resource } from "../../../infra/cloudformation.ts";
import { makeStack, type Stack } from "../../../infra/stack.ts";
import type { JobDefinition, Manifest } from "../../../lib/core/jobs/job.ts";
import { definition } from "../../support/definitions.ts";
import { msOf } from "../../support/path.ts";

export const NOW_MS = msOf("2026-12-01T00:00:00Z");
export const DEPLOYMENT = { service: "notes", stage: "prod" };

export const manifestOf = (jobs: readonly JobDefinition[], changes: Partial<Manifest> = {}): Manifest => ({
  version: 1,
  hash: "0".repeat(64),
  stages: ["dev", "prod"],
  pools: { default: { memoryMb: 256, concurrency: 10 }, slow: { memoryMb: 1_024, concurrency: 2 } },
  jobs: jobs.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  ...changes,
});

export const stackOf = (
  jobs: readonly JobDefinition[],
  { stage = DEPLOYMENT.stage, ...changes }: Partial<Manifest> & { readonly stage?: string } = {},
): Stack =>
  makeStack({
    deployment: { ...DEPLOYMENT, stage },
    manifest: manifestOf(jobs, changes),
    nowMs: NOW_MS,
  });

export const daily = definition({ name: "daily", schedules: ["0 2 * * *"], timezone: "Asia/Shanghai" });
export const hourly = definition({ name: "hourly", schedules: ["0 * * * *"] });
export const byHand = definition({ name: "by-hand" });
export const elsewhere = definition({
  name: "elsewhere",
  schedules: ["0 3 * * *"],
  monitor: { endWithinMs: 60_000 },
});
export const twice = definition({ name: "twice", schedules: ["0 2 * * *", "30 14 * * 1-5"] });

/** A property of a resource, by path; throws where there is none. */
export const property = (resource: Resource | undefined, ...path: readonly (string | number)[]): unknown => {
  let value: unknown = resource?.Properties;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !(step in value))
      throw new Error(`there is no ${path.join(".")} in ${JSON.stringify(resource)}`);
    value = Reflect.get(value, step);
  }
  return value;
};

export const ofType = (stack: Stack, type: string): readonly [string, Resource][] =>
  Object.entries(stack.resources).filter(([, { Type }]) => Type === type);

interface ReadStatement {
  readonly Effect: string;
  readonly Action: readonly string[];
  readonly Resource: readonly unknown[];
}

/** The statements of a role's one policy. */
export const statementsOf = (role: Resource | undefined): readonly ReadStatement[] =>
  property(role, "Policies", 0, "PolicyDocument", "Statement") as readonly ReadStatement[];
