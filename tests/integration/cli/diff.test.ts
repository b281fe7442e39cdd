import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cli, JOBS, startStack } from "./stack.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

const projectWith = (files: { readonly [name: string]: string }): string => {
  const folder = mkdtempSync(join(tmpdir(), "belfry diff "));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules", "belfry"));
  mkdirSync(join(folder, "jobs"));
  for (const [name, options] of Object.entries(files))
    writeFileSync(
      join(folder, "jobs", `${name}.ts`),
      `import { defineJob } from "belfry";\nexport default defineJob({ ${options}, handler: async () => 1 });\n`,
    );
  return folder;
};

test("diff shows the jobs that come, change and go, with their next slots before and after", async () => {
  const stack = await startStack();
  const cwd = projectWith({
    daily: `schedule: "30 2 * * *", timezone: "Asia/Shanghai"`,
    fresh: `schedule: "0 9 * * *"`,
  });
  const asJson = await cli(["diff", "--json"], { cwd, data: stack.data });
  expect(asJson).toMatchObject({ code: 0, stderr: "" });
  const { stage, changes } = asJson.json() as {
    readonly stage: string;
    readonly changes: readonly Record<string, unknown>[];
  };
  expect(stage).toBe("dev");
  const removed = JOBS.map(({ name }) => name).filter((name) => name !== "daily");
  expect(changes.filter(({ change }) => change === "removed").map(({ job }) => job)).toEqual(removed.sort());
  expect(changes.find(({ job }) => job === "fresh")).toMatchObject({
    change: "added",
    nextBefore: [],
    nextAfter: [expect.stringMatching(/T09:00:00Z$/), expect.anything(), expect.anything()],
  });
  expect(changes.find(({ job }) => job === "daily")).toMatchObject({
    change: "changed",
    options: expect.arrayContaining(["schedules"]),
    nextBefore: expect.arrayContaining([expect.stringMatching(/T18:00:00Z$/)]),
    nextAfter: expect.arrayContaining([expect.stringMatching(/T18:30:00Z$/)]),
  });
  const told = await cli(["diff"], { cwd, data: stack.data });
  expect(told.stdout).toMatch(/^\+ fresh\n {4}next {3}\S+T09:00:00Z/m);
  expect(told.stdout).toMatch(/^~ daily: .*schedules.*\n {4}before .*\n {4}after /m);
  expect(told.stdout).toMatch(/^- broken\n {4}next .* and then no more$/m);
  expect(told.stderr).toContain("a changed schedule starts from the change");
  await stack.close();
});

test("diff of a folder with faults names them all and exits 2", async () => {
  const stack = await startStack();
  const cwd = projectWith({ daily: `schedule: "0 25 * * *"`, other: `pool: "none"` });
  const told = await cli(["diff"], { cwd, data: stack.data });
  expect(told).toMatchObject({ code: 2, stdout: "" });
  expect(told.stderr).toMatch(/jobs\/daily\.ts: schedule: .*hour/);
  expect(told.stderr).toMatch(/jobs\/other\.ts: pool: .* no pool named "none"/);
  await stack.close();
});
