import type { Server } from "node:net";
import { systemClock } from "../../lib/adapters/system/system.ts";
import type { Timers } from "../../lib/ports/clock.ts";
import { type Measurement, measurement } from "./alarm-board.ts";
import type { Attached } from "./endpoints.ts";
import type { Endpoints } from "./environment.ts";
import { type ChildOptions, ManagedChild } from "./managed-child.ts";
import type { Build, ControlStart, EmulatorsStart, Order, WorkerStart } from "./messages.ts";
import { freePorts, localUrl, takePort } from "./network-port.ts";

export interface ProcessesOptions {
  readonly folder: string;
  readonly stores: Stores;
  /** Of the children, and so of the handlers. */
  readonly environment: { readonly [name: string]: string | undefined };
  readonly key: string;
  readonly pingSecret: string;
  /** Do the schedules strike? */
  readonly strikes: boolean;
  /** Listening already; goes to the control process. */
  readonly socket: { readonly server: Server; readonly port: number };
  readonly timers: Timers;
  readonly report: (line: string) => void;
  /** For the alarms. */
  readonly measured: (measurements: readonly Measurement[]) => void;
  /** Where what the child of that name prints goes. */
  readonly output: (name: string) => (chunk: Buffer) => void;
}

/** `emulators`, in the language of the running code: sources in the repository, built JavaScript in the package. */
const entryOf = (name: string): URL =>
  new URL(`./${name}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

const workerError = (pool: string): Measurement =>
  measurement({ of: "function", function: { kind: "worker", pool }, name: "Errors" }, systemClock.nowMs());

/** Where the stores are, and on which ports our own emulators have to provide them. */
export interface Stores {
  readonly endpoints: Endpoints;
  /** Absent = this store is attached. */
  readonly dynamodbPort?: number;
  readonly sqsPort?: number;
}

/** Embedded or attached, each apart; the embedded ones on ports that are free now. */
export const findStores = async (attached: Attached): Promise<Stores> => {
  const [dynamodbPort, sqsPort] = await freePorts(2);
  return {
    endpoints: {
      dynamodb: attached.dynamodb ?? `http://127.0.0.1:${dynamodbPort}`,
      sqs: attached.sqs ?? `http://127.0.0.1:${sqsPort}`,
    },
    ...(attached.dynamodb === undefined && dynamodbPort !== undefined ? { dynamodbPort } : {}),
    ...(attached.sqs === undefined && sqsPort !== undefined ? { sqsPort } : {}),
  };
};

/** All processes of the stack but the supervisor's own, and the order in which they begin and end. */
export class Processes {
  readonly #options: ProcessesOptions;
  readonly #endpoints: Endpoints;
  readonly #emulators: ManagedChild<EmulatorsStart> | undefined;
  readonly #control: ManagedChild<ControlStart>;
  #build: Build | undefined;
  #workers: readonly ManagedChild<WorkerStart>[] = [];
  /** Workers of a build that is not yet the one that runs. */
  #fresh: readonly ManagedChild<WorkerStart>[] = [];
  /** Workers of earlier builds that still finish what they had begun. */
  readonly #retiring = new Map<ManagedChild<WorkerStart>, Promise<void>>();

  /** Starts the processes that every project needs; they load their code while the project is being built. */
  constructor(options: ProcessesOptions) {
    const { folder, key, pingSecret, socket, stores, strikes } = options;
    const { endpoints, ...ports } = stores;
    this.#options = options;
    this.#endpoints = endpoints;
    this.#emulators =
      ports.dynamodbPort === undefined && ports.sqsPort === undefined
        ? undefined
        : new ManagedChild({
            ...this.#common("emulators", "the emulator process"),
            start: async () => ({ start: { folder, ...ports } }),
          });
    let first: Server | undefined = socket.server;
    this.#control = new ManagedChild({
      ...this.#common("control", "the control process"),
      start: async () => {
        const server = first ?? (await takePort(socket.port)).server;
        first = undefined;
        const pings = { url: localUrl(socket.port), secret: pingSecret };
        return {
          server,
          start: { endpoints: this.#endpoints, build: this.#current(), key, pings, strikes },
        };
      },
    });
  }

  /** @throws Unavailable when a process cannot begin; the others are left to `stop` or `kill`. */
  async begin(build: Build, pools: readonly string[]): Promise<void> {
    this.#build = build;
    this.#workers = pools.map((pool) => this.#worker(pool, build));
    await this.#emulators?.begin();
    await Promise.all([this.#control.begin(), ...this.#workers.map((worker) => worker.begin())]);
  }

  /**
   * Goes over to another build: new workers first, then control, then the old workers finish their running
   * attempts and end. Resolves before that; `retired` is called after it.
   * @throws Unavailable when the new build cannot run; the old one goes on then.
   */
  async reload(build: Build, pools: readonly string[], retired: () => void): Promise<void> {
    const workers = pools.map((pool) => this.#worker(pool, build));
    this.#fresh = workers;
    try {
      await Promise.all(workers.map((worker) => worker.begin()));
      await this.#control.reload(build);
    } catch (error) {
      for (const worker of workers) worker.kill();
      throw error;
    } finally {
      this.#fresh = [];
    }
    const old = this.#workers;
    this.#build = build;
    this.#workers = workers;
    void Promise.all(old.map((worker) => this.#retire(worker))).then(retired);
  }

  /** Answers whether the process that takes it was there. */
  tellAlarms(order: Order<never> & { kind: "alarms" }): boolean {
    return this.#control.order(order);
  }

  /** Polling stops first, running work ends, then those that serve it. Leaves no process. */
  async stop(): Promise<void> {
    await Promise.all([
      ...[...this.#workers, ...this.#fresh].map((worker) => worker.stop()),
      ...this.#retiring.values(),
    ]);
    await this.#control.stop();
    await this.#emulators?.stop();
  }

  /** Ends everything now, and waits until the emulators have closed their files, or could not in time. */
  async end(graceMs: number): Promise<void> {
    const others = [...this.#workers, ...this.#fresh, ...this.#retiring.keys(), this.#control];
    for (const child of others) child.kill();
    const grace = Promise.withResolvers<void>();
    const timer = this.#options.timers.after(graceMs, grace.resolve);
    await Promise.race([this.#emulators?.stop(), grace.promise]);
    timer.cancel();
    this.kill();
  }

  /** As kill -9 does, to each process. */
  kill(): void {
    const others = [...this.#workers, ...this.#fresh, ...this.#retiring.keys(), this.#control];
    for (const child of others) child.kill();
    this.#emulators?.kill();
  }

  #current(): Build {
    if (this.#build === undefined) throw new Error("nothing is built yet");
    return this.#build;
  }

  #common(name: string, spoken: string): Omit<ChildOptions<never>, "start"> {
    const { environment, measured, output, report, timers } = this.#options;
    return {
      measured,
      name: spoken,
      entry: entryOf(name.replace(/-.*/, "")),
      environment,
      timers,
      report,
      output: output(name),
    };
  }

  #worker(pool: string, build: Build): ManagedChild<WorkerStart> {
    const start: WorkerStart = { endpoints: this.#endpoints, build, pool };
    return new ManagedChild({
      ...this.#common(`worker-${pool}`, `worker "${pool}"`),
      // On Lambda a worker that ends by itself is an error of its function.
      died: () => this.#options.measured([workerError(pool)]),
      start: async () => ({ start }),
    });
  }

  #retire(worker: ManagedChild<WorkerStart>): Promise<void> {
    const gone = worker.stop().finally(() => this.#retiring.delete(worker));
    this.#retiring.set(worker, gone);
    return gone;
  }
}
