import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { Counts } from "./counted.ts";
import type { WorkerOrders } from "./worker-process.ts";

/** A worker that can be killed, and is replaced then. */
export const startWorker = async ({ config, manifest, endpoints, jobsFile, queue }: WorkerOrders) => {
  // No more than that: the stack has what no other process can be given.
  const settings: WorkerOrders = { config, manifest, endpoints, jobsFile, queue };
  let child: ChildProcess;
  let kills = 0;
  const launch = async (): Promise<void> => {
    child = fork(new URL("./worker-process.ts", import.meta.url), {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    child.send(settings);
    await once(child, "message");
  };
  await launch();
  return {
    kills: (): number => kills,
    kill: async (): Promise<void> => {
      kills += 1;
      child.kill("SIGKILL");
      await once(child, "exit");
      await launch();
    },
    counts: async (): Promise<Counts> => {
      child.send("counts");
      const [counts] = (await once(child, "message")) as [Counts];
      return counts;
    },
    stop: async (): Promise<void> => {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
};

const childrenOf = (pid: number): readonly number[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
};

const peakMb = (pid: number): number => {
  try {
    return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
};

const nameOf = (pid: number): string => {
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return args.find((arg) => /\.[tj]s$/.test(arg))?.replace(/.*\//, "") ?? `process ${pid}`;
  } catch {
    return `process ${pid}`;
  }
};

const EVERY_MS = 2_000;

/** The most memory that each kind of process below this one, and this one, has held; Linux only. */
export const watchMemory = () => {
  const peaks = new Map<string, number>();
  const look = (pid: number, name: string): void => {
    peaks.set(name, Math.max(peaks.get(name) ?? 0, peakMb(pid)));
    for (const child of childrenOf(pid)) look(child, nameOf(child));
  };
  const lookAtAll = (): void => look(process.pid, "planner");
  const timer = setInterval(lookAtAll, EVERY_MS);
  return {
    stop: (): { readonly [name: string]: number } => {
      lookAtAll();
      clearInterval(timer);
      // One that had ended before it could be looked at has neither a name nor a figure.
      const seen = [...peaks].filter(([, mb]) => mb >= 1);
      return Object.fromEntries(seen.map(([name, mb]) => [name, Math.round(mb)]));
    },
  };
};
