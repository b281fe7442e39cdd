import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cli } from "./stack.ts";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));

test("what watching costs is estimated without a stack, at ten, a hundred and a thousand jobs", async () => {
  const { code, stdout, stderr } = await cli(["estimate", "--watching"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^A MONTH +10 JOBS +100 JOBS +1000 JOBS\n/);
  expect(stdout).toMatch(/\ntogether( +\$\d+\.\d\d){3}\n/);
  expect(stderr).toMatch(/^list prices of us-east-1, \d{4}-\d\d-\d\d, without the free tier\n$/);
  const answer = await cli(["estimate", "--watching", "--pools", "3", "--json"]);
  expect(answer.json()).toMatchObject({
    currency: "USD",
    pools: 3,
    watching: [{ jobs: 10 }, { jobs: 100 }, { jobs: 1_000 }],
  });
});

test("the jobs of a folder are estimated: each, the fixed part apart, and what would be cheaper", async () => {
  const { code, stdout, stderr } = await cli(["estimate"], { cwd: REPOSITORY });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^JOB +POOL +RUNS A MONTH +A MONTH +A MILLION RUNS\ncheck-links +default +720 +\$/);
  expect(stdout).toMatch(/\ntogether, a month +\$\d+\.\d\d\n\ncheaper, a month:\nthe pool slow merged/);
  expect(stderr).toMatch(/^list prices of us-east-1, .*handlers' own time apart/);
  const answer = await cli(["estimate", "--handler", "2 seconds", "--json"], { cwd: REPOSITORY });
  expect(answer.json()).toMatchObject({
    currency: "USD",
    per: "month",
    assumed: { handlerMs: 2_000 },
    jobs: expect.arrayContaining([expect.objectContaining({ job: "check-links", runs: 720 })]),
    fixed: { usdPerMonth: expect.any(Number) },
    savings: expect.arrayContaining([expect.objectContaining({ kind: "pool", of: ["slow"] })]),
    usdPerMillion: { succeeded: expect.any(Number) },
  });
});

test("a folder without jobs cannot be estimated, and the error says what is missing", async () => {
  expect(await cli(["estimate"])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("jobs"),
  });
});

test.each([
  [["--pools", "3"], "error: --pools goes with --watching, which is not given\n"],
  [["--stage", "moon"], 'error: there is no stage "moon"\nbelfry.config.ts has dev, staging, prod\n'],
  [["--handler", "long"], 'error: handler: "long" is not a duration\n'],
])("what cannot be estimated is refused by its name: %j", async (args, told) => {
  expect(await cli(["estimate", ...args], { cwd: REPOSITORY })).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining(told),
  });
});
