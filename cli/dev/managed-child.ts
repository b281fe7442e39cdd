import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Server } from "node:net";
import { letGoOfPipes } from "../../lib/adapters/thread/pipes.ts";
import { messageOf, Unavailable } from "../../lib/core/errors.ts";
import type { Timers } from "../../lib/ports/clock.ts";
import type { Measurement } from "./alarm-board.ts";
import { type Build, type Order, readReport } from "./messages.ts";

export interface ChildOptions<Start> {
  /** As people read it: `worker "default"`. */
  readonly name: string;
  readonly entry: URL;
  readonly environment: { readonly [name: string]: string | undefined };
  readonly start: () => Promise<{ readonly start: Start; readonly server?: Server }>;
  readonly timers: Timers;
  /** One line for people. */
  readonly report: (line: string) => void;
  /** What the child has measured. */
  readonly measured?: (measurements: readonly Measurement[]) => void;
  /** Called with each end that nobody asked for. */
  readonly died?: () => void;
  /** What the child prints, piece by piece. */
  readonly output: (chunk: Buffer) => void;
  /** Wait before the first restart; each death in a row doubles it. */
  readonly firstWaitMs?: number;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 15_000;
/** A child that lived so long after it was ready has forgotten its earlier deaths. */
const SETTLED_MS = 10_000;

/** A debugger's port cannot be had twice; the rest (such as type stripping on an older Node) holds for children. */
const inheritedFlags = (): readonly string[] => process.execArgv.filter((flag) => !/^--inspect/.test(flag));

const launch = <Start>({ entry, environment, output }: ChildOptions<Start>): ChildProcess => {
  const child = fork(entry, [], {
    env: { ...environment },
    execArgv: [...inheritedFlags(), "--disable-warning=ExperimentalWarning", "--enable-source-maps"],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  child.stdout?.on("data", output);
  child.stderr?.on("data", output);
  // A send to a process that has just died; its exit tells the same.
  child.on("error", () => undefined);
  child.once("exit", () => letGoOfPipes(child));
  return child;
};

const isGone = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Resolves at the child's next word: nothing when it is ready, else why it is not. */
const nextFault = (child: ChildProcess): Promise<string | undefined> =>
  new Promise((resolve) => {
    const settle = (fault: string | undefined): void => {
      child.off("message", onMessage);
      child.off("exit", onExit);
      resolve(fault);
    };
    const onMessage = (message: unknown): void => {
      const told = readReport(message);
      if (told?.kind === "ready") settle(undefined);
      if (told?.kind === "fault") settle(told.text);
    };
    const onExit = (code: number | null, signal: string | null): void =>
      settle(`ended before it was ready (${signal ?? `exit ${code}`})`);
    child.on("message", onMessage);
    child.on("exit", onExit);
    if (isGone(child)) onExit(child.exitCode, child.signalCode);
  });

/** Gives a fresh child its start; answers why it did not begin, or nothing. */
const give = async <Start>(
  child: ChildProcess,
  options: ChildOptions<Start>,
): Promise<string | undefined> => {
  try {
    const { start, server } = await options.start();
    const order: Order<Start> = { kind: "start", start };
    const fault = nextFault(child);
    // The socket lives on in the child; ours is closed once it is there, or it would take half the callers.
    if (!isGone(child)) child.send(order, server, () => server?.close());
    return await fault;
  } catch (error) {
    return messageOf(error);
  }
};

/**
 * A child process that is kept alive: one that dies after it was ready is started again, after a wait that grows
 * with each death in a row, and each death is said. The process exists at once, so that it loads its code while
 * the supervisor is still building; it begins when told.
 */
export class ManagedChild<Start> {
  readonly #options: ChildOptions<Start>;
  #child: ChildProcess;
  #deaths = 0;
  /** Is its end a surprise? */
  #kept = false;
  /** Has it said that it is ready, and not ended since? */
  #isRunning = false;
  /** Somebody let it go, perhaps before it was ready. */
  #isLetGo = false;
  #timer: { cancel(): void } | undefined;

  constructor(options: ChildOptions<Start>) {
    this.#options = options;
    this.#child = this.#spawn();
  }

  /**
   * Gives the start. Resolves when the child is ready.
   * @throws Unavailable when it dies or gives up before that; it is not started again then.
   */
  async begin(): Promise<void> {
    const fault = await give(this.#child, this.#options);
    if (fault !== undefined) {
      this.kill();
      throw new Unavailable("child_failed", `${this.#options.name}: ${fault}`);
    }
    if (this.#isLetGo) return;
    this.#kept = true;
    this.#isRunning = true;
    this.#settle();
  }

  /** Resolves when the child runs the build. @throws Unavailable when it cannot, or dies. */
  async reload(build: Build): Promise<void> {
    const answer = nextFault(this.#child);
    if (!isGone(this.#child)) this.#tell({ kind: "reload", build });
    const fault = await answer;
    if (fault !== undefined) throw new Unavailable("reload_failed", `${this.#options.name}: ${fault}`);
  }

  /** Hands the order over, if the child is there to take it. Answers whether it is. */
  order(order: Order<Start>): boolean {
    if (!this.#isRunning || !this.#child.connected) return false;
    this.#tell(order);
    return true;
  }

  /** Lets it finish. Resolves when the process is gone; may be called twice. */
  async stop(): Promise<void> {
    this.#letGo();
    if (isGone(this.#child)) return;
    const gone = once(this.#child, "exit");
    if (this.#child.connected) this.#tell({ kind: "stop" });
    await gone;
  }

  /** Ends the process now, as kill -9 does. */
  kill(): void {
    this.#letGo();
    this.#child.kill("SIGKILL");
  }

  /** A child that has just been killed takes nothing; its exit says so, and the failed send must not end us. */
  #tell(order: Order<Start>): void {
    this.#child.send(order, () => undefined);
  }

  #letGo(): void {
    this.#isLetGo = true;
    this.#kept = false;
    this.#timer?.cancel();
  }

  #spawn(): ChildProcess {
    const child = launch(this.#options);
    child.on("message", (message: unknown) => {
      const told = readReport(message);
      if (told?.kind === "note") this.#options.report(told.text);
      if (told?.kind === "measured") this.#options.measured?.(told.measurements);
    });
    child.once("exit", (code, signal) => {
      this.#isRunning = false;
      if (this.#kept) this.#restart(signal ?? `exit ${code}`);
    });
    return child;
  }

  #settle(): void {
    this.#timer?.cancel();
    this.#timer = this.#options.timers.after(SETTLED_MS, () => {
      this.#deaths = 0;
    });
  }

  #restart(how: string): void {
    const { died, firstWaitMs = FIRST_WAIT_MS, name, report, timers } = this.#options;
    died?.();
    const waitMs = Math.min(firstWaitMs * 2 ** this.#deaths, LONGEST_WAIT_MS);
    this.#deaths += 1;
    report(`${name} ended by itself (${how}); starting it again in ${waitMs / 1_000} s`);
    this.#timer?.cancel();
    this.#timer = timers.after(waitMs, () => {
      this.#child = this.#spawn();
      void this.#beginAgain(this.#child);
    });
  }

  async #beginAgain(child: ChildProcess): Promise<void> {
    const { name, report } = this.#options;
    const fault = await give(child, this.#options);
    if (!this.#kept) return;
    report(fault === undefined ? `${name} runs again` : `${name}: ${fault}`);
    this.#isRunning = fault === undefined;
    if (fault === undefined) this.#settle();
    // Its exit starts the next try.
    else if (!isGone(child)) child.kill("SIGKILL");
  }
}
