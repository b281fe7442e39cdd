import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:https";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { pythonTool } from "../deployable/python.ts";

/** AWS on this machine, over TLS, as its policies demand, and with every role enforced. */
export interface Emulator {
  readonly endpoint: string;
  /** The certificate that it shows, to be trusted; and its file. */
  readonly certificate: string;
  readonly certificateFile: string;
  /** Of the certificate. */
  readonly key: string;
  /** All that it and its Lambda functions print. */
  readonly logFile: string;
  stop(): Promise<void>;
}

const LAUNCHER = fileURLToPath(new URL("./emulator.py", import.meta.url));

const START_MS = 60_000;

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
};

/** Nothing of the surroundings reaches it, or, through it, the functions: neither credentials nor certificates. */
const environmentOf = (port: number, folder: string): Record<string, string> => ({
  // Its Lambda runs the first Node that it finds.
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`,
  HOME: folder,
  TMPDIR: folder,
  BIND_HOST: "127.0.0.1",
  MINISTACK_HOST: "127.0.0.1",
  GATEWAY_PORT: String(port),
  USE_SSL: "1",
  AUTH: "true",
  CLOUDTRAIL_RECORDING: "1",
  CLOUDTRAIL_MAX_EVENTS: "1000000",
  // Of an event that failed: a second for a minute of AWS.
  LAMBDA_ASYNC_RETRY_BASE_SECONDS: "1",
});

const answers = (port: number, certificateFile: string): Promise<boolean> =>
  new Promise((resolve) => {
    if (!existsSync(certificateFile)) return resolve(false);
    const options = {
      host: "127.0.0.1",
      port,
      path: "/_ministack/health",
      ca: readFileSync(certificateFile),
    };
    get(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", () => resolve(false));
  });

/** Ends the process and all of its own: they are one group, so that none outlives it. */
const endGroup = (child: ChildProcess): void => {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // It is gone already.
  }
};

/** Starts MiniStack on a free port. It ends with this process, however that ends, short of SIGKILL. */
export const startEmulator = async (): Promise<Emulator> => {
  const bin = await pythonTool("ministack");
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "belfry-aws-"));
  const logFile = join(folder, "emulator.log");
  const certificateFile = join(folder, "ministack-tls", "server.crt");
  const child = spawn(join(bin, "python"), [LAUNCHER], {
    cwd: folder,
    env: environmentOf(port, folder),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const closed = once(child, "close");
  const log = createWriteStream(logFile);
  for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
  const end = (): void => {
    endGroup(child);
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", end);
  const untilMs = performance.now() + START_MS;
  while (!(await answers(port, certificateFile))) {
    if (child.exitCode !== null || performance.now() > untilMs)
      throw new Error(`the emulated AWS did not start:\n${readFileSync(logFile, "utf8").slice(-2_000)}`);
    await pause(100);
  }
  return {
    endpoint: `https://127.0.0.1:${port}`,
    certificate: readFileSync(certificateFile, "utf8"),
    certificateFile,
    key: readFileSync(join(dirname(certificateFile), "server.key"), "utf8"),
    logFile,
    stop: async () => {
      process.off("exit", end);
      endGroup(child);
      await closed;
      log.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
