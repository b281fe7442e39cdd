import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BIN, cli, ended, spawnCli, startStack } from "./stack.ts";

const emptyFolder = (): string => mkdtempSync(join(tmpdir(), "belfry empty "));

const VERBS = ["dev", "list", "next", "run", "runs", "show"];

test("help lists every verb and the exit codes", async () => {
  const { code, stdout, stderr } = await cli(["--help"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  for (const verb of VERBS) expect(stdout).toMatch(new RegExp(`^  ${verb} `, "m"));
  expect(stdout).toContain("Exit codes:");
});

test.each(VERBS)("the help of %s has examples and exit codes", async (verb) => {
  const { code, stdout } = await cli([verb, "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^  \\$ belfry ${verb}`, "m"));
  expect(stdout).toMatch(/^ {2}2 {2}wrong usage or invalid input$/m);
});

test("without a verb the help goes to stderr, and the exit code is 2", async () => {
  expect(await cli([])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("Usage: belfry"),
  });
});

test.each([
  ["an unknown verb", ["shwo"], /did you mean show\?/],
  ["an unknown option", ["list", "--jsno"], /did you mean --json\?/],
  ["an extra argument", ["list", "jobs"], /too many arguments/],
  ["a missing argument", ["show"], /missing required argument/],
  ["an option without its value", ["run", "daily", "--slot"], /argument missing/],
  ["a state that is none", ["runs", "--state", "deed"], /dead/],
  ["a doctor without a stage", ["doctor"], /name it with --stage/],
  ["a count that is none", ["next", "0 9 * * *", "--count", "many"], /whole number from 1 to 1000/],
  ["a bound without a wait", ["run", "daily", "--timeout", "5"], /--timeout bounds --wait/],
  ["a wait for a dry run", ["run", "daily", "--wait", "--dry-run"], /cannot be used with/],
  ["an expression that cannot be read", ["next", "0 25 * * *"], /hour/],
  ["an expression beside --stdin", ["next", "0 9 * * *", "--stdin"], /or else --stdin/],
  ["broken JSON", ["run", "daily", "--input", '{"limit": 3'], /line 1, column 12/],
  [
    "an input file that is not there",
    ["run", "daily", "--input", "@none.json"],
    /none\.json cannot be read: ENOENT/,
  ],
])("%s exits 2 in one clear line without a stack trace, or as JSON", async (_, args, words) => {
  const told = await cli(args);
  expect(told).toMatchObject({ code: 2, stdout: "" });
  expect(told.stderr).toMatch(/^error: .+\n(.+\n)?$/);
  expect(told.stderr).toMatch(words);
  const asJson = await cli(args.toSpliced(1, 0, "--json"));
  expect(asJson.code).toBe(2);
  expect(asJson.json()).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } });
});

test.each([["list"], ["run", "daily"], ["runs"], ["show", "daily"], ["next", "daily"]].map((args) => [args]))(
  "without a stack, %j exits 4 and says how to start one",
  async (args) => {
    const cwd = emptyFolder();
    const told = await cli(args, { cwd });
    expect(told).toMatchObject({ code: 4, stdout: "", stderr: expect.stringContaining("npx belfry dev") });
    expect((await cli([...args, "--json"], { cwd })).json()).toMatchObject({
      error: { code: "no_stack", hint: expect.stringContaining("npx belfry dev") },
    });
  },
);

test("a stack that is gone, silent, or another one exits 4", async () => {
  const stack = await startStack();
  const withFacts = async (facts: object): Promise<unknown> => {
    const data = emptyFolder();
    writeFileSync(join(data, "dev.json"), JSON.stringify({ ...stack.facts, ...facts }));
    const { code, json } = await cli(["list", "--json"], { data });
    return { code, ...(json() as object) };
  };
  const gone = spawnCli(["--help"]);
  await ended(gone);
  expect(await withFacts({ pid: gone.pid })).toMatchObject({ code: 4, error: { code: "no_stack" } });
  expect(await withFacts({ key: "of another start" })).toMatchObject({
    code: 4,
    error: { code: "no_stack" },
  });
  await stack.close();
  expect(await withFacts({})).toMatchObject({ code: 4, error: { code: "no_answer" } });
});

test("the stack is found from a folder below the one that holds its data", async () => {
  const stack = await startStack();
  const project = emptyFolder();
  const below = join(project, "jobs", "support");
  mkdirSync(join(project, ".belfry"));
  mkdirSync(below, { recursive: true });
  writeFileSync(join(project, ".belfry", "dev.json"), JSON.stringify(stack.facts));
  expect(await cli(["list"], { cwd: below })).toMatchObject({ code: 0 });
  await stack.close();
});

test("next needs no stack for an expression, and answers on the clock of the zone that is named", async () => {
  const args = [
    "next",
    "0 9 * * *",
    "--timezone",
    "Asia/Shanghai",
    "--from",
    "2026-10-08T01:00",
    "--count",
    "2",
  ];
  const answer = await cli([...args, "--json"], { cwd: emptyFolder() });
  expect(answer).toMatchObject({ code: 0, stderr: "" });
  expect(answer.json()).toMatchObject({
    expression: "0 9 * * *",
    dialect: "unix",
    timezone: "Asia/Shanghai",
    occurrences: ["2026-10-09T01:00:00Z", "2026-10-10T01:00:00Z"],
  });
  const { stdout } = await cli(args, { cwd: emptyFolder() });
  expect(stdout).toContain("2026-10-09 09:00      2026-10-09T01:00:00Z");
});

test("next marks the slot before which the clocks changed", async () => {
  const args = [
    "next",
    "30 12 * * *",
    "--timezone",
    "Europe/Berlin",
    "--from",
    "2026-10-24T00:00Z",
    "--count",
    "2",
  ];
  expect((await cli(args)).stdout).toMatch(/2026-10-25T11:30:00Z +clocks went back 60 min/);
});

test("next --stdin answers each line before the next one is sent", async () => {
  const child = spawnCli(["next", "--stdin"]);
  const end = ended(child);
  const answers = child.stdout?.[Symbol.asyncIterator]();
  const ask = async (line: string) => {
    child.stdin?.write(`${line}\n`);
    return JSON.parse(String((await answers?.next())?.value));
  };
  expect(await ask('{"id": 1, "expression": "0 9 * * *"}')).toMatchObject({ id: 1, dialect: "unix" });
  expect(await ask('{"id": 2, "expression": "0 25 * * *"}')).toMatchObject({ id: 2, error: {} });
  expect(await ask("nonsense")).toMatchObject({ error: {} });
  child.stdin?.end();
  expect(await end).toMatchObject({ code: 0 });
});

const pretend = (version: string): readonly string[] => [
  "--import",
  `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"${version}"})`,
];

test("a Node that is too old is refused in one line", async () => {
  const folder = emptyFolder();
  mkdirSync(join(folder, "cli"));
  const bin = join(folder, "cli", "bin.js");
  copyFileSync(BIN, bin);
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  const { code, stdout, stderr } = await cli(["--help"], { bin, cwd: folder, nodeFlags: pretend("20.20.2") });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^error: belfry needs Node 22\.13 or newer, this is 20\.20\.2; .+\n$/);
});

test("a Node that is too old starts the one of the project's node package, in any folder, with the same exit code", async () => {
  const options = { nodeFlags: pretend("20.20.2"), cwd: emptyFolder() };
  expect(await cli(["--help"], options)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Usage:"),
  });
  expect(await cli(["shwo"], options)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("did you mean"),
  });
});

test("a Node that runs TypeScript only when asked to is asked", async () => {
  const folder = emptyFolder();
  mkdirSync(join(folder, "cli"));
  const bin = join(folder, "cli", "bin.js");
  copyFileSync(BIN, bin);
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  writeFileSync(
    join(folder, "cli", "main.ts"),
    "export const main = async (): Promise<void> => { console.log(process.execArgv.join()); };",
  );
  expect(await cli([], { bin, cwd: folder, nodeFlags: pretend("22.13.0") })).toMatchObject({
    code: 0,
    stdout: "--experimental-strip-types\n",
    stderr: "",
  });
});
