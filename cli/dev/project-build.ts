import { rmSync } from "node:fs";
import { join } from "node:path";
import { buildProject, formatFaults } from "../../infra/build/build.ts";
import type { Manifest } from "../../lib/core/jobs/job.ts";
import type { Build } from "./messages.ts";

export interface ProjectBuild extends Build {
  readonly manifest: Manifest;
  /** Of everything that runs: two equal builds need no reload. */
  readonly hash: string;
  readonly warnings: readonly string[];
  /** Its files may go with the next build; nothing runs them any more. */
  release(): void;
}

export type BuildAnswer =
  | { readonly ok: true; readonly build: ProjectBuild }
  /** One line for each fault, of all files. */
  | { readonly ok: false; readonly faults: string };

/** Builds a project again and again; the files of a build stay until it is released, for old workers read them. */
export const projectBuilder = (projectDir: string, dataFolder: string): (() => Promise<BuildAnswer>) => {
  const outDir = join(dataFolder, "build");
  // What a killed stack has left.
  rmSync(outDir, { recursive: true, force: true });
  // A list and no set: an edit taken back gives a build a second time while the first one still retires.
  let inUse: readonly string[] = [];
  const release = (hash: string): void => {
    const index = inUse.indexOf(hash);
    inUse = inUse.filter((_, position) => position !== index);
  };
  return async () => {
    const answer = await buildProject({ projectDir, outDir, keep: inUse });
    if (!answer.ok) return { ok: false, faults: formatFaults(answer.faults) };
    const { hash, jobsFile, manifest, manifestFile, warnings } = answer;
    inUse = [...inUse, hash];
    return {
      ok: true,
      build: { hash, jobsFile, manifest, manifestFile, warnings, release: () => release(hash) },
    };
  };
};
