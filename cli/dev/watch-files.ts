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
  const watchers: FSWatcher[] = [];
  const open = (folder: string, recursive: boolean, matters: (name: string) => boolean): void => {
    // A folder and not a file: editors replace files, and a watch on the old one would see nothing more.
    const watcher = watch(folder, { recursive }, (_event, name) => {
      if (name === null || matters(name)) touch();
    });
    watcher.on("error", (error) => report(`changes in ${folder} are no longer noticed: ${error.message}`));
    watchers.push(watcher);
  };
  open(projectDir, false, (name) => CONFIG.test(name));
  const jobs = join(projectDir, "jobs");
  if (existsSync(jobs)) open(jobs, true, () => true);
  return {
    close: () => {
      timer?.cancel();
      for (const watcher of watchers) watcher.close();
    },
  };
};
