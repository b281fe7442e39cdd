import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type PlantedFault, withFault } from "./planted.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Never copied: what is made, what is big, and what no test needs. */
const LEFT_OUT = new Set(["node_modules", ".git", ".belfry", "dist"]);

/** With the prefixes that git writes, without, and where the code has moved a little. */
const PATCHERS = [
  ["git", "apply", "--whitespace=nowarn"],
  ["git", "apply", "--whitespace=nowarn", "-p0"],
  ["patch", "-p1", "--force", "--silent", "--input"],
] as const;

export interface Ran {
  /** Undefined: it did not end in time, and was killed. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

const textOf = async (child: ChildProcess, stream: "stdout" | "stderr"): Promise<string> => {
  let text = "";
  for await (const chunk of child[stream] ?? []) text += chunk;
  return text;
};

/** A copy of the repository to plant faults in; what runs there does not see the original. */
export const makeWorkspace = async () => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-mutants-"));
  await cp(ROOT, folder, { recursive: true, filter: (from) => !LEFT_OUT.has(basename(from)) });
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));

  const run = async (args: readonly string[], withinMs: number): Promise<Ran> => {
    const child = spawn(process.execPath, args, {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own: a test runner that hangs has children that hang.
      detached: true,
    });
    let inTime = true;
    const timer = setTimeout(() => {
      inTime = false;
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, withinMs);
    const ended = new Promise<number | null>((resolve) => {
      child.once("close", resolve);
    });
    const [stdout, stderr, code] = await Promise.all([
      textOf(child, "stdout"),
      textOf(child, "stderr"),
      ended,
    ]);
    clearTimeout(timer);
    return { exitCode: inTime ? (code ?? 1) : undefined, stdout, stderr };
  };

  /** @throws TypeError when the fault's place is not exactly one */
  const plant = async (fault: PlantedFault): Promise<{ remove(): Promise<void> }> => {
    const file = join(folder, fault.file);
    const text = await readFile(file, "utf8");
    await writeFile(file, withFault(text, fault));
    return { remove: () => writeFile(file, text) };
  };

  /** Somebody else's fault, as a unified diff of this repository. @throws Error when it does not apply */
  const patch = (diffFile: string): void => {
    const refusals: string[] = [];
    for (const [program, ...args] of PATCHERS) {
      const { status, stderr } = spawnSync(program, [...args, diffFile], { cwd: folder, encoding: "utf8" });
      if (status === 0) return;
      refusals.push(stderr.trim());
    }
    throw new Error(`${diffFile} does not apply:\n${refusals.filter((text) => text !== "").join("\n")}`);
  };

  return { folder, run, plant, patch, remove: () => rm(folder, { recursive: true, force: true }) };
};

export type Workspace = Awaited<ReturnType<typeof makeWorkspace>>;
