import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";
import { freePorts } from "../../../cli/dev/network-port.ts";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));
export const BIN = join(REPOSITORY, "cli", "bin.js");

/** Gone with the test. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "belfry-"));
  // The children of a killed stack may still write for a moment.
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  return folder;
};

/** A project in a folder with a space in its name; files by path. */
export const makeProject = (files: { readonly [path: string]: string }): string => {
  const folder = join(temporaryFolder(), "my project");
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(REPOSITORY, join(folder, "node_modules", "belfry"));
  symlinkSync(join(REPOSITORY, "node_modules", "@aws-sdk"), join(folder, "node_modules", "@aws-sdk"));
  for (const [path, text] of Object.entries({ "package.json": '{"type":"module"}', ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
};

/** A job whose handler asks the gate, and waits for its answer. */
export const gatedJob = (version: number): string => `
import { defineJob } from "belfry";
export default defineJob({
  timeout: "1 minute",
  overlap: "allow",
  retry: { firstWait: "1 second" },
  handler: async ({ attempt, input, runId }) => {
    const answer = await fetch(\`\${input.gate}?version=${version}&attempt=\${attempt}&runId=\${runId}\`);
    return { version: ${version}, said: await answer.text() };
  },
});
`;

export interface Caller {
  readonly version: number;
  readonly attempt: number;
  open(): void;
}

/** Where handlers report that they run, and wait until the test lets them go on. */
export const makeGate = async () => {
  const callers: Caller[] = [];
  const waiting: ((caller: Caller) => void)[] = [];
  const server: Server = createServer((request, response) => {
    const query = new URL(request.url ?? "/", "http://gate").searchParams;
    const caller: Caller = {
      version: Number(query.get("version")),
      attempt: Number(query.get("attempt")),
      open: () => response.end("go"),
    };
    const next = waiting.shift();
    if (next === undefined) callers.push(caller);
    else next(caller);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    next: (): Promise<Caller> => {
      const caller = callers.shift();
      return caller === undefined
        ? new Promise((resolve) => {
            waiting.push(resolve);
          })
        : Promise.resolve(caller);
    },
  };
};

export interface Dev {
  readonly child: ChildProcess;
  readonly port: number;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** Everything printed so far, both streams. */
  output(): string;
  /** The first line that matches, printed already or later. Rejects when the process ends before. */
  line(pattern: RegExp): Promise<string>;
  /** Calls the operate router with the key in the data folder. */
  ask(method: string, path: string, body?: object): Promise<{ status: number; body: Answer }>;
}

/** Of any route, as far as these tests look. */
export interface Answer {
  readonly run?: {
    readonly runId: string;
    readonly state: string;
    readonly result: unknown;
    readonly attempts: readonly { readonly n: number; readonly outcome: string }[];
  };
}

export interface DevSetup {
  readonly project: string;
  readonly args?: readonly string[];
  readonly environment?: { readonly [name: string]: string };
  readonly port?: number;
  /** Default: Node and our launcher; given = that command, with our arguments after it. */
  readonly command?: readonly [string, ...string[]];
  /** In a process group of its own, as a terminal starts a command. */
  readonly isGroup?: boolean;
}

const cleanEnvironment = (): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(AWS_|npm_|BELFRY_)/.test(name)));

const collect = (child: ChildProcess) => {
  let text = "";
  const waiters = new Set<() => void>();
  const add = (chunk: Buffer): void => {
    text += chunk.toString("utf8");
    for (const look of waiters) look();
  };
  child.stdout?.on("data", add);
  child.stderr?.on("data", add);
  const line = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = text.split("\n").find((each) => pattern.test(each));
        if (found === undefined) return;
        waiters.delete(look);
        resolve(found);
      };
      waiters.add(look);
      look();
      child.once("exit", () => {
        look();
        if (waiters.delete(look)) reject(new Error(`ended without ${pattern}:\n${text}`));
      });
    });
  return { output: () => text, line };
};

/** Starts `belfry dev`, without waiting for anything. It is ended with the test. */
export const startDev = async (setup: DevSetup): Promise<Dev> => {
  const { project, args = [], environment = {}, isGroup = false } = setup;
  const { command = [process.execPath, BIN, "dev"] } = setup;
  const [freePort = 0] = await freePorts(1);
  const port = setup.port ?? freePort;
  const [file, ...before] = command;
  const child = spawn(file, [...before, "--port", String(port), ...args], {
    cwd: project,
    env: { ...cleanEnvironment(), ...environment },
    detached: isGroup,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    child,
    port,
    exited: ended.then(([code, signal]) => ({ code, signal })),
    ...collect(child),
    ask: async (method, path, body) => {
      const { key, port: at } = JSON.parse(readFileSync(join(project, ".belfry", "dev.json"), "utf8"));
      const response = await fetch(`http://127.0.0.1:${at}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as Answer };
    },
  };
};

/** Starts it, and waits until it says that it is ready. */
export const readyDev = async (setup: DevSetup): Promise<Dev> => {
  const dev = await startDev(setup);
  await dev.line(/is ready/);
  await dev.line(/Ctrl-C stops/);
  return dev;
};

/** Runs the job by hand; answers the run's id. */
export const runJob = async (dev: Dev, job: string, input: object): Promise<string> => {
  const { body, status } = await dev.ask("POST", `/v1/jobs/${job}/runs`, { input });
  if (status !== 202 || body.run === undefined) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body.run.runId;
};

const ON_THE_WAY = new Set(["queued", "running", "waiting"]);

/** The run once it is over. */
export const endOf = async (dev: Dev, runId: string): Promise<NonNullable<Answer["run"]>> => {
  for (;;) {
    const { body } = await dev.ask("GET", `/v1/runs/${runId}?waitMs=25000`);
    if (body.run === undefined) throw new Error(JSON.stringify(body));
    if (!ON_THE_WAY.has(body.run.state)) return body.run;
  }
};

/** All processes below the given one. */
export const descendants = (pid: number): readonly { readonly pid: number; readonly command: string }[] => {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" })
    .split("\n")
    .map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row))
    .flatMap((match) =>
      match === null ? [] : [{ pid: Number(match[1]), parent: Number(match[2]), command: match[3] ?? "" }],
    );
  const below = (parent: number): typeof rows =>
    rows.filter((row) => row.parent === parent).flatMap((row) => [row, ...below(row.pid)]);
  return below(pid).filter(({ command }) => !/^ps /.test(command));
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Rejects when one of the processes is still there after some seconds. */
export const allGone = (pids: readonly number[]): Promise<void> =>
  vi.waitFor(
    () => {
      const left = pids.filter(isAlive);
      if (left.length > 0) throw new Error(`still alive: ${left.join(", ")}`);
    },
    { timeout: 10_000 },
  );
