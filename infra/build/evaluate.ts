import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import type { ProjectConfig } from "../../lib/core/jobs/project-config.ts";
import type { Fault } from "../../lib/core/read-options.ts";

const CHILD = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "./evaluate-child.ts" : "./evaluate-child.js", import.meta.url),
);

export interface Evaluated {
  /** A bundle of one author's file. */
  readonly module: string;
  readonly kind: "job" | "config";
  /** The author's file without folder and extension. */
  readonly stem: string;
}

/** What the child says of a file, one line of JSON each. */
export type Finding =
  | { readonly kind: "job"; readonly definition: JobDefinition }
  | { readonly kind: "config"; readonly config: ProjectConfig }
  | { readonly kind: "faults"; readonly faults: readonly Fault[] };

/** Node's own exit code for a top-level await that nothing settles. */
export const NEVER_LOADED = 13;

const fault = (message: string, hint: string): Finding => ({ kind: "faults", faults: [{ message, hint }] });
const AT_IMPORT =
  "a job file is imported by everything that wants to know the job; work belongs into the handler";

/**
 * Imports authors' files in a child process, since importing may do anything: throw, exit, hang. A file that ends
 * the child is a finding, and the rest go on in another. One finding for each file, in their order.
 */
export const evaluate = async (
  files: readonly Evaluated[],
  importMs: number,
): Promise<readonly Finding[]> => {
  const findings: Finding[] = [];
  while (findings.length < files.length) {
    const rest = files.slice(findings.length);
    const { found, how } = await evaluateInChild(rest, importMs);
    findings.push(...found);
    if (found.length < rest.length) findings.push(how);
  }
  return findings;
};

interface ChildRun {
  readonly found: readonly Finding[];
  /** Why the file after those was not finished. */
  readonly how: Finding;
}

const evaluateInChild = (files: readonly Evaluated[], importMs: number): Promise<ChildRun> =>
  new Promise((resolve, reject) => {
    const found: Finding[] = [];
    let late = false;
    // What job files print is for people; it must not mix with anybody's output.
    const child = spawn(process.execPath, ["--enable-source-maps", CHILD, JSON.stringify(files)], {
      stdio: ["ignore", process.stderr, process.stderr, "pipe"],
    });
    const kill = (): void => {
      late = true;
      child.kill("SIGKILL");
    };
    let timer = setTimeout(kill, importMs);
    const findings = child.stdio[3];
    if (!findings || !("read" in findings)) throw new Error("the child has no pipe for its findings");
    createInterface({ input: findings }).on("line", (line) => {
      clearTimeout(timer);
      timer = setTimeout(kill, importMs);
      found.push(JSON.parse(line));
      if (found.length === files.length) child.kill("SIGKILL");
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const ending =
        code === NEVER_LOADED
          ? "never ends: it awaits what nothing settles"
          : `ends the process (${signal ?? `exit code ${code}`})`;
      const what = late ? `takes longer than ${importMs / 1000} seconds` : ending;
      resolve({ found, how: fault(`importing the file ${what}`, AT_IMPORT) });
    });
  });
