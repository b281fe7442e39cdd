import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { makeInspect } from "../../../lib/app/inspect/inspect.ts";
import { makePing } from "../../../lib/app/monitors/ping.ts";
import { type DeliverDeps, deliver } from "../../../lib/app/notify/deliver.ts";
import { makeListAlerts } from "../../../lib/app/notify/list-alerts.ts";
import { putAlert } from "../../../lib/app/notify/outbox.ts";
import { makeTestAlert } from "../../../lib/app/notify/test-alert.ts";
import { makeOperator } from "../../../lib/app/operate/operator.ts";
import { makeRunByHand } from "../../../lib/app/operate/run-by-hand.ts";
import { storeAside } from "../../../lib/app/path/side.ts";
import { runOfSeriesEnded } from "../../../lib/app/series/series.ts";
import { makeSeriesActs } from "../../../lib/app/series/series-acts.ts";
import type { RingingAlarm } from "../../../lib/core/alarms/alarm.ts";
import { testAlert } from "../../../lib/core/alarms/alarm-change.ts";
import { subjectInPartitionKey } from "../../../lib/core/items.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { jobList } from "../../../lib/core/jobs/job-list.ts";
import type { Json } from "../../../lib/core/json.ts";
import { releaseHolder } from "../../../lib/core/runs/lock.ts";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { type Finish, finish, start, takeOverAndEnd } from "../../../lib/core/runs/transitions.ts";
import { EMBEDDED_TIMINGS } from "../../../lib/core/settings.ts";
import type { Item } from "../../../lib/core/write.ts";
import { operateRouter } from "../../../lib/inbound/operate/router.ts";
import type { Bell } from "../../../lib/ports/bell.ts";
import type { Clock, Timers } from "../../../lib/ports/clock.ts";
import { oneByOne } from "../../support/one-by-one.ts";
import { jobOf } from "../../unit/inspect/setup.ts";

/** A chat that takes everything, and a pager that this machine has no key for. */
const bellOn = (deps: Omit<DeliverDeps, "routes">): Bell => ({
  name: "outbox",
  channels: (topic) =>
    topic === "notify" ? ["chat"] : ["chat", { name: "pager", why: "PAGER is not in the environment" }],
  ring: async (topic, id) => {
    const send = async () => ({ kind: "taken" }) as const;
    const channel = { name: "chat", alertsPerMessage: 1, send };
    await putAlert(deps.table, testAlert(topic, id, deps.clock.nowMs()));
    await deliver({ ...deps, routes: [{ channel, topics: ["notify", "page"] }] });
  },
});

/** How the scripted worker ends every run of the job; `nothing` = the message is never handled. */
type End = Finish["state"] | "parked" | "nothing";

const ENDS: { readonly [job: string]: End } = {
  daily: "succeeded",
  broken: "dead",
  idle: "skipped",
  stopped: "cancelled",
  unclear: "parked",
  slow: "nothing",
};

export const JOBS: readonly JobDefinition[] = Object.keys(ENDS).map((name) =>
  jobOf({ name, schedules: ["0 2 * * *"], timezone: "Asia/Shanghai", overlap: "skip" }),
);

/** More than a pipe takes at once. */
export const LONG_STACK = `TypeError: no such host\n${"    at fetch (jobs/broken.ts:1:1)\n".repeat(8_000)}`;

const clock: Clock = { nowMs: () => Date.now() };
const timers: Timers = {
  after: (waitMs, callback) => {
    const timer = setTimeout(callback, waitMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

type AfterRun = (run: Item) => Promise<void>;

const makeWorker =
  (table: ReturnType<typeof memoryTable>, after: AfterRun) => async (message: RunMessage) => {
    const end = ENDS[message.subject] ?? "nothing";
    if (end === "nothing") return;
    const { subject, slotKey, epoch, trigger, queuedAtMs } = message;
    const occurrence = { subject, slotKey };
    const nowMs = Date.now();
    const lease = { occurrence, epoch, token: "worker", nowMs, leaseUntilMs: nowMs, locked: true };
    const started = await table.write(start({ ...lease, trigger, queuedAtMs }));
    const fence = Number(started.item?.["fence"]);
    const error = { name: "TypeError", message: "no such host" };
    if (end === "parked") {
      const lost = {
        occurrence,
        token: "worker",
        seenFence: fence,
        nowMs: nowMs + 1,
        clockBoundMs: 0,
        tries: [],
      };
      await table.write(takeOverAndEnd(lost, { state: "parked", reason: "the worker was lost", error }));
      return;
    }
    if (end === "dead")
      await storeAside(table, occurrence, `error-${fence}`, { ...error, stack: LONG_STACK }, nowMs);
    const tries = [{ n: 1, startMs: nowMs, tookMs: 10, outcome: end }];
    const result: Json = { deletedCount: 7 };
    const { item } = await table.write(
      finish(
        { occurrence, fence },
        {
          state: end,
          nowMs: nowMs + 10,
          tries,
          failed: end === "dead",
          ...(end === "succeeded" ? { result } : { reason: `it ended ${end}` }),
          ...(end === "dead" ? { error } : {}),
        },
      ),
    );
    await table.write(releaseHolder(occurrence, epoch));
    if (item?.["series"] !== undefined) await after(item);
  };

/** The real router over a memory table, served as the local stack serves it, with a scripted worker behind it. */
export const startStack = async () => {
  const table = memoryTable();
  const jobs = jobList({ jobs: JOBS, hash: "test" }, "dev");
  const work = makeWorker(table, async (run) => {
    const job = jobs.bySubject(subjectInPartitionKey(String(run["pk"])));
    if (job !== undefined) await runOfSeriesEnded({ ...deps, jobs }, job, run);
  });
  const deps = {
    table,
    clock,
    timers,
    timings: EMBEDDED_TIMINGS,
    random: { token: randomUUID, fraction: () => 0.5 },
    journal: { attempt: () => undefined, notice: () => undefined, handlerLine: () => undefined },
    queue: oneByOne({ send: async (_pool: string, message: RunMessage) => work(message) }),
  };
  const inspect = makeInspect({ ...deps, jobs });
  const operator = makeOperator({ ...deps, jobs });
  const series = makeSeriesActs({ ...deps, jobs });
  const ringing: RingingAlarm[] = [];
  const app = operateRouter({
    inspect,
    runByHand: makeRunByHand(deps),
    operator,
    ping: makePing({ ...deps, jobs }),
    pingAddress: async ({ subject }) => `https://pings.example/ping/${subject}/key`,
    series,
    jobs,
    clock,
    listAlerts: makeListAlerts(deps),
    testAlert: makeTestAlert({ ...deps, bell: bellOn(deps) }),
    ringing: () => ringing,
  });
  const key = "a-key-of-this-test-and-of-no-other-place";
  const asked: string[] = [];
  const onAsked = new Set<() => void>();
  const server = createServer(
    getRequestListener((request) => {
      asked.push(new URL(request.url).pathname);
      for (const listener of onAsked) listener();
      const isKnown = request.headers.get("authorization") === `Bearer ${key}`;
      return isKnown
        ? app.fetch(request)
        : Response.json({ code: "unauthorized", detail: "no" }, { status: 401 });
    }),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const data = mkdtempSync(join(tmpdir(), "belfry with space "));
  const facts = { port, key, pid: process.pid, startedAt: new Date().toISOString() };
  writeFileSync(join(data, "dev.json"), JSON.stringify(facts));
  return {
    data,
    table,
    ringing,
    facts,
    /** Resolves when a path that fits has been asked for, so often. */
    whenAsked: (path: RegExp, times = 1): Promise<void> =>
      new Promise((resolve) => {
        const look = () => {
          if (asked.filter((one) => path.test(one)).length < times) return;
          onAsked.delete(look);
          resolve();
        };
        onAsked.add(look);
        look();
      }),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};

export const BIN = fileURLToPath(new URL("../../../cli/bin.js", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Of stdout. */
  readonly json: () => unknown;
}

interface CliOptions {
  readonly data?: string;
  readonly cwd?: string;
  readonly stdin?: string;
  readonly nodeFlags?: readonly string[];
  readonly bin?: string;
  /** Beside those of this process; undefined takes one out. */
  readonly env?: { readonly [name: string]: string | undefined };
}

/** A process of the command line, on a host whose own zone is none that any test means. */
export const spawnCli = (args: readonly string[], options: CliOptions = {}): ChildProcess => {
  const { BELFRY_DATA: _, ...env } = process.env;
  return spawn(process.execPath, [...(options.nodeFlags ?? []), options.bin ?? BIN, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: {
      ...env,
      TZ: "America/New_York",
      ...(options.data === undefined ? {} : { BELFRY_DATA: options.data }),
      ...options.env,
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
};

export const ended = async (child: ChildProcess): Promise<Ended> => {
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      texts[name] += text;
    });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...texts, json: () => JSON.parse(texts.stdout) };
};

export const cli = (args: readonly string[], options: CliOptions = {}): Promise<Ended> => {
  const child = spawnCli(args, options);
  child.stdin?.end(options.stdin ?? "");
  return ended(child);
};
