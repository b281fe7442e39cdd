import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { buildProject } from "../../../infra/build/build.ts";
import { cli } from "./stack.ts";

test.each(["new", "eject-examples"])("the help of %s has examples and exit codes", async (verb) => {
  const { code, stdout } = await cli([verb, "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^  \\$ belfry ${verb}`, "m"));
  expect(stdout).toMatch(/^ {2}2 {2}wrong usage or invalid input$/m);
});

/** A folder with these files. */
const folderWith = (files: { readonly [path: string]: string } = {}): string => {
  const folder = mkdtempSync(join(tmpdir(), "belfry files "));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
};

test("a new job's file can be built as it is", async () => {
  const cwd = folderWith();
  expect(await cli(["new", "clean-up"], { cwd })).toMatchObject({
    code: 0,
    stdout: `${join("jobs", "clean-up.ts")}\n`,
    stderr: expect.stringContaining("npx belfry run clean-up --wait"),
  });
  const built = await buildProject({ projectDir: cwd, outDir: join(cwd, "out") });
  expect(built).toMatchObject({
    ok: true,
    manifest: { jobs: [{ name: "clean-up", schedules: ["0 2 * * *"] }] },
  });
  const again = await cli(["new", "other", "--json"], { cwd });
  expect(again.json()).toEqual({ job: "other", file: join("jobs", "other.ts") });
});

test.each(["ts", "mjs"])(
  "a job that exists as .%s is not overwritten, and the exit code is 3",
  async (extension) => {
    const cwd = folderWith({ [`jobs/mine.${extension}`]: "mine" });
    const { code, stdout, stderr } = await cli(["new", "mine"], { cwd });
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(/^error: jobs.mine\.(ts|mjs) exists already; nothing was written\n$/);
    expect(readdirSync(join(cwd, "jobs"))).toEqual([`mine.${extension}`]);
    expect(readFileSync(join(cwd, "jobs", `mine.${extension}`), "utf8")).toBe("mine");
  },
);

test.each(["Clean", "clean_up", "../clean", "1st", "a".repeat(49)])(
  "the name %j is refused with what a name is, and nothing is written",
  async (name) => {
    const cwd = folderWith();
    const { code, stderr } = await cli(["new", name], { cwd });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: ".*" is no name of a job\na name is a-z, 0-9 and -, /);
    expect(readdirSync(cwd)).toEqual([]);
  },
);

const CLONE = {
  "package.json": '{"name": "belfry", "type": "module"}',
  "jobs/clean-sessions.ts": "",
  "jobs/mine.ts": "",
  "serverless.yml": `service: mine\nresources: $\{file(jobs/store/resources.yml)}\n`,
  "jobs/store/notes-store.ts": "",
  "tests/integration/jobs/example-jobs.test.ts": "",
};

test("without a terminal and --yes the examples stay, and the exit code is 2", async () => {
  const cwd = folderWith(CLONE);
  const { code, stderr } = await cli(["eject-examples"], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain("nothing was done");
  for (const path of Object.keys(CLONE)) expect(existsSync(join(cwd, path)), path).toBe(true);
});

test("with --yes the examples go, and nothing else", async () => {
  const cwd = folderWith(CLONE);
  const answer = await cli(["eject-examples", "--yes", "--json"], { cwd });
  expect(answer.code).toBe(0);
  expect(answer.json()).toEqual({
    removed: ["jobs/clean-sessions.ts", "jobs/store", "tests/integration/jobs"],
  });
  expect(readdirSync(join(cwd, "jobs"))).toEqual(["mine.ts"]);
  expect(readFileSync(join(cwd, "serverless.yml"), "utf8")).toBe("service: mine\n");
  expect(await cli(["eject-examples", "--yes"], { cwd })).toMatchObject({
    code: 0,
    stdout: "",
    stderr: "there are no example jobs left\n",
  });
});

test("elsewhere nothing is removed, whatever its name", async () => {
  const cwd = folderWith({ ...CLONE, "package.json": '{"name": "notes"}' });
  expect(await cli(["eject-examples", "--yes"], { cwd })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("not a clone of belfry"),
  });
  expect(existsSync(join(cwd, "jobs", "clean-sessions.ts"))).toBe(true);
});
