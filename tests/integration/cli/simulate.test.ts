import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { SimulationAnswer } from "../../../cli/simulate/simulate.ts";
import { cli } from "./stack.ts";

const job = (options: string): string =>
  `import { defineJob } from "belfry";\nexport default defineJob({ ${options} });\n`;

const FILES = {
  "jobs/shows-time.ts": job(`schedule: "0 2 * * *", timezone: "Europe/Berlin",
    handler: async ({ slot, remaining }) => {
      console.log(JSON.stringify({ behindMs: Date.now() - slot.getTime(), year: new Date().getUTCFullYear(),
        isDate: new Date() instanceof Date, remaining: remaining(), own: process.env.OWN }));
    }, environment: { OWN: "mine" }`),
  "jobs/breaks.ts": job(`schedule: "0 3 * * *", retry: { ladder: ["1 minute"], retries: 1 },
    handler: async ({ attempt }) => { throw new Error("no luck " + attempt); }`),
  "jobs/hangs.ts": job(`schedule: "0 4 * * *", timeout: "10 minutes", retry: { retries: 0 },
    handler: () => { for (;;); }`),
  "jobs/exits.ts": job(`schedule: "0 5 * * *", retry: { retries: 0 }, handler: () => process.exit(3)`),
  "jobs/by-hand.ts": job("handler: async () => 1"),
  "jobs/wide.ts": job(`schedule: "0 7 * * *",
    shards: async function* () { for (let n = 0; n < 4; n++) yield { key: "part " + n, input: n }; },
    handler: async ({ once }) => { await once("mail", () => 1); }, join: async () => "joined"`),
  "jobs/on-moon.ts": job(`schedule: "0 6 * * *", stages: ["prod"], handler: async () => 1`),
};

let cwd: string;

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "belfry simulate "));
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), content);
  }
});

const RANGE = ["--from", "2026-10-01", "--to", "2026-10-03"];
const simulate = (...given: readonly string[]) => cli(["simulate", ...given], { cwd });

test("without handlers every slot of every job is played, and nothing is left behind", async () => {
  const { code, json, stderr } = await simulate(...RANGE, "--dry", "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const answer = json() as SimulationAnswer;
  expect(answer).toMatchObject({
    from: "2026-10-01T00:00:00Z",
    to: "2026-10-03T00:00:00Z",
    seed: null,
    handlers: "not called",
    deadRuns: [],
    broken: [],
  });
  expect(answer.jobs.map(({ job: name, slots, succeeded }) => [name, slots, succeeded])).toEqual([
    ["breaks", 2, 2],
    ["exits", 2, 2],
    ["hangs", 2, 2],
    ["on-moon", 2, 2],
    ["shows-time", 2, 2],
    ["wide", 2, 2],
  ]);
  expect(existsSync(join(cwd, ".belfry"))).toBe(false);
});

test("handlers see the simulated time, their own environment, and all of their timeout", async () => {
  const { code, stderr } = await simulate("shows-time", ...RANGE);
  expect(code).toBe(0);
  expect(stderr).toMatch(/^handlers are really called: /);
  const seen = stderr.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  expect(seen).toHaveLength(2);
  for (const { behindMs, ...rest } of seen) {
    // EventBridge fires within the minute.
    expect(behindMs).toBeGreaterThanOrEqual(0);
    expect(behindMs).toBeLessThan(75_000);
    expect(rest).toMatchObject({ year: 2026, isDate: true, own: "mine" });
    expect(rest.remaining).toBeGreaterThan(290_000);
  }
});

test("with --real-date handlers see today", async () => {
  const { stderr } = await simulate(
    "shows-time",
    ...RANGE.map((text) => text.replace("2026", "2031")),
    "--real-date",
  );
  const years = [...stderr.matchAll(/"year":(\d+)/g)].map(([, year]) => Number(year));
  expect(years).toEqual([new Date().getUTCFullYear(), new Date().getUTCFullYear()]);
});

test("what throws, hangs or exits is seen to its end, and a dead run is exit code 1", async () => {
  const given = [
    "breaks",
    "hangs",
    "exits",
    "--from",
    "2026-10-01",
    "--to",
    "2026-10-02",
    "--limit",
    "1 second",
  ];
  const { code, json } = await simulate(...given, "--json");
  expect(code).toBe(1);
  const { deadRuns, jobs, broken } = json() as SimulationAnswer;
  expect(broken).toEqual([]);
  expect(deadRuns.map(({ job: name, error }) => [name, error?.name, error?.message])).toEqual([
    ["breaks", "Error", "no luck 2"],
    ["exits", "ProcessExit", "the handler called process.exit(3)"],
    ["hangs", "TimeoutError", expect.stringContaining("longer than its timeout of 10 minutes")],
  ]);
  expect(jobs.find((one) => one.job === "hangs")).toMatchObject({ longestRunMs: 600_000 });
});

test("shards are listed, called and joined: the effects of each are its own", async () => {
  const { code, json } = await simulate("wide", ...RANGE, "--json");
  const { jobs, broken } = json() as SimulationAnswer;
  expect({ code, broken }).toEqual({ code: 0, broken: [] });
  // The list, four shards and the join, twice.
  expect(jobs).toMatchObject([{ succeeded: 2, calls: 12, effects: 8, repeatedEffects: 0 }]);
});

test("the table says what became of the slots, the dead runs by name, and that the promises held", async () => {
  const { stdout } = await simulate("breaks", "shows-time", ...RANGE);
  const lines = stdout.split("\n").map((line) => line.replace(/ {2,}/g, "  "));
  expect(lines).toContain(
    "JOB  SLOTS  SUCCEEDED  DEAD  SKIPPED  MISSED  FAILURES  LONGEST WAIT  LONGEST RUN",
  );
  expect(lines).toContainEqual(expect.stringMatching(/^breaks {2}2 {2}0 {2}2 {2}0 {2}0 {2}4 {2}/));
  expect(lines).toContain("  breaks~20261001T030000Z: Error: no luck 2");
  expect(lines).toContain("every promise held");
});

test("with --speed each attempt is told as it ends", async () => {
  const { code, stderr } = await simulate("shows-time", ...RANGE, "--dry", "--speed", "1000000");
  expect(code).toBe(0);
  expect(stderr).toMatch(/^2026-10-01T00:00:\d\dZ {2}shows-time~20261001T000000Z {2}succeeded after 1.0 s$/m);
});

test("in a stage only what fires there is played", async () => {
  const inStage = async (stage: string) => {
    const { json } = await simulate(...RANGE, "--dry", "--json", "--stage", stage);
    return (json() as SimulationAnswer).jobs.map(({ job: name }) => name);
  };
  expect(await inStage("prod")).toContain("on-moon");
  expect(await inStage("dev")).not.toContain("on-moon");
});

test.each([
  [["--from", "2026-10-02", "--to", "2026-10-01"], "to", /not after --from/],
  [["--from", "2026-10-01", "--to", "2076-10-01"], "to", /more than 366/],
  [["--from", "2026-10-01T00:00:10Z", "--to", "2026-10-01T00:00:20Z"], "to", /no schedule names a slot/],
  [["--from", "yesterday", "--to", "2026-10-01"], "from", /cannot read the time 'yesterday'/],
  [["nobody", ...RANGE], "job", /no job "nobody"/],
  [["by-hand", ...RANGE], "job", /by hand only/],
  [[...RANGE, "--stage", "moon"], "stage", /no stage "moon"/],
  [[...RANGE, "--faults", "lots"], "faults", /whole number from 0/],
  [[...RANGE, "--speed", "0"], "speed", /whole number from 1/],
  [[...RANGE, "--lasts", "long"], "lasts", /not a duration/],
  [[...RANGE, "--limit", "0.5 seconds"], "limit", /not a duration/],
])("%j is refused, with the field", async (given, field, message) => {
  const { code, json } = await simulate(...given, "--json");
  expect(code).toBe(2);
  expect(json()).toMatchObject({ error: { field, message: expect.stringMatching(message) } });
});

test("the faults of a project are told as `dev` tells them", async () => {
  const broken = mkdtempSync(join(tmpdir(), "belfry simulate "));
  mkdirSync(join(broken, "jobs"));
  writeFileSync(join(broken, "jobs", "bad.ts"), job(`schedule: "0 25 * * *", handler: async () => 1`));
  const { code, stderr } = await cli(["simulate", ...RANGE], { cwd: broken });
  expect(code).toBe(2);
  expect(stderr).toContain("jobs/bad.ts");
});

test("the help of simulate has examples and exit codes", async () => {
  const { stdout } = await simulate("--help");
  expect(stdout).toMatch(/^ {2}\$ belfry simulate --from/m);
  expect(stdout).toMatch(/^ {2}1 {2}a run is dead/m);
});
