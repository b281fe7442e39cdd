import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { childEnvironment } from "../../cli/dev/environment.ts";
import type { Orders, Role, Word } from "./role-process.ts";

/** One process that is started again whenever it dies. */
export interface Member {
  readonly role: Role;
  /** The process now. */
  child(): ChildProcess;
  ready(): Promise<void>;
  isReady(): boolean;
  /** SIGKILL; resolves with the id of the process that is gone. A new one is on its way then. */
  kill(): Promise<number>;
}

const ENTRY = new URL("./role-process.ts", import.meta.url);

/** The processes of the deployment under chaos. */
export const makeTroupe = (orders: Omit<Orders, "role">, cacheFolder: string) => {
  const environment = {
    ...childEnvironment(process.env, orders.endpoints, true),
    // A process that is killed each second should not compile itself anew each time.
    NODE_COMPILE_CACHE: cacheFolder,
  };
  const slept = new Set<number>();
  const members: Member[] = [];
  let over = false;

  const add = (role: Role): Member => {
    let current: ChildProcess;
    let readiness: Promise<void>;
    let ready = false;
    const spawn = (): void => {
      const child = fork(ENTRY, [], {
        env: environment,
        execArgv: ["--disable-warning=ExperimentalWarning"],
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      });
      child.on("error", () => undefined);
      current = child;
      ready = false;
      readiness = new Promise((resolve) => {
        child.on("message", (word: Word) => {
          if (word.kind === "slept" && child.pid !== undefined) slept.add(child.pid);
          if (word.kind !== "ready") return;
          ready = true;
          resolve();
        });
      });
      child.once("exit", () => {
        if (!over) spawn();
      });
      child.send({ ...orders, role });
    };
    spawn();
    const member: Member = {
      role,
      child: () => current,
      ready: () => readiness,
      isReady: () => ready,
      kill: async () => {
        const child = current;
        const gone = once(child, "exit");
        child.kill("SIGKILL");
        await gone;
        return child.pid ?? 0;
      },
    };
    members.push(member);
    return member;
  };

  return {
    add,
    members,
    /** Did this process stand still at some time, for want of a processor? */
    slept: (pid: number): boolean => slept.has(pid),
    end: async (): Promise<void> => {
      over = true;
      await Promise.all(members.map((member) => member.kill()));
    },
  };
};

export type Troupe = ReturnType<typeof makeTroupe>;
