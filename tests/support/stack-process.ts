import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { RunView } from "../../lib/core/runs/run.ts";

const BIN = fileURLToPath(new URL("../../cli/bin.js", import.meta.url));

export interface RunningStack {
  readonly process: ChildProcess;
  readonly lines: readonly string[];
  /** The operate router; answers its status and body. */
  call(path: string, body?: object): Promise<{ readonly status: number; readonly body: unknown }>;
  /** SIGKILL to every process of it at once. */
  killAll(): Promise<void>;
  /** SIGTERM to its first process, as `kill` of `npm start` does. */
  stop(): Promise<void>;
}

/** `belfry dev` of the project as a process group of its own; resolves when it says that it is ready. */
export const startStack = async (
  projectDir: string,
  port: number,
  environment: { readonly [name: string]: string } = {},
): Promise<RunningStack> => {
  const child = spawn(process.execPath, [BIN, "dev", "--port", String(port)], {
    cwd: projectDir,
    env: { ...process.env, ...environment },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  const ready = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (/is ready after/.test(line)) resolve();
      });
    }
    child.once("exit", (code) => reject(new Error(`dev ended with ${code}:\n${lines.join("\n")}`)));
  });
  await ready;
  const { key } = JSON.parse(await readFile(join(projectDir, ".belfry", "dev.json"), "utf8"));
  const exited = once(child, "exit");
  return {
    process: child,
    lines,
    call: async (path, body) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: await answer.json() };
    },
    killAll: async () => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      await exited;
    },
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
};

export const runIn = (body: unknown): RunView => (body as { readonly run: RunView }).run;
