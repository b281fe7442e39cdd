import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { pythonTool } from "./python.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd: string;
  /** Comes before everything else on the PATH. */
  readonly nodeFolder?: string;
}

/** The environment of somebody who has no AWS and runs no npm script around this. */
const environment = ({ nodeFolder }: RunOptions): Record<string, string> => {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^(?:AWS_|BELFRY_|npm_|VITEST|NODE_ENV|NODE_OPTIONS)/.test(entry[0]),
  );
  const first = nodeFolder ?? dirname(process.execPath);
  return { ...Object.fromEntries(kept), PATH: `${first}${delimiter}${process.env["PATH"] ?? ""}` };
};

export const start = (command: string, args: readonly string[], options: RunOptions) =>
  spawn(command, args, { cwd: options.cwd, env: environment(options), stdio: ["ignore", "pipe", "pipe"] });

export const run = async (command: string, args: readonly string[], options: RunOptions): Promise<Ended> => {
  const child = start(command, args, options);
  const code = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, stdout, stderr };
};

/** The same, where any other end than a good one is a fault of the test. */
export const succeed = async (...call: Parameters<typeof run>): Promise<Ended> => {
  const ended = await run(...call);
  if (ended.code !== 0)
    throw new Error(
      `${call[0]} ${call[1].join(" ")} ended with ${ended.code}:\n${ended.stdout}${ended.stderr}`,
    );
  return ended;
};

/** A folder with these files, outside the repository; gone at the end of the process. */
export const folderWith = (files: { readonly [path: string]: string } = {}): string => {
  const folder = mkdtempSync(join(tmpdir(), "belfry-check-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
};

/** The repository's files of these names in a folder of their own, so that a check disturbs nobody who works in it. */
export const copyOf = (paths: readonly string[]): string => {
  const folder = folderWith();
  for (const path of paths)
    if (existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
};

export const SOURCES = [
  "lib",
  "cli",
  "infra",
  "functions",
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "LICENSE",
  "README.md",
];

/** The repository as an installed package, next to the framework. */
export const symlinkLibrary = (project: string): void => {
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  symlinkSync(ROOT, join(modules, "belfry"));
  symlinkSync(join(ROOT, "node_modules", "serverless"), join(modules, "serverless"));
  symlinkSync(
    join(ROOT, "node_modules", "serverless", "bin", "serverless.js"),
    join(modules, ".bin", "serverless"),
  );
};

export interface Template {
  readonly Resources: {
    readonly [id: string]: {
      readonly Type: string;
      readonly Properties: { readonly [name: string]: unknown };
      readonly Metadata?: {
        readonly checkov?: { readonly skip: readonly { readonly id: string; readonly comment: string }[] };
      };
    };
  };
}

export const templateFile = (project: string): string =>
  join(project, ".serverless", "cloudformation-template-update-stack.json");

export const templateOf = (project: string): Template =>
  JSON.parse(readFileSync(templateFile(project), "utf8"));

export const packageStage = (cwd: string, stage: string, nodeFolder?: string): Promise<Ended> =>
  run("npx", ["serverless", "package", "--stage", stage], {
    cwd,
    ...(nodeFolder === undefined ? {} : { nodeFolder }),
  });

/** What cfn-lint says to the template of the project; empty = nothing. */
export const lint = async (project: string): Promise<string> => {
  const linter = join(await pythonTool("lint"), "cfn-lint");
  const { code, stdout, stderr } = await run(linter, [templateFile(project)], { cwd: project });
  return code === 0 ? "" : `${stdout}${stderr}`;
};

interface Scan {
  readonly passed: number;
  readonly skipped: number;
  /** Check and resource. */
  readonly findings: readonly string[];
}

/** What checkov finds in the template of the project. */
export const scan = async (project: string): Promise<Scan> => {
  const args = [
    "-f",
    templateFile(project),
    "--framework",
    "cloudformation",
    "--quiet",
    "--compact",
    "-o",
    "json",
  ];
  const tools = await pythonTool("lint");
  // Not by itself: its first line names its Python, which no folder with a space in its name can be for.
  const command = [join(tools, "checkov"), ...args];
  const { stdout, stderr } = await run(join(tools, "python"), command, { cwd: project });
  if (!stdout.startsWith("{")) throw new Error(`checkov gave no answer: ${stdout}${stderr}`);
  const { summary, results } = JSON.parse(stdout) as {
    readonly summary: { readonly passed: number; readonly skipped: number };
    readonly results: {
      readonly failed_checks: readonly { readonly check_id: string; readonly resource: string }[];
    };
  };
  const findings = results.failed_checks.map(({ check_id, resource }) => `${check_id} ${resource}`);
  return { ...summary, findings };
};
