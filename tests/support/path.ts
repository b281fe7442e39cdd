import { type MemoryTable, memoryTable } from "../../lib/adapters/memory/memory-table.ts";
import type { Deps } from "../../lib/app/deps.ts";
import { dispatch } from "../../lib/app/path/dispatch.ts";
import { work } from "../../lib/app/path/work.ts";
import { Unavailable } from "../../lib/core/errors.ts";
import { type Occurrence, slotKeyOf } from "../../lib/core/identity.ts";
import { lockKey, runKey } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { jobList } from "../../lib/core/jobs/job-list.ts";
import type { RunMessage } from "../../lib/core/runs/message.ts";
import { schedulerInput } from "../../lib/core/runs/scheduler-event.ts";
import { AWS_TIMINGS, type Timings } from "../../lib/core/settings.ts";
import { readInstant, shortIsoOf } from "../../lib/core/time.ts";
import type { Item, Key, Write } from "../../lib/core/write.ts";
import type { AttemptEnd, AttemptRequest, AttemptServices } from "../../lib/ports/attempts.ts";
import type { Timers } from "../../lib/ports/clock.ts";
import type { AttemptEvent } from "../../lib/ports/journal.ts";
import type { Settlement } from "../../lib/ports/run-queue.ts";
import type { Table } from "../../lib/ports/table.ts";
import { virtualTime } from "../../lib/simulation/virtual-time.ts";
import { oneByOne } from "./one-by-one.ts";

export const msOf = (iso: string): number => {
  const atMs = readInstant(iso);
  if (atMs === undefined) throw new TypeError(`no instant: ${iso}`);
  return atMs;
};

export const at = (subject: string, slotIso: string): Occurrence => ({
  subject,
  slotKey: slotKeyOf(msOf(slotIso)),
});

/**
 * What can happen to one call of a port. `down`: no effect, no answer; `lost`: the effect, no answer; `repeated`: the
 * answer was lost and the SDK made the same call again.
 */
export type Fault = "down" | "lost" | "repeated";
export type Port = "write" | "get" | "getMany" | "query" | "send";

/** An attempt that the test ends by hand; one that is stopped obeys at once. */
export interface HandAttempt {
  readonly request: AttemptRequest;
  readonly services: AttemptServices;
  readonly stops: string[];
  end(how: AttemptEnd): void;
}

export interface Notice {
  readonly code: string;
  readonly fields: { readonly [name: string]: unknown };
}

export interface SetupOptions {
  readonly now: string;
  readonly jobs: readonly JobDefinition[];
  readonly stage?: string;
  readonly timings?: Timings;
  /** Another process's table; default: a new one. */
  readonly table?: MemoryTable;
  /** What this process's owner tokens begin with. */
  readonly name?: string;
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Fault injection: what the test wants to happen at the next calls that match. */
const makeFaults = () => {
  let wanted: { port: Port; fault?: Fault; act?: () => Promise<unknown>; match: (key: Key) => boolean }[] =
    [];
  const take = (port: Port, key: Key) => {
    const found = wanted.find((one) => one.port === port && one.match(key));
    wanted = wanted.filter((one) => one !== found);
    return found;
  };
  const call = async <Answer>(port: Port, key: Key, effect: () => Promise<Answer>): Promise<Answer> => {
    const planned = take(port, key);
    await planned?.act?.();
    if (planned?.fault === "down") throw new Unavailable("test", `${port} is down`);
    const answer = await effect();
    if (planned?.fault === "lost") throw new Unavailable("test", `the answer of ${port} was lost`);
    return planned?.fault === "repeated" ? effect() : answer;
  };
  return {
    call,
    /** The next `times` matching calls of the port meet the fault. */
    fail: (port: Port, fault: Fault, match: (key: Key) => boolean = () => true, times = 1): void => {
      for (let n = 0; n < times; n++) wanted.push({ port, fault, match });
    },
    /** The next matching call goes through untouched; what is planned after it meets the one after it. */
    pass: (port: Port, match: (key: Key) => boolean): void => {
      wanted.push({ port, match });
    },
    /** Something happens between our last step and the next matching call. */
    meanwhile: (port: Port, match: (key: Key) => boolean, act: () => Promise<unknown>): void => {
      wanted.push({ port, act, match });
    },
  };
};

export const onRun = ({ sk }: Key): boolean => sk.startsWith("R#");
export const onLock = ({ sk }: Key): boolean => sk === "L";
export const onSide = ({ sk }: Key): boolean => sk.startsWith("I#");

const NO_KEY: Key = { pk: "", sk: "" };

/** The real use cases over a table in memory, on a clock and timers that the test moves. Fresh per test. */
export const setup = (options: SetupOptions) => {
  const {
    now,
    jobs,
    stage = "test",
    timings = AWS_TIMINGS,
    table: stored = memoryTable(),
    name = "t",
  } = options;
  const time = virtualTime(msOf(now));
  const faults = makeFaults();
  const sent: { readonly pool: string; readonly message: RunMessage }[] = [];
  const notices: Notice[] = [];
  const events: AttemptEvent[] = [];
  const attempts: HandAttempt[] = [];
  const calls: string[] = [];
  const writes: Write[] = [];
  let handler: ((request: AttemptRequest) => AttemptEnd | undefined) | undefined;
  let tokens = 0;
  let skewMs = 0;

  const counted = <Answer>(port: Port, key: Key, effect: () => Promise<Answer>): Promise<Answer> => {
    calls.push(`${port} ${key.sk}`);
    return faults.call(port, key, effect);
  };
  const table: Table = {
    write: (write) => {
      writes.push(write);
      return counted("write", write.key, () => stored.write(write));
    },
    get: (key, options) => counted("get", key, () => stored.get(key, options)),
    getMany: (keys) => counted("getMany", NO_KEY, () => stored.getMany(keys)),
    query: (query) => counted("query", { pk: query.pk, sk: query.first }, () => stored.query(query)),
  };
  const timers: Timers = {
    after: (waitMs, callback) => {
      let cancelled = false;
      time.at(time.now() + waitMs, () => {
        if (!cancelled) callback();
      });
      return {
        cancel: () => {
          cancelled = true;
        },
      };
    },
  };
  const deps: Deps = {
    table,
    timers,
    timings,
    queue: oneByOne({
      send: (pool, message) =>
        counted("send", { pk: pool, sk: message.slotKey }, async () => {
          sent.push({ pool, message });
        }),
    }),
    clock: { nowMs: () => time.now() + skewMs },
    random: { token: () => `${name}${String(++tokens).padStart(4, "0")}`, fraction: () => 0 },
    journal: {
      attempt: (event) => events.push(event),
      notice: (_level, code, fields) => notices.push({ code, fields }),
      handlerLine: (level, message, fields) => notices.push({ code: `line ${level} ${message}`, fields }),
    },
    jobs: jobList({ jobs, hash: JSON.stringify(jobs) }, stage),
  };

  const startAttempt = (request: AttemptRequest, services: AttemptServices) => {
    let end: (how: AttemptEnd) => void = () => undefined;
    const ended = new Promise<AttemptEnd>((resolve) => {
      end = resolve;
    });
    const stops: string[] = [];
    attempts.push({ request, services, stops, end });
    const answer = handler?.(request);
    if (answer !== undefined) end(answer);
    const stop = (reason: string): void => {
      stops.push(reason);
      end({ kind: "stopped", error: { name: "AbortError", message: reason } });
    };
    return { ended, stop };
  };
  const workDeps = { ...deps, attempts: { start: startAttempt } };

  return {
    ...faults,
    deps,
    workDeps,
    table: stored,
    sent,
    notices,
    events,
    attempts,
    calls,
    writes,
    now: (): number => time.now(),
    codes: (): string[] => notices.map(({ code }) => code),
    /** Lets everything happen that waits for no time. */
    settle,
    /** Moves to the instant; timers that fall due on the way call back in order. */
    moveTo: async (iso: string): Promise<void> => {
      await settle();
      await time.playUntil(msOf(iso));
      await settle();
    },
    moveBy: async (ms: number): Promise<void> => {
      await settle();
      await time.playUntil(time.now() + ms);
      await settle();
    },
    /** This process's clock from now on, beside the true time. */
    skew: (ms: number): void => {
      skewMs = ms;
    },
    /** Every attempt from now on ends so at once; undefined = by hand. */
    handle: (how: typeof handler): void => {
      handler = how;
    },
    run: ({ subject, slotKey }: Occurrence): Promise<Item | undefined> =>
      stored.get(runKey({ subject, slotKey }), { consistent: true }),
    lock: (subject: string): Promise<Item | undefined> => stored.get(lockKey(subject), { consistent: true }),
    put: (key: Key, attributes: Item) =>
      stored.write({
        key,
        changes: Object.entries(attributes).map(([path, value]) => ({ kind: "set", path, value })),
      }),
    /** One delivery of the schedule of these jobs at the slot. */
    deliver: (slotIso: string, subjects: readonly string[], requestId = "request-1") =>
      dispatch(deps, { ...schedulerInput(subjects), scheduledTime: shortIsoOf(msOf(slotIso)) }, requestId),
    work: (message: RunMessage): Promise<Settlement> => work(workDeps, message),
    /** The same with some port of the test's own. */
    workWith: (ports: Partial<Deps>, message: RunMessage): Promise<Settlement> =>
      work({ ...workDeps, ...ports }, message),
    lastSent: (): RunMessage => {
      const last = sent.at(-1);
      if (last === undefined) throw new Error("nothing was sent");
      return last.message;
    },
    lastAttempt: (): HandAttempt => {
      const last = attempts.at(-1);
      if (last === undefined) throw new Error("no attempt was started");
      return last;
    },
  };
};

export type Setup = ReturnType<typeof setup>;

export const failure = (message = "no such host"): AttemptEnd => ({
  kind: "threw",
  permanent: false,
  error: { name: "TypeError", message, stack: `TypeError: ${message}\n    at handler (job.ts:1:1)` },
});
