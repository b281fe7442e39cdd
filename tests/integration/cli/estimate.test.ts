import { expect, test } from "vitest";
import { cli } from "./stack.ts";

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

test("an estimate of nothing is wrong usage", async () => {
  expect(await cli(["estimate"])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("--watching"),
  });
});
