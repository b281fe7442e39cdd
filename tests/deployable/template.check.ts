import { readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  copyOf,
  folderWith,
  lint,
  packageStage,
  run,
  SOURCES,
  scan,
  symlinkLibrary,
  templateOf,
} from "./support.ts";

const OWN_PROJECT = [...SOURCES, "jobs", "serverless.yml", "belfry.config.ts"];

test("our own project is packaged offline by ten lines, and cfn-lint has nothing to say in any stage", async () => {
  const project = copyOf(OWN_PROJECT);
  for (const stage of ["dev", "staging", "prod"]) {
    const { code, stderr } = await packageStage(project, stage);
    expect({ stage, code, stderr }).toMatchObject({ code: 0 });
    expect(await lint(project)).toBe("");
  }
});

test("checkov finds nothing in our own template but what is excused there, with a reason each", async () => {
  const project = copyOf(OWN_PROJECT);
  await packageStage(project, "prod");
  const { passed, skipped, findings } = await scan(project);
  expect(findings).toEqual([]);
  expect(passed).toBeGreaterThan(100);
  const { Resources } = templateOf(project);
  const excused = Object.values(Resources).flatMap(({ Metadata }) => Metadata?.checkov?.skip ?? []);
  expect(skipped).toBe(excused.length);
  for (const { id, comment } of excused) expect(comment, id).toMatch(/\w+ \w+ \w+/);
});

const MONITOR = `import { monitor } from "belfry";
export default monitor({ schedule: "0 2 * * *" });`;

test("what a monitor adds to it has no finding either", async () => {
  const project = copyOf(OWN_PROJECT);
  writeFileSync(join(project, "jobs", "nightly-backup.ts"), MONITOR);
  expect(await packageStage(project, "prod")).toMatchObject({ code: 0 });
  expect(Object.keys(templateOf(project).Resources)).toContain("BelfryPingApi");
  expect(await lint(project)).toBe("");
  expect((await scan(project)).findings).toEqual([]);
});

test("a removed job changes the template in its own schedule only", async () => {
  const project = copyOf(OWN_PROJECT);
  await packageStage(project, "prod");
  const before = templateOf(project);
  rmSync(join(project, "jobs", "daily-digest.ts"));
  await packageStage(project, "prod");
  const after = templateOf(project);
  const ids = Object.keys({ ...before.Resources, ...after.Resources });
  // The place of the code names the time of the packaging, in every project of the framework.
  const textOf = (template: typeof before, id: string): string =>
    JSON.stringify(template.Resources[id])?.replace(/"S3Key":"[^"]*"/, "") ?? "";
  const changed = ids.filter((id) => textOf(before, id) !== textOf(after, id));
  expect(changed).toEqual(["BelfryJobDailyDashdigestSchedule"]);
});

const NEEDY = `import { defineJob, every } from "belfry";
export default defineJob({
  schedule: [every("15 minutes"), "30 9 * * 1-5"], timezone: "Europe/Berlin", pool: "inside", timeout: "10 minutes",
  permissions: [{ actions: ["dynamodb:GetItem"], resources: "$" + "{NotesTable.Arn}" }],
  environment: { NOTES_TABLE: "$" + "{NotesTable}", STAGE: "{stage}" },
  secrets: { API_KEY: "ssm:/notes/{stage}/key", PASSWORD: "secretsmanager:notes/{stage}#password" },
  handler: async () => 1,
});`;

/** Somebody's project that had a function, a table and defaults of its own before. */
const existing = (): string => {
  const project = folderWith({
    "package.json": '{"name": "notes", "private": true}',
    "hello.js": "exports.handler = async () => 'hello';",
    "jobs/needy.ts": NEEDY,
    "belfry.config.ts": `import { defineConfig } from "belfry";
export default defineConfig({ stages: ["dev", "live"], pools: {
  inside: { memory: 512, timeout: "12 minutes", vpc: { securityGroups: ["sg-0123456789abcdef0"], subnets: ["subnet-0123456789abcdef0"] } },
} });`,
    "serverless.yml": `service: notes
provider:
  name: aws
  runtime: nodejs24.x
  environment: { THEIRS: "1" }
  vpc: { securityGroupIds: [sg-0aaaaaaaaaaaaaaa0], subnetIds: [subnet-0aaaaaaaaaaaaaaa0] }
  tags: { team: notes }
plugins: [belfry/serverless]
package:
  patterns: ["!**", "hello.js"]
functions:
  hello: { handler: hello.handler }
resources:
  Resources:
    NotesTable:
      Type: AWS::DynamoDB::Table
      DeletionPolicy: Delete
      UpdateReplacePolicy: Delete
      Properties:
        BillingMode: PAY_PER_REQUEST
        AttributeDefinitions: [{ AttributeName: id, AttributeType: S }]
        KeySchema: [{ AttributeName: id, KeyType: HASH }]
  extensions:
    BelfryDashoperateLambdaFunction:
      Properties: { MemorySize: 512 }
`,
  });
  symlinkLibrary(project);
  return project;
};

test("a project with a function and a table of its own keeps them as they were, beside ours", async () => {
  const project = existing();
  expect(await packageStage(project, "live")).toMatchObject({ code: 0 });
  expect(await lint(project)).toBe("");
  const { Resources } = templateOf(project);
  expect(Resources["HelloLambdaFunction"]?.Properties).toMatchObject({
    Environment: { Variables: { THEIRS: "1" } },
    VpcConfig: { SubnetIds: ["subnet-0aaaaaaaaaaaaaaa0"] },
  });
  const ours = Object.entries(Resources).filter(([id]) => /^Belfry.*LambdaFunction$/.test(id));
  expect(ours).toHaveLength(7);
  for (const [id, { Properties }] of ours) {
    expect(JSON.stringify(Properties), id).not.toContain("THEIRS");
    expect(JSON.stringify(Properties), id).not.toContain("0aaaaaaaaaaaaaaa0");
    expect(Properties, id).toMatchObject({ Tags: [{ Key: "team", Value: "notes" }] });
  }
  const worker = Resources["BelfryDashworkerDashinsideLambdaFunction"]?.Properties;
  expect(worker).toMatchObject({
    MemorySize: 512,
    Timeout: 630,
    VpcConfig: { SubnetIds: ["subnet-0123456789abcdef0"] },
    Environment: { Variables: { NOTES_TABLE: { "Fn::Sub": ["$", "{NotesTable}"].join("") }, STAGE: "live" } },
  });
  expect(JSON.stringify(Resources)).not.toMatch(/API_KEY|PASSWORD/);
  // An extension in their serverless.yml changes a resource of ours.
  expect(Resources["BelfryDashoperateLambdaFunction"]?.Properties["MemorySize"]).toBe(512);
  const logGroups = Object.entries(Resources).filter(([id]) => /^Belfry.*LogGroup$/.test(id));
  expect(logGroups.map(([, { Properties }]) => Properties["RetentionInDays"])).toEqual(Array(7).fill(30));
  // What a deploy reads: it looks for the zip of the whole service where a function does not say this.
  const state: { readonly service: { readonly functions: { readonly [key: string]: unknown } } } = JSON.parse(
    readFileSync(join(project, ".serverless", "serverless-state.json"), "utf8"),
  );
  for (const { key } of ours.map(([, { Properties }]) => ({
    key: String(Properties["FunctionName"]).slice(11),
  })))
    expect(state.service.functions[key], key).toMatchObject({
      package: { individually: true, artifact: expect.stringMatching(/\.serverless.belfry-[a-z-]+\.zip$/) },
    });
  // Their function's shared role has none of our rights.
  expect(JSON.stringify(Resources["IamRoleLambdaExecution"])).not.toMatch(/sqs:|dynamodb:/);
});

/** The lines of an error of the framework, which says it between two that are its own. */
const errorLines = ({ stderr, stdout }: { readonly stderr: string; readonly stdout: string }) =>
  `${stderr}${stdout}`.split("\n").filter((line) => /^(?:jobs|serverless|belfry\.config)/.test(line));

test("all that is wrong at packaging is told at once, one clear line each, without a stack trace", async () => {
  const project = existing();
  const job = (options: string) =>
    `import { defineJob } from "belfry";\nexport default defineJob({ ${options}, handler: () => 1 });\n`;
  const files = {
    "jobs/a-pool.ts": job(`pool: "insid"`),
    "jobs/b-timeout.ts": job(`pool: "inside", timeout: "13 minutes"`),
    "jobs/c-input.ts": job(`input: { text: "x".repeat(131072) }`),
    "jobs/d-name.ts": job(`name: "needy"`),
    "jobs/e-over.ts": job(`timeout: "15 minutes"`),
    "jobs/f-secret.ts": job(`secrets: { API_KEY: "sk_live_hush" }`),
    "jobs/g-clash.ts": job(`pool: "inside", environment: { STAGE: "other" }`),
  };
  for (const [path, content] of Object.entries(files)) writeFileSync(join(project, path), content);
  const answer = await packageStage(project, "live");
  expect(answer.code).toBe(1);
  expect(errorLines(answer)).toEqual([
    expect.stringMatching(/^jobs\/a-pool\.ts: pool: .* no pool named "insid" \(did you mean "inside"\?\)$/),
    expect.stringMatching(
      /^jobs\/b-timeout\.ts: timeout: 13 minutes is over .* "inside" allows, 12 minutes \(/,
    ),
    expect.stringMatching(/^jobs\/c-input\.ts: input: the input has 129 KiB of JSON; at most 128 fit \(/),
    expect.stringMatching(/^jobs\/e-over\.ts: timeout: 15 minutes is over what the pool "default" allows/),
    expect.stringMatching(/^jobs\/f-secret\.ts: secrets\.API_KEY: this is not where a secret lies \(/),
    expect.stringMatching(/^jobs\/needy\.ts: name: the name "needy" is taken by jobs\/d-name\.ts \(/),
    expect.stringMatching(
      /^jobs\/needy\.ts: environment\.STAGE: the job "g-clash" .* gives STAGE another value/,
    ),
  ]);
  expect(`${answer.stdout}${answer.stderr}`).not.toMatch(/\n\s+at |hush/);
  for (const path of Object.keys(files)) unlinkSync(join(project, path));
});

test("one of our functions is not deployed alone, since each carries the list of jobs", async () => {
  const args = ["serverless", "deploy", "function", "--stage", "live", "--function", "belfry-operate"];
  const answer = await run("npx", args, { cwd: existing() });
  expect(answer.code).toBe(1);
  expect(errorLines(answer)).toEqual([
    expect.stringMatching(
      /^serverless\.yml: belfry-operate is deployed with all the others, .*serverless deploy\)$/,
    ),
  ]);
});

test.each([
  ["Prod", /^serverless\.yml: stage: "Prod" is no name of a stage/],
  ["lvie", /^belfry\.config\.ts: stages: there is no stage named "lvie" \(it has dev, live; /],
])("the stage %s is refused in one line", async (stage, line) => {
  const answer = await packageStage(existing(), stage);
  expect(answer.code).toBe(1);
  expect(errorLines(answer)).toEqual([expect.stringMatching(line)]);
});
