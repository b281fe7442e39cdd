import { expect, test } from "vitest";
import { localNeeds } from "../../../lib/adapters/secrets/local-needs.ts";
import { clashingNeeds, needsOfPool, secretSource } from "../../../lib/core/jobs/job-needs.ts";
import { checkJob } from "../../../lib/core/jobs/job-options.ts";
import { definition } from "../../support/definitions.ts";

const faultsOf = (needs: object): readonly string[] => {
  const checked = checkJob({ handler: () => 1, ...needs }, "needy");
  return checked.ok ? [] : checked.faults.map(({ field, message }) => `${field}: ${message}`);
};

test("permissions, environment and secrets are part of the definition", () => {
  const needs = {
    permissions: [{ actions: "s3:GetObject", resources: ["arn:aws:s3:::notes/*", "*"] }],
    environment: { BUCKET: "notes-{stage}" },
    secrets: { API_KEY: "ssm:/notes/{stage}/key" },
  };
  const checked = checkJob({ handler: () => 1, ...needs }, "needy");
  expect(checked).toMatchObject({
    ok: true,
    value: {
      ...needs,
      permissions: [{ actions: ["s3:GetObject"], resources: ["arn:aws:s3:::notes/*", "*"] }],
    },
  });
});

test.each([
  [
    "every call",
    { permissions: [{ actions: "*", resources: "*" }] },
    'permissions[0].actions: "*" is no name',
  ],
  [
    "a resource that is no ARN",
    { permissions: [{ actions: "s3:GetObject", resources: "my-bucket" }] },
    'permissions[0].resources: "my-bucket" is no ARN',
  ],
  [
    "a statement without resources",
    { permissions: [{ actions: "s3:GetObject" }] },
    "permissions[0]: actions and resources are both needed",
  ],
  [
    "a reserved variable",
    { environment: { AWS_REGION: "x" } },
    "environment.AWS_REGION: the name is reserved",
  ],
  ["one of ours", { secrets: { BELFRY_KEY: "ssm:/x" } }, "secrets.BELFRY_KEY: the name is reserved"],
  [
    "no name of a variable",
    { environment: { "a-b": "x" } },
    'environment.a-b: "a-b" is no name of a variable',
  ],
  ["a number", { environment: { PORT: 80 } }, "environment.PORT: the value is not a text"],
  [
    "a secret itself",
    { secrets: { API_KEY: "sk_live_123" } },
    "secrets.API_KEY: this is not where a secret lies",
  ],
  [
    "input over the limit",
    { input: { text: "x".repeat(131_072) } },
    "input: the input has 129 KiB of JSON; at most 128 fit",
  ],
])("%s is refused", (_, needs, line) => {
  expect(faultsOf(needs)).toEqual([line]);
});

test("a secret's place is read with its stage and its key", () => {
  expect(secretSource("ssm:/notes/{stage}/key", "prod")).toEqual({ service: "ssm", name: "/notes/prod/key" });
  expect(secretSource("secretsmanager:notes/{stage}#password", "dev")).toEqual({
    service: "secretsmanager",
    name: "notes/dev",
    key: "password",
  });
});

test("two jobs of a pool that differ about a variable are a fault; in two pools they may", () => {
  const first = definition({ name: "first", environment: { URL: "a" }, secrets: { KEY: "ssm:/a" } });
  const second = definition({ name: "second", environment: { URL: "b", KEY: "c" } });
  expect(clashingNeeds(second, [first]).map(({ field }) => field)).toEqual([
    "environment.URL",
    "environment.KEY",
  ]);
  expect(clashingNeeds({ ...second, pool: "slow" }, [first])).toEqual([]);
  expect(clashingNeeds({ ...first, name: "third" }, [first])).toEqual([]);
  const both = definition({ name: "both", environment: { KEY: "x" }, secrets: { KEY: "ssm:/x" } });
  expect(clashingNeeds(both, []).map(({ message }) => message)).toContain(
    "KEY is in environment and in secrets",
  );
});

test("a pool needs what its jobs need, each statement once", () => {
  const permissions = [{ actions: ["s3:GetObject"], resources: ["*"] }];
  const jobs = [
    definition({ name: "a", environment: { A: "1" }, permissions }),
    definition({ name: "b", environment: { B: "2" }, secrets: { S: "ssm:/s" }, permissions }),
    definition({ name: "c", pool: "slow", environment: { C: "3" } }),
  ];
  expect(needsOfPool(jobs, "default")).toEqual({
    permissions,
    environment: { A: "1", B: "2" },
    secrets: { S: "ssm:/s" },
  });
});

test("on a laptop the shell's value wins, then .env's, then the job's, a reference is unset; a secret without one is named", () => {
  const needs = {
    permissions: [],
    environment: {
      BUCKET: "notes-{stage}",
      URL: "https://live",
      TABLE: "t",
      QUEUE: ["$", "{Queue}"].join(""),
    },
    secrets: { KEY: "ssm:/key", TOKEN: "ssm:/token" },
  };
  const dotenv = 'URL=http://localhost:1\nTABLE=from-file\nKEY="a b"\n';
  expect(localNeeds(needs, dotenv, { TABLE: "from-shell" }, "dev")).toEqual({
    variables: { BUCKET: "notes-dev", URL: "http://localhost:1", TABLE: "from-shell", KEY: "a b" },
    missing: ["TOKEN"],
  });
});
