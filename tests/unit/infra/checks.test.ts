import { expect, test } from "vitest";
import { formatFaults } from "../../../infra/build/faults.ts";
import { deploymentFaults, type Project, stackFaults, stageFaults } from "../../../infra/checks.ts";
import type { Manifest } from "../../../lib/core/jobs/job.ts";
import { definition } from "../../support/definitions.ts";
import { DEPLOYMENT, daily, manifestOf, stackOf } from "./setup.ts";

const NOTHING: Project = { functionKeys: [], resourceIds: [] };
const pool = { memoryMb: 256, concurrency: 2 };

const faultsOf = ({
  deployment = DEPLOYMENT,
  project = NOTHING,
  jobs = [daily],
  ...changes
}: Partial<Manifest> & { readonly deployment?: typeof DEPLOYMENT; readonly project?: Project } = {}) =>
  formatFaults(deploymentFaults(deployment, manifestOf(jobs, changes), project));

test("a usual project has no fault", () => {
  expect(faultsOf()).toBe("");
  expect(faultsOf({ project: { functionKeys: ["hello"], resourceIds: ["NotesTable"] } })).toBe("");
  expect(stackFaults(stackOf([daily]), 100)).toEqual([]);
});

test.each(["Prod", "prod_1", "1st", "", "käse", "p".repeat(49), "-a"])("the stage %j is refused", (stage) => {
  expect(formatFaults(stageFaults(stage))).toBe(
    `serverless.yml: stage: "${stage}" is no name of a stage (a stage is a-z, 0-9 and -, begins with a letter and has at most 48 characters)`,
  );
});

test("a stage that the project does not name is refused, so that a typing error deploys nothing", () => {
  expect(faultsOf({ deployment: { ...DEPLOYMENT, stage: "pord" } })).toBe(
    'belfry.config.ts: stages: there is no stage named "pord" (it has dev, prod; add "pord" if you mean it)',
  );
});

test("a name over AWS's limit is one line, with the stage where it is longest and by how much", () => {
  const long = "a-pool-with-a-very-long-name-of-45-characters";
  expect(faultsOf({ pools: { default: pool, [long]: pool } })).toBe(
    `belfry.config.ts: pools.${long}: the name of a function, "notes-prod-belfry-worker-${long}", has ${25 + long.length} characters in the stage prod; AWS takes 64 (shorten the name of the service, the stage or the pool by ${long.length - 39})`,
  );
});

test("a name that is too long in another stage is told when packaging for this one", () => {
  const stages = ["prod", "customer-acceptance-environment-of-the-north"];
  const lines = faultsOf({ stages }).split("\n");
  expect(lines).toHaveLength(4);
  for (const line of lines)
    expect(line).toMatch(/in the stage customer-acceptance-environment-of-the-north; AWS/);
});

test("functions and resources of the project that take our names are refused", () => {
  const project = { functionKeys: ["belfry-operate", "hello"], resourceIds: ["BelfryTable", "Notes"] };
  expect(faultsOf({ project }).split("\n")).toEqual([
    expect.stringMatching(/^serverless\.yml: functions\.belfry-operate: names that begin with Belfry/),
    expect.stringMatching(/^serverless\.yml: resources\.Resources\.BelfryTable: .* resources\.extensions\)$/),
  ]);
});

test("variables that do not fit into a function are refused", () => {
  const big = definition({ ...daily, environment: { TEXT: "x".repeat(4_000) } });
  expect(faultsOf({ jobs: [big] })).toMatch(
    /^belfry\.config\.ts: pools\.default: the variables of its jobs have 4004 bytes .* a function takes 4096 \(/,
  );
});

test("where the queues of many pools leave no room for variables, that is what the fault says", () => {
  const pools = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [n === 0 ? "default" : `pool-${n}`, pool]),
  );
  expect(faultsOf({ pools }).split("\n")[0]).toMatch(
    /its jobs have 0 bytes .* \(use fewer pools: the addresses of their queues take most of it\)$/,
  );
});

test("more resources than a template holds are refused before CloudFormation does", () => {
  expect(formatFaults(stackFaults(stackOf([daily]), 460))).toMatch(
    /^serverless\.yml: the template has \d{3} resources, 460 of them not of Belfry; CloudFormation takes 500 \(/,
  );
});

test("a schedule's input over EventBridge's limit is refused", () => {
  const jobs = Array.from({ length: 6_000 }, (_, n) => {
    const name = `job-${"x".repeat(36)}-${n}`;
    return definition({ ...daily, name, subject: name });
  });
  expect(formatFaults(stackFaults(stackOf(jobs), 0))).toMatch(
    /^jobs: the schedule BelfryScheduleTick has an input of \d{6} bytes; EventBridge Scheduler takes 262144 \(/,
  );
});
