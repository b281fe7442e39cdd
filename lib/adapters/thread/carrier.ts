import { fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { errorFacts } from "../../core/json-safe.ts";
import type { ErrorFacts } from "../../ports/attempts.ts";
import { heapLimits } from "./memory.ts";
import type { FromThread, ThreadData, ToThread } from "./messages.ts";
import { letGoOfPipes } from "./pipes.ts";

export interface CarrierOptions {
  readonly file: URL;
  readonly data: ThreadData;
  readonly memoryMb?: number;
  /** Beside this process's own variables. */
  readonly environment?: { readonly [variable: string]: string };
  onMessage(message: FromThread): void;
  onLine(line: string): void;
}

export interface Exit {
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  /** What nobody caught, where the carrier itself knows it. */
  readonly error?: ErrorFacts;
}

/** What a handler runs in: a thread of this process, or a process of its own. */
export interface Carrier {
  send(message: ToThread): void;
  /** Never rejects. Every message was delivered before. */
  readonly exited: Promise<Exit>;
  /** Ends it by force. */
  kill(): void;
}

const readLines = (streams: readonly (Readable | null)[], onLine: (line: string) => void): void => {
  for (const stream of streams) if (stream) createInterface({ input: stream }).on("line", onLine);
};

export const threadCarrier = (options: CarrierOptions): Carrier => {
  const { file, data, memoryMb, environment, onMessage, onLine } = options;
  const worker = new Worker(file, {
    workerData: data,
    env: { ...process.env, ...environment },
    stdout: true,
    stderr: true,
    ...(memoryMb !== undefined && { resourceLimits: heapLimits(memoryMb) }),
  });
  const { promise: exited, resolve } = Promise.withResolvers<Exit>();
  let outOfMemory = false;
  let error: ErrorFacts | undefined;
  worker.on("message", onMessage);
  worker.on("error", (thrown: Error & { readonly code?: string }) => {
    outOfMemory ||= thrown.code === "ERR_WORKER_OUT_OF_MEMORY";
    error ??= errorFacts(thrown);
  });
  worker.on("exit", (exitCode) => resolve({ exitCode, outOfMemory, ...(error && { error }) }));
  readLines([worker.stdout, worker.stderr], onLine);
  return { exited, send: (message) => worker.postMessage(message), kill: () => void worker.terminate() };
};

export const processCarrier = (options: CarrierOptions): Carrier => {
  const { file, data, memoryMb, environment, onMessage, onLine } = options;
  const limits = memoryMb === undefined ? undefined : heapLimits(memoryMb);
  const child = fork(fileURLToPath(file), [JSON.stringify(data)], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    serialization: "advanced",
    env: { ...process.env, ...environment },
    execArgv: [
      ...process.execArgv,
      ...(limits
        ? [
            `--max-old-space-size=${limits.maxOldGenerationSizeMb}`,
            `--max-semi-space-size=${limits.maxYoungGenerationSizeMb}`,
          ]
        : []),
    ],
  });
  let outOfMemory = false;
  let dying = false;
  child.on("message", (message: FromThread) => onMessage(message));
  readLines([child.stdout, child.stderr], (line) => {
    // V8's last words fill a screen and help nobody; the exit code alone may mean any abort.
    dying ||= line.startsWith("<--- Last few GCs");
    outOfMemory ||= /^FATAL ERROR: .*(?:heap|memory)/.test(line);
    if (!dying) onLine(line);
  });
  child.once("exit", () => letGoOfPipes(child));
  const exited = Promise.all([
    once(child, "exit"),
    once(child, "disconnect"),
    ...[child.stdout, child.stderr].map((stream) => stream && once(stream, "close")),
  ]).then(([[code, signal]]): Exit => {
    if (typeof signal !== "string" || outOfMemory) return { exitCode: Number(code ?? 1), outOfMemory };
    const error = { name: "ProcessKilled", message: `the handler's process was killed by ${signal}` };
    return { exitCode: 1, outOfMemory, error };
  });
  return {
    exited,
    // A child that has just ended takes no message, which its exit will tell.
    send: (message) => void child.send(message, () => undefined),
    kill: () => void child.kill("SIGKILL"),
  };
};
