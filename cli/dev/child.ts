import { flushCompileCache } from "node:module";
import type { Server } from "node:net";
import { messageOf } from "../../lib/core/errors.ts";
import type { Measurement } from "./alarm-board.ts";
import { type Build, type Order, type Report, readOrder } from "./messages.ts";

export interface Running {
  /** Lets running work finish, then lets go of everything. */
  stop(): Promise<void>;
  reload?(build: Build): Promise<void>;
  /** Takes what the supervisor says of the alarms. */
  alarms?(order: Order<never> & { kind: "alarms" }): Promise<void>;
}

export interface Host {
  /** One line for the person in front of `dev`. */
  note(text: string): void;
  /** For the alarms. */
  measured(measurements: readonly Measurement[]): void;
  /** The listening socket that came with the start, where one did. */
  readonly server: Server | undefined;
}

const report = (message: Report): void => {
  if (process.connected) process.send?.(message);
};

/** The whole of an error for the log file; people get its message as the fault. */
const keep = (error: unknown): void => {
  const stack = error instanceof Error ? error.stack : String(error);
  console.error(JSON.stringify({ level: "DEBUG", message: "not started", stack }));
};

/** After a stop nothing should be left to do; what is (a client's idle socket) does not keep the process. */
const STRAGGLERS_MS = 500;

const end = (): void => {
  if (process.connected) process.disconnect();
  setTimeout(() => process.exit(), STRAGGLERS_MS).unref();
};

/**
 * The life of a child of `dev`: starts when told, stops when told, and ends at once when the supervisor is gone,
 * be it by kill -9. Signals are the supervisor's business: a terminal's Ctrl-C reaches every process of its
 * group, and a child that obeyed it would take the store away from attempts that are still running.
 */
export const runChild = <Start>(begin: (start: Start, host: Host) => Promise<Running>): void => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  // The reader of our output is the supervisor; when it is gone, so are we.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  let stopping = false;
  let running: Promise<Running> | undefined;

  const start = async (
    order: Order<Start> & { kind: "start" },
    server: Server | undefined,
  ): Promise<void> => {
    running = begin(order.start, {
      server,
      note: (text) => report({ kind: "note", text }),
      measured: (measurements) => report({ kind: "measured", measurements }),
    });
    try {
      await running;
      report({ kind: "ready" });
      // Now, and not at the end: a stack that is killed should start as fast the next time.
      flushCompileCache();
    } catch (error) {
      keep(error);
      report({ kind: "fault", text: messageOf(error) });
      process.exitCode = 1;
      end();
    }
  };

  const reload = async (build: Build): Promise<void> => {
    try {
      await (await running)?.reload?.(build);
      report({ kind: "ready" });
    } catch (error) {
      keep(error);
      report({ kind: "fault", text: messageOf(error) });
    }
  };

  const stop = async (): Promise<void> => {
    stopping = true;
    const begun = await running?.catch(() => undefined);
    await begun?.stop();
    end();
  };

  const obey = async (order: Order<Start> | undefined, server: Server | undefined): Promise<void> => {
    if (order?.kind === "start") await start(order, server);
    if (order?.kind === "reload") await reload(order.build);
    if (order?.kind === "alarms") await (await running)?.alarms?.(order);
    if (order?.kind === "stop") await stop();
  };

  process.on("disconnect", () => {
    if (!stopping) process.exit(1);
  });
  process.on("message", (message: unknown, handle: unknown) => {
    obey(readOrder<Start>(message), handle as Server | undefined).catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
  });
};
