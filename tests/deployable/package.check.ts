import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, expect, test } from "vitest";
import { copyOf, folderWith, lint, packageStage, ROOT, run, SOURCES, start, succeed } from "./support.ts";

const INSTALL = ["install", "--prefer-offline", "--no-audit", "--no-fund"];

let tarball: string;
/** An empty folder with the package, one job and nothing else. */
let project: string;

beforeAll(async () => {
  const sources = copyOf(SOURCES);
  await succeed("npm", ["pack", "--pack-destination", sources], { cwd: sources });
  const name = readdirSync(sources).find((file) => file.endsWith(".tgz")) ?? "";
  tarball = join(sources, name);
  project = folderWith({
    "package.json": '{"name": "tiny", "private": true}',
    "jobs/hello.ts": `import { defineJob } from "belfry";
export default defineJob({ schedule: "0 2 * * *", handler: async ({ input, slot }) => ({ slot, input }) });
`,
  });
  await succeed("npm", [...INSTALL, tarball], { cwd: project });
});

test("the package has what was built, the two doors and nothing of tests, jobs or docs", async () => {
  const { stdout } = await succeed("tar", ["-tzf", tarball], { cwd: project });
  const files = stdout
    .trim()
    .split("\n")
    .map((path) => path.replace(/^package\//, ""));
  const doors = [
    "LICENSE",
    "README.md",
    "README.zh-CN.md",
    "cli/bin.js",
    "infra/serverless.cjs",
    "package.json",
  ];
  const built = files.filter((file) => !doors.includes(file));
  expect(built.length).toBeGreaterThan(200);
  for (const file of built)
    expect(file).toMatch(/^dist\/(?:lib|cli|infra|functions)\/[a-z0-9/-]+(?:\.d\.ts|\.js)$/);
  const others = files.filter((file) => /\.test\.|^(?:dist\/)?(?:tests|jobs|docs|bench)\//.test(file));
  expect(others).toEqual([]);
});

test("the types that are shipped know every option and refuse any other", async () => {
  const folder = folderWith({
    "tsconfig.json":
      '{"compilerOptions": {"module": "nodenext", "strict": true, "noEmit": true, "types": []}}',
    "good.ts": `import { defineJob } from "belfry";
export default defineJob({ input: { count: 1 }, handler: async ({ input, slot }) => input.count + slot.getTime() });`,
    "bad.ts": `import { defineJob } from "belfry";
export default defineJob({ schedul: "0 2 * * *", handler: async () => 1 });`,
  });
  await succeed("npm", [...INSTALL, "--ignore-scripts", tarball], { cwd: folder });
  const { code, stdout } = await run(join(ROOT, "node_modules", ".bin", "tsc"), ["-p", "."], { cwd: folder });
  expect(code).not.toBe(0);
  expect(stdout.trim().split("\n")).toEqual([
    expect.stringMatching(/^bad\.ts.*'schedul' does not exist.* Did you mean to write 'schedule'\?$/),
  ]);
});

const freePort = async (): Promise<number> => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
};

/** `dev` on this Node, until it says that it is ready; ends with `stop`. */
const startDev = async (nodeFolder?: string) => {
  const options = { cwd: project, ...(nodeFolder === undefined ? {} : { nodeFolder }) };
  const child = start("npx", ["belfry", "dev", "--port", String(await freePort())], options);
  const lines: string[] = [];
  const ready = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (line.includes("is ready after")) resolve();
      });
    child.on("close", () => reject(new Error(`dev ended: ${lines.join("\n")}`)));
  });
  await ready;
  return {
    stop: async (): Promise<void> => {
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
};

const nodes = new Map<number, Promise<string>>();

/** The folder of a Node of that major version, from npm. */
const nodeOf = (major: number): Promise<string> => {
  const known = nodes.get(major) ?? installNode(major);
  nodes.set(major, known);
  return known;
};

const installNode = async (major: number): Promise<string> => {
  const folder = folderWith({ "package.json": '{"private": true}' });
  const name = `node-${process.platform}-${process.arch}`;
  await succeed("npm", [...INSTALL, "--ignore-scripts", `${name}@${major}`], { cwd: folder });
  const bin = join(folder, "bin");
  mkdirSync(bin);
  copyFileSync(join(folder, "node_modules", name, "bin", "node"), join(bin, "node"));
  return bin;
};

test.each([24, 22])("in an empty project dev, run and show work on Node %d", async (major) => {
  const nodeFolder = major === 24 ? undefined : await nodeOf(major);
  const options = { cwd: project, ...(nodeFolder === undefined ? {} : { nodeFolder }) };
  const { stdout: version } = await run("node", ["--version"], options);
  expect(version).toMatch(new RegExp(`^v${major}\\.`));
  const dev = await startDev(nodeFolder);
  const args = ["belfry", "run", "hello", "--input", '{"a": 1}', "--wait", "--json"];
  const { stdout } = await succeed("npx", args, options);
  expect(JSON.parse(stdout)).toMatchObject({ job: "hello", state: "succeeded", result: { input: { a: 1 } } });
  const shown = await succeed("npx", ["belfry", "show", "hello"], options);
  expect(shown.stdout).toMatch(/^state +succeeded$/m);
  await dev.stop();
});

test("a four-line serverless.yml packages a template that cfn-lint accepts, on Node 24 and 22", async () => {
  writeFileSync(
    join(project, "serverless.yml"),
    "service: tiny\nprovider: { name: aws }\nplugins:\n  - belfry/serverless\n",
  );
  await succeed("npm", [...INSTALL, "--save-dev", "serverless@npm:osls@^4"], { cwd: project });
  for (const nodeFolder of [undefined, await nodeOf(22)]) {
    expect(await packageStage(project, "prod", nodeFolder)).toMatchObject({ code: 0 });
    expect(await lint(project)).toBe("");
  }
});

test("Node 20 is refused in one line, by the command and by the plugin", async () => {
  const nodeFolder = await nodeOf(20);
  const words =
    /belfry needs Node 22\.13 or newer, this is 20\.[\d.]+; "npm install --save-dev node@24" gives/;
  const told = await run("npx", ["belfry", "list"], { cwd: project, nodeFolder });
  expect(told).toMatchObject({ code: 2, stdout: "" });
  expect(told.stderr.trim().split("\n")).toEqual([expect.stringMatching(words)]);
  const refused = await packageStage(project, "prod", nodeFolder);
  expect(refused.code).toBe(1);
  const said = `${refused.stdout}${refused.stderr}`.split("\n").filter((line) => /belfry/i.test(line));
  expect(said).toEqual([expect.stringMatching(words)]);
});
