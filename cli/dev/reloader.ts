import { messageOf } from "../../lib/core/errors.ts";
import type { Timers } from "../../lib/ports/clock.ts";
import type { Processes } from "./processes.ts";
import type { BuildAnswer, ProjectBuild } from "./project-build.ts";
import { type FileWatch, watchProject } from "./watch-files.ts";

export interface ReloaderOptions {
  readonly projectDir: string;
  readonly build: () => Promise<BuildAnswer>;
  readonly processes: Processes;
  /** What runs now. */
  readonly current: ProjectBuild;
  /** Called with each build that has taken over. */
  readonly reloaded: (build: ProjectBuild) => void;
  readonly timers: Timers;
  readonly say: (line: string) => void;
  readonly complain: (line: string) => void;
}

/** Follows the project's files: each change is built, and runs if it can; else the old version goes on. */
export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #watch: FileWatch;
  #current: ProjectBuild;
  #reloading: Promise<void> | undefined;
  #changedMeanwhile = false;
  #isClosed = false;

  constructor(options: ReloaderOptions) {
    this.#options = options;
    this.#current = options.current;
    this.#watch = watchProject(options.projectDir, {
      timers: options.timers,
      changed: () => this.#change(),
      report: options.complain,
    });
  }

  /** No reload begins after the call. Resolves when the one under way is over. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch.close();
    await this.#reloading;
  }

  #change(): void {
    if (this.#isClosed) return;
    if (this.#reloading !== undefined) {
      this.#changedMeanwhile = true;
      return;
    }
    this.#reloading = this.#reload()
      .catch((error: unknown) => {
        const reason = messageOf(error);
        this.#options.complain(`not reloaded, the old version goes on: ${reason}`);
      })
      .finally(() => {
        this.#reloading = undefined;
        if (this.#changedMeanwhile) {
          this.#changedMeanwhile = false;
          this.#change();
        }
      });
  }

  async #reload(): Promise<void> {
    const { build, complain, processes, say } = this.#options;
    const answer = await build();
    if (!answer.ok) {
      complain(`not reloaded, the old version goes on:\n${answer.faults}`);
      return;
    }
    const next = answer.build;
    if (next.hash === this.#current.hash) {
      next.release();
      say("nothing to reload: the jobs are as they were");
      return;
    }
    const old = this.#current;
    try {
      await processes.reload(next, Object.keys(next.manifest.pools), old.release);
    } catch (error) {
      next.release();
      throw error;
    }
    this.#current = next;
    this.#options.reloaded(next);
    for (const warning of next.warnings) complain(`warning: ${warning}`);
    say(`reloaded: ${next.manifest.jobs.map(({ name }) => name).join(", ")}`);
  }
}
