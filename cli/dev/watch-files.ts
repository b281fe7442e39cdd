import { existsSync, type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import type { Timers } from "../../lib/ports/clock.ts";

export interface FileWatch {
  close(): void;
}

const CONFIG = /^belfry\.config\.[cm]?[jt]s$/;
/** An editor's save is several events; a checkout of another branch is hundreds. */
const QUIET_MS = 150;

/** Calls back once each time that `jobs/` or `belfry.config.ts` have changed and been quiet for a moment. */
export const watchProject = (
  projectDir: string,
  { timers, changed, report }: { timers: Timers; changed: () => void; report: (line: string) => void },
): FileWatch => {
  let timer: { cancel(): void } | undefined;
  const touch = (): void => {
    timer?.cancel();
    timer = timers.after(QUIET_MS, changed);
  };
  const open = (folder: string, recursive: boolean, heard: (name: string | null) => void): FSWatcher => {
    // A folder and not a file: editors replace files, and a watch on the old one would see nothing more.
    const watcher = watch(folder, { recursive }, (_event, name) => heard(name));
    return watcher.on("error", (error) =>
      report(`changes in ${folder} are no longer noticed: ${error.message}`),
    );
  };
  const folder = join(projectDir, "jobs");
  const openJobs = (): FSWatcher | undefined =>
    existsSync(folder) ? open(folder, true, () => touch()) : undefined;
  let jobs = openJobs();
  const project = open(projectDir, false, (name) => {
    if (name === null || CONFIG.test(name)) return touch();
    if (name !== "jobs") return;
    // The whole folder came, went, or is another one, as by a checkout: the watch was on the one before.
    jobs?.close();
    jobs = openJobs();
    touch();
  });
  return {
    close: () => {
      timer?.cancel();
      jobs?.close();
      project.close();
    },
  };
};
