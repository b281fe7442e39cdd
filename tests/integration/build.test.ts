import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { type BuildOptions, buildProject, formatFaults } from "../../infra/build/build.ts";
import { makeThreadAttempts } from "../../lib/adapters/thread/thread-attempts.ts";
import { QUIET_SERVICES } from "../support/quiet-services.ts";

const job = (options: string): string =>
  `import { defineJob, every } from "belfry";\nexport default defineJob({ ${options} });\n`;
const GOOD = job(`handler: async () => "good"`);

/** A project in a folder with a space in its name. */
const setup = async (files: { readonly [path: string]: string }) => {
  const projectDir = await mkdtemp(join(tmpdir(), "belfry test "));
  onTestFinished(() => rm(projectDir, { recursive: true, force: true }));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(projectDir, path)), { recursive: true });
    await writeFile(join(projectDir, path), text);
  };
  for (const [path, text] of Object.entries(files)) await write(path, text);
  const outDir = join(projectDir, ".belfry", "build");
  const build = (options: Partial<BuildOptions> = {}) => buildProject({ projectDir, outDir, ...options });
  return { projectDir, outDir, build, write };
};

const built = (answer: Awaited<ReturnType<typeof buildProject>>) => {
  if (!answer.ok) throw new Error(formatFaults(answer.faults));
  return answer;
};
const lines = (answer: Awaited<ReturnType<typeof buildProject>>): readonly string[] =>
  answer.ok ? [] : formatFaults(answer.faults).split("\n");

test("a project is built into a bundle that maps names to jobs and a manifest that describes them", async () => {
  const { build } = await setup({
    "jobs/clean-sessions.ts": job(`schedule: "0 2 * * *", timezone: "Asia/Shanghai", handler: async () => 1`),
    "jobs/other.mjs": job(`name: "renamed", renamedFrom: "ancient", pool: "slow", handler: () => 2`),
    "jobs/other.test.ts": "throw new Error('a test is no job')",
    "jobs/types.d.ts": "export {}",
    "jobs/store/notes.ts": "throw new Error('a file in a folder is no job')",
    "belfry.config.ts": `import { defineConfig } from "belfry";
      export default defineConfig({ stages: ["dev", "live"], pools: { slow: { memory: 512 } } });`,
  });
  const { jobsFile, manifestFile, manifest, warnings } = built(await build());
  expect(warnings).toEqual([]);
  expect(JSON.parse(await readFile(manifestFile, "utf8"))).toEqual(manifest);
  expect(manifest).toMatchObject({
    version: 1,
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    stages: ["dev", "live"],
    pools: { default: { memoryMb: 256, concurrency: 10 }, slow: { memoryMb: 512, concurrency: 10 } },
    jobs: [
      {
        name: "clean-sessions",
        subject: "clean-sessions",
        schedules: ["0 2 * * *"],
        timezone: "Asia/Shanghai",
      },
      { name: "renamed", subject: "ancient", schedules: [], pool: "slow" },
    ],
  });
  const { default: jobs } = await import(pathToFileURL(jobsFile).href);
  expect(Object.keys(jobs)).toEqual(["clean-sessions", "renamed"]);
});

test("all faults of all files stand in one list, each with file, option and hint", async () => {
  const { build } = await setup({
    "jobs/Bad_Name.ts": GOOD,
    "jobs/cron.ts": job(`schedule: "61 * * * *", handler: () => 1`),
    "jobs/default.ts": "export const nothing = 1;",
    "jobs/exits.ts": "process.exit(3);",
    "jobs/foreign.ts": "export default { handler: () => 1 };",
    "jobs/missing.ts": `import x from "not-installed";\nexport default x;`,
    "jobs/no-handler.ts": job(`description: "none"`),
    "jobs/no-options.js": `import { defineJob } from "belfry";\nexport default defineJob();`,
    "jobs/options.ts": job(
      `timout: "1 minute", timeout: "20 minutes", except: [], retry: { retrys: 1 }, handler: () => 1`,
    ),
    "jobs/page.tsx": GOOD,
    "jobs/places.ts": job(`pool: "slwo", stages: ["prd"], handler: () => 1`),
    "jobs/syntax.ts": "export default (",
    "jobs/throws.ts": `\nthrow new Error("no database here");`,
    "jobs/twin-a.ts": job(`name: "twin", handler: () => 1`),
    "jobs/twin-b.ts": job(`name: "twin", handler: () => 2`),
    "belfry.config.ts": `import { defineConfig } from "belfry";
      export default defineConfig({ pools: { slow: {} } });`,
  });
  const answer = await build();
  expect(lines(answer)).toEqual([
    "jobs/page.tsx: a job file ends in .ts, .js or .mjs (rename it, or move it out of jobs/ if it is no job)",
    expect.stringMatching(/^jobs\/Bad_Name\.ts: name: "Bad_Name" is no name \(/),
    expect.stringMatching(/^jobs\/cron\.ts: schedule: .*61/),
    "jobs/default.ts: there is no default export (export default defineJob({ ... }))",
    expect.stringMatching(/^jobs\/exits\.ts: importing the file ends the process \(exit code 3\)/),
    "jobs/foreign.ts: the default export was not made by defineJob (export default defineJob({ ... }))",
    'jobs/missing.ts:1:15: Could not resolve "not-installed" (is it installed? npm install not-installed)',
    "jobs/no-handler.ts: handler: the job has no handler (handler: async (ctx) => { ... })",
    "jobs/no-options.js: defineJob was given no options (export default defineJob({ ... }))",
    'jobs/options.ts: timout: there is no such option (did you mean "timeout"?)',
    expect.stringMatching(/^jobs\/options\.ts: timeout: "20 minutes" is too long; at most 15 minutes \(/),
    "jobs/options.ts: except: this option is not available yet (leave it out)",
    'jobs/options.ts: retry.retrys: there is no such option (did you mean "retries"?)',
    'jobs/places.ts: pool: belfry.config.ts has no pool named "slwo" (did you mean "slow"?)',
    'jobs/places.ts: stages[0]: belfry.config.ts has no stage named "prd" (did you mean "prod"?)',
    "jobs/syntax.ts:1:17: Unexpected end of file",
    "jobs/throws.ts: importing the file throws Error: no database here at throws.ts:2:7",
    'jobs/twin-b.ts: name: the name "twin" is taken by jobs/twin-a.ts (give one of the two another name)',
  ]);
});

test("a file that hangs at import is a fault, and the files after it are still checked", async () => {
  const { build } = await setup({
    "jobs/a-hangs.ts": "for (;;);",
    "jobs/a-waits.ts": `await new Promise(() => {});\n${GOOD}`,
    "jobs/b.ts": job(`timeout: "never", handler: () => 1`),
  });
  const faults = lines(await build({ importMs: 2_000 }));
  expect(faults).toEqual([
    expect.stringMatching(/^jobs\/a-hangs\.ts: importing the file takes longer than 2 seconds/),
    expect.stringMatching(
      /^jobs\/a-waits\.ts: importing the file never ends: it awaits what nothing settles/,
    ),
    expect.stringMatching(/^jobs\/b\.ts: timeout: "never" is not a duration/),
  ]);
});

test("a former name that two jobs go by is a fault: they would share one history", async () => {
  const { build } = await setup({
    "jobs/a.ts": GOOD,
    "jobs/b.ts": job(`renamedFrom: "a", handler: () => 1`),
  });
  expect(lines(await build())).toEqual([
    expect.stringMatching(/^jobs\/b\.ts: renamedFrom: jobs\/a\.ts goes by "a" too/),
  ]);
});

test.each([
  ["no jobs folder", {}, /^jobs: the project has no such folder/],
  ["an empty jobs folder", { "jobs/readme.md": "" }, /^jobs: the folder has no job file/],
])("%s is a fault that says what to write", async (_, files, line) => {
  const { build } = await setup(files);
  expect(lines(await build())).toEqual([expect.stringMatching(line)]);
});

test("a wrong belfry.config.ts is a fault, and job files are checked all the same", async () => {
  const { build } = await setup({
    "jobs/a.ts": job(`grace: "soon", handler: () => 1`),
    "belfry.config.ts": `import { defineConfig } from "belfry";
      export default defineConfig({ stages: ["Dev"], pools: { big: { memory: 64, size: 1 } } });`,
  });
  expect(lines(await build())).toEqual([
    expect.stringMatching(/^belfry\.config\.ts: stages\[0\]: "Dev" is no name/),
    "belfry.config.ts: pools.big.memory: 64 is not a whole number from 128 to 10240",
    expect.stringMatching(/^belfry\.config\.ts: pools\.big\.size: there is no such option/),
    expect.stringMatching(/^jobs\/a\.ts: grace: "soon" is not a duration/),
  ]);
});

test("input that the job's own schema refuses is a fault", async () => {
  const schema = `schema: { "~standard": { version: 1, vendor: "x", validate: async (input) =>
    (input.days > 0 ? { value: input } : { issues: [{ message: "too few", path: ["days"] }] }) } }`;
  const { build } = await setup({
    "jobs/by-hand.ts": job(`${schema}, handler: () => 1`),
    "jobs/given.ts": job(`${schema}, input: { days: 0 }, handler: () => 1`),
    "jobs/scheduled.ts": job(`${schema}, schedule: every("1 hour"), handler: () => 1`),
  });
  expect(lines(await build())).toEqual([
    "jobs/given.ts: input: input.days: too few",
    "jobs/scheduled.ts: input: input.days: too few (give the input that runs of the schedule get)",
  ]);
});

test("the same files give the same hashes, and any change gives another", async () => {
  const { build, write } = await setup({ "jobs/a.ts": GOOD });
  const first = built(await build());
  const again = built(await build());
  expect([again.hash, again.manifest.hash]).toEqual([first.hash, first.manifest.hash]);
  await write("jobs/a.ts", job(`handler: async () => "better"`));
  const better = built(await build());
  expect(better.hash).not.toBe(first.hash);
  expect(better.manifest.hash).toBe(first.manifest.hash);
  await write("jobs/a.ts", job(`timeout: "1 minute", handler: async () => "better"`));
  expect(built(await build()).manifest.hash).not.toBe(first.manifest.hash);
});

test("old builds are removed, those in use and the last few are not", async () => {
  const { build, write, outDir } = await setup({ "jobs/a.ts": GOOD });
  const first = built(await build()).hash;
  for (let n = 0; n < 6; n++) {
    await write("jobs/a.ts", job(`handler: () => ${n}`));
    await build({ keep: [first] });
  }
  const left = await readdir(outDir);
  expect(left).toContain(first);
  expect(left).toHaveLength(5);
});

test("installed packages stay outside in dev and are bundled for a deploy, CommonJS too", async () => {
  const { build, projectDir } = await setup({
    "node_modules/old-style/package.json": `{ "name": "old-style", "version": "1.0.0", "main": "main.js" }`,
    "node_modules/old-style/main.js": `module.exports = { found: require("os").EOL === "" ? "no" : "yes" };`,
    "jobs/a.ts": `import { defineJob } from "belfry"; import old from "old-style";
      export default defineJob({ description: old.found, handler: () => 1 });`,
  });
  const dev = built(await build());
  expect(await readFile(dev.jobsFile, "utf8")).toContain("node_modules/old-style/main.js");
  const deploy = built(await build({ packages: "bundle" }));
  await rm(join(projectDir, "node_modules"), { recursive: true });
  const { default: jobs } = await import(pathToFileURL(deploy.jobsFile).href);
  expect(jobs.a.options.description).toBe("yes");
});

test("job files may make a require of their own", async () => {
  const { build } = await setup({
    "jobs/a.ts": `import { createRequire } from "node:module"; import { defineJob } from "belfry";
      const require = createRequire(import.meta.url);
      export default defineJob({ description: require("node:os").EOL === "" ? "" : "works", handler: () => 1 });`,
  });
  expect(built(await build()).manifest.jobs[0]?.description).toBe("works");
});

test("a build with a fault leaves nothing behind", async () => {
  const { build, outDir } = await setup({ "jobs/a.ts": "export default 1;" });
  expect((await build()).ok).toBe(false);
  expect(existsSync(outDir)).toBe(false);
});

test("an error of a built handler names the author's file and line", async () => {
  const { build } = await setup({
    "jobs/fails.ts": `import { defineJob, PermanentError } from "belfry";
interface Unused { readonly gone: string }
export default defineJob({
  handler: async () => {
    throw new PermanentError("not like this");
  },
});`,
  });
  const attempts = makeThreadAttempts({
    jobsFile: built(await build()).jobsFile,
    clock: { nowMs: () => Date.now() },
    timers: { after: () => ({ cancel: () => undefined }) },
  });
  onTestFinished(() => attempts.close());
  const request = {
    job: "fails",
    runId: "fails~1",
    slotMs: 0,
    attempt: 1,
    trigger: "manual",
    input: {},
    timeoutMs: 60_000,
  };
  const end = await attempts.start(request, QUIET_SERVICES).ended;
  expect(end).toMatchObject({
    kind: "threw",
    permanent: true,
    error: {
      name: "PermanentError",
      message: "not like this",
      stack: expect.stringMatching(/jobs\/fails\.ts:5:11/),
    },
  });
});
