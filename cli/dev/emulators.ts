import { once } from "node:events";
import { mkdirSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import { createRequire } from "node:module";
import { Server } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { startFauxqs } from "fauxqs";
import { type Running, runChild } from "./child.ts";
import { holdLock } from "./data-folder.ts";
import type { EmulatorsStart } from "./messages.ts";
import { REGION } from "./resources.ts";

type Dynalite = (options: { path: string; createTableMs: number }) => HttpServer;
const dynalite = createRequire(import.meta.url)("dynalite") as Dynalite;

/** The emulators of a supervisor killed a moment ago still hold the files; they end within this. */
const LOCK_WAIT_MS = 10_000;
const LOCK_TRY_MS = 50;

/**
 * Both emulators listen on every interface, and ask nobody for a password: on a network, anybody could send
 * messages that run jobs. fauxqs has no setting for it, so the one call that matters is changed, in this process.
 */
const listenOnLoopbackOnly = (): void => {
  const listen = Server.prototype.listen;
  Server.prototype.listen = function onLoopback(this: Server, ...args: unknown[]): Server {
    const [first, ...rest] = args;
    const options = typeof first === "number" ? { port: first } : first;
    const bound =
      typeof options === "object" && options !== null ? { ...options, host: "127.0.0.1" } : options;
    return Reflect.apply(listen, this, [bound, ...rest]);
  };
};

/**
 * fauxqs makes its database wait for the disk at each change, three times in a message's life. What the operating system
 * has outlives the end of every process, and only a power cut could lose the last of it: so it is with dynalite's files.
 * fauxqs has no setting for that either.
 */
const waitForNoDisk = (): void => {
  const exec = DatabaseSync.prototype.exec;
  DatabaseSync.prototype.exec = function withoutWaiting(this: DatabaseSync, sql: string): void {
    Reflect.apply(exec, this, [sql]);
    if (/journal_mode\s*=\s*WAL/i.test(sql)) Reflect.apply(exec, this, ["PRAGMA synchronous = NORMAL"]);
  };
};

/**
 * dynalite throws what a broken connection reports, as when a worker is killed in the middle of a request. That
 * must not take the table from everybody else.
 */
const surviveBrokenConnections = (): void => {
  process.on("uncaughtException", (error: NodeJS.ErrnoException) => {
    if (/^(ECONNRESET|EPIPE|ECONNABORTED|ERR_STREAM_PREMATURE_CLOSE)$/.test(error.code ?? "")) return;
    console.error(error);
    process.exit(1);
  });
};

const waitForLock = async (folder: string): Promise<{ release(): void }> => {
  const file = join(folder, "emulators.lock");
  for (let waitedMs = 0; waitedMs <= LOCK_WAIT_MS; waitedMs += LOCK_TRY_MS) {
    const lock = holdLock(file);
    if (lock !== undefined) return lock;
    await pause(LOCK_TRY_MS);
  }
  throw new Error("the stores are still in use by an earlier start of this stack");
};

const startDynamodb = async (folder: string, port: number): Promise<() => Promise<void>> => {
  const path = join(folder, "dynamodb");
  mkdirSync(path, { recursive: true });
  const server = dynalite({ path, createTableMs: 0 });
  server.listen(port);
  // Rejects when the port has been taken since it was found free.
  await once(server, "listening");
  return async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
};

const startSqs = async (folder: string, port: number): Promise<() => Promise<void>> => {
  const server = await startFauxqs({
    port,
    host: "localhost",
    defaultRegion: REGION,
    dataDir: join(folder, "sqs"),
    logger: false,
  });
  return () => server.stop();
};

const begin = async ({ folder, dynamodbPort, sqsPort }: EmulatorsStart): Promise<Running> => {
  const lock = await waitForLock(folder);
  const stops = await Promise.all([
    ...(dynamodbPort === undefined ? [] : [startDynamodb(folder, dynamodbPort)]),
    ...(sqsPort === undefined ? [] : [startSqs(folder, sqsPort)]),
  ]);
  return {
    stop: async () => {
      await Promise.all(stops.map((stop) => stop()));
      lock.release();
    },
  };
};

listenOnLoopbackOnly();
waitForNoDisk();
surviveBrokenConnections();
runChild(begin);
