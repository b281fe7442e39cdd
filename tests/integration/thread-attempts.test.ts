import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeThreadAttempts, type ThreadAttemptsOptions } from "../../lib/adapters/thread/thread-attempts.ts";
import type { AttemptEnd, AttemptRequest, AttemptServices } from "../../lib/ports/attempts.ts";
import { QUIET_SERVICES } from "../support/quiet-services.ts";

const JOBS = new URL("../fixtures/thread/jobs.mjs", import.meta.url);
const PARENT = new URL("../fixtures/thread/parent.ts", import.meta.url);
const SLOT_MS = 1_791_424_800_000; // 2026-10-08T02:00Z

/** Timers that wait for the test to say that a time is over. */
const handTimers = () => {
  const pending = new Map<object, { readonly waitMs: number; readonly callback: () => void }>();
  return {
    after: (waitMs: number, callback: () => void) => {
      const key = {};
      pending.set(key, { waitMs, callback });
      return { cancel: () => void pending.delete(key) };
    },
    waits: () => [...pending.values()].map(({ waitMs }) => waitMs),
    /** Ends the wait of that length. */
    end: (waitMs: number) => {
      const found = [...pending].find(([, timer]) => timer.waitMs === waitMs);
      if (!found) throw new Error(`nothing waits ${waitMs} ms`);
      pending.delete(found[0]);
      found[1].callback();
    },
  };
};

type More = Partial<AttemptRequest> & { readonly services?: Partial<AttemptServices> };

const setupWith =
  (isolation: "thread" | "process") =>
  async (options: Partial<ThreadAttemptsOptions> = {}) => {
    const timers = handTimers();
    const output: string[] = [];
    const logged: unknown[] = [];
    const begun = Promise.withResolvers<void>();
    const attempts = makeThreadAttempts({
      jobsFile: JOBS,
      clock: { nowMs: () => Date.now() },
      timers,
      isolation,
      onOutput: (line, run) => output.push(run ? `${run.runId}| ${line}` : line),
      ...options,
    });
    onTestFinished(() => attempts.close());
    await attempts.ready();
    const services: AttemptServices = {
      ...QUIET_SERVICES,
      log: (...line) => {
        logged.push(line);
        if (line[1] === "begun") begun.resolve();
      },
    };
    const start = (job: string, { services: own, ...more }: More = {}) =>
      attempts.start(
        {
          job,
          runId: `${job}~1`,
          slotMs: SLOT_MS,
          attempt: 1,
          trigger: "schedule",
          input: {},
          timeoutMs: 60_000,
          ...more,
        },
        { ...services, ...own },
      );
    const run = (job: string, more: More = {}): Promise<AttemptEnd> => start(job, more).ended;
    /** Resolves when the handler itself says that it runs. */
    const begin = async (job: string, more: Partial<AttemptRequest> = {}) => {
      const running = start(job, more);
      await begun.promise;
      return running;
    };
    return { attempts, timers, output, logged, start, begin, run };
  };

describe.each(["thread", "process"] as const)("in a %s", (isolation) => {
  const setup = setupWith(isolation);

  test("a handler gets the facts of its run, and its result comes back as JSON carries it", async () => {
    const { run } = await setup();
    expect(await run("echo", { input: { days: 3 }, attempt: 2 })).toEqual({
      kind: "returned",
      result: {
        input: { days: 3 },
        slot: "2026-10-08T02:00:00.000Z",
        attempt: 2,
        runId: "echo~1",
        job: "echo",
      },
    });
  });

  test("an idempotency key is the run's, so it is the same in every attempt, and a suffix tells effects apart", async () => {
    const { run } = await setup();
    const first = await run("keys", { attempt: 1 });
    expect(first).toEqual({ kind: "returned", result: ["keys~1", "keys~1:mail"] });
    expect(await run("keys", { attempt: 2 })).toEqual(first);
  });

  test("remaining counts down from the timeout", async () => {
    const { run } = await setup();
    const end = await run("remaining", { timeoutMs: 60_000 });
    const left = end.kind === "returned" ? Number(end.result) : Number.NaN;
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  test("the last success is read when the handler asks for it", async () => {
    const { run } = await setup();
    expect(await run("previous")).toEqual({ kind: "returned" });
    const previous = async () => ({ slotMs: SLOT_MS, finishedAtMs: SLOT_MS + 1_000, result: 7 });
    expect(await run("previous", { services: { previous } })).toEqual({
      kind: "returned",
      result: { slot: "2026-10-08T02:00:00.000Z", finishedAt: "2026-10-08T02:00:01.000Z", result: 7 },
    });
    const broken = () => Promise.reject(new Error("the table is away"));
    expect(await run("previous", { services: { previous: broken } })).toMatchObject({
      kind: "threw",
      error: { message: "the table is away" },
    });
  });

  test("a log line goes to the run's log with its fields made safe", async () => {
    const { run, logged } = await setup();
    await run("logs");
    expect(logged).toEqual([
      ["warn", "careful", { big: "1", circular: { name: "ring", self: "[circular]" } }],
    ]);
  });

  test("what job code prints comes line by line with the run that printed it, and never to our stdout", async () => {
    const { run, output, attempts } = await setup();
    await run("prints");
    await run("prints-error");
    await attempts.close();
    expect(output).toEqual(
      expect.arrayContaining([expect.stringMatching(/to stdout$/), expect.stringMatching(/in two lines$/)]),
    );
    expect(output).toEqual(expect.arrayContaining([expect.stringMatching(/to stderr$/)]));
  });

  test("skip, cancel and snooze end the attempt as such, returned or thrown", async () => {
    const { run } = await setup();
    expect(await run("skips")).toEqual({ kind: "skip", reason: "nothing to do" });
    expect(await run("cancels")).toEqual({ kind: "cancel", reason: "not wanted" });
    expect(await run("snoozes")).toEqual({ kind: "snooze", waitMs: 600_000 });
    expect(await run("snoozes-badly")).toMatchObject({ kind: "threw", error: { name: "InvalidInput" } });
  });

  test("an outcome that is neither returned nor thrown does not count, and the log says so", async () => {
    const { run, logged } = await setup();
    expect(await run("forgets-return")).toEqual({ kind: "returned" });
    expect(logged).toEqual([["warn", expect.stringContaining("neither returned nor thrown"), {}]]);
  });

  test.each(["loops", "hangs"])(
    "a handler that %s is ended by force after its timeout and a mercy of a second",
    async (job) => {
      const { begin, run, timers } = await setup();
      const { ended } = await begin(job, { timeoutMs: 300_000 });
      timers.end(300_000);
      timers.end(1_000);
      expect(await ended).toEqual({
        kind: "timed-out",
        error: { name: "TimeoutError", message: "the handler ran longer than its timeout of 5 minutes" },
      });
      expect(timers.waits()).toEqual([]);
      expect(await run("keys")).toMatchObject({ kind: "returned" });
    },
  );

  test("a handler that obeys its signal ends as timed out with the stack of where it was", async () => {
    const { begin, timers } = await setup();
    const { ended } = await begin("obeys", { timeoutMs: 2_000 });
    timers.end(2_000);
    expect(await ended).toMatchObject({
      kind: "timed-out",
      error: { name: "TimeoutError", stack: expect.any(String) },
    });
  });

  test("what a handler returns after its signal was aborted is no success", async () => {
    const { begin, timers } = await setup();
    const { ended } = await begin("returns-late", { timeoutMs: 2_000 });
    timers.end(2_000);
    expect(await ended).toMatchObject({ kind: "timed-out" });
  });

  test("a handler that is stopped ends as stopped with the reason, however often it is told", async () => {
    const { begin, timers } = await setup();
    const { ended, stop } = await begin("hangs");
    stop("the lease is lost");
    stop("again");
    timers.end(1_000);
    expect(await ended).toEqual({
      kind: "stopped",
      error: { name: "AbortError", message: "the lease is lost" },
    });
  });

  test("a handler that has ended is stopped no more: the attempt that has its thread by now goes on", async () => {
    const { start, begin, timers } = await setup();
    const first = start("keys");
    expect(await first.ended).toMatchObject({ kind: "returned" });
    const { ended, stop } = await begin("hangs");
    first.stop("the lease is lost");
    expect(timers.waits()).not.toContain(1_000);
    stop("asked for");
    timers.end(1_000);
    expect(await ended).toMatchObject({ kind: "stopped", error: { message: "asked for" } });
  });

  test("closing ends a running attempt as stopped, and a later one does not begin", async () => {
    const { begin, run, attempts } = await setup();
    const { ended } = await begin("loops");
    await attempts.close();
    expect(await ended).toMatchObject({ kind: "stopped" });
    expect(await run("keys")).toMatchObject({ kind: "stopped" });
  });

  test.each([
    ["exits-0", "process.exit(0)"],
    ["exits-4", "process.exit(4)"],
  ])("a handler that calls process.exit (%s) ends alone", async (job, call) => {
    const { run } = await setup();
    expect(await run(job)).toMatchObject({
      kind: "exited",
      error: { message: expect.stringContaining(call) },
    });
    expect(await run("keys")).toMatchObject({ kind: "returned" });
  });

  test.each([
    ["forgets-await", "nobody waits for this"],
    ["throws-in-timer", "thrown in a timer"],
  ])("an error that nobody catches (%s) ends the attempt at once with that error", async (job, message) => {
    const { run } = await setup();
    expect(await run(job)).toMatchObject({
      kind: "exited",
      error: { name: "Error", message, stack: expect.stringContaining("jobs.mjs") },
    });
  });

  test("an error that an earlier run left behind does not harm the run that has its thread now", async () => {
    const { run, output, attempts } = await setup();
    await run("leaves-a-bomb");
    expect(await run("meets-a-bomb")).toEqual({ kind: "returned", result: "unharmed" });
    expect(await run("keys")).toMatchObject({ kind: "returned" });
    await attempts.close();
    expect(output.join()).toContain(
      "run leaves-a-bomb~1 failed after its handler had returned: Error: the bomb of an earlier run",
    );
  });

  test("an error after the handler has returned replaces the idle thread, and the next run begins in a new one", async () => {
    const { run } = await setup();
    expect(await run("fails-when-idle")).toEqual({ kind: "returned" });
    for (let n = 0; n < 3; n++) expect(await run("keys")).toMatchObject({ kind: "returned" });
  });

  test("neighbours of a handler that ends its thread go on", async () => {
    const { run } = await setup({ warm: 2, memoryMb: 128 });
    const [unharmed, ...ends] = await Promise.all([run("meets-a-bomb"), run("exits-4"), run("eats-memory")]);
    expect(unharmed).toEqual({ kind: "returned", result: "unharmed" });
    expect(ends.map(({ kind }) => kind)).toEqual(["exited", "out-of-memory"]);
  });

  test("a result that JSON cannot carry is made safe", async () => {
    const { run } = await setup();
    const results = {
      "returns-bigint": { count: "12" },
      "returns-circular": { name: "ring", self: "[circular]" },
      "returns-function": { handler: "[function handler]" },
      "returns-null-bytes": "a\u0000b\ufffd",
      "returns-traps": { good: 1, bad: "[unreadable]" },
    };
    for (const [job, result] of Object.entries(results))
      expect(await run(job), job).toEqual({ kind: "returned", result });
    expect(await run("returns-undefined")).toEqual({ kind: "returned" });
  });

  test("a result of two megabytes is trimmed to 32 KB with a mark", async () => {
    const { run } = await setup();
    const end = await run("returns-much");
    const text = end.kind === "returned" ? String(end.result) : "";
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32 * 1024);
    expect(text).toMatch(/ü… \[trimmed: 2097154 bytes\]$/);
  });

  test("anything may be thrown", async () => {
    const { run } = await setup();
    const messages = {
      "throws-text": "plain text",
      "throws-undefined": "undefined was thrown",
      "throws-frozen": '{"code":7}',
      "throws-traps": "[unreadable]",
    };
    for (const [job, message] of Object.entries(messages))
      expect(await run(job), job).toEqual({
        kind: "threw",
        permanent: false,
        error: { name: "NonError", message },
      });
  });

  test("message and stack of an error are bounded, and its causes stand below the stack", async () => {
    const { run } = await setup();
    const much = await run("throws-much");
    if (much.kind !== "threw") throw new Error(much.kind);
    expect(Buffer.byteLength(much.error.message)).toBeLessThanOrEqual(4 * 1024);
    expect(Buffer.byteLength(much.error.stack ?? "")).toBeLessThanOrEqual(16 * 1024);
    expect(await run("throws-with-cause")).toMatchObject({
      error: { message: "outer", stack: expect.stringMatching(/Error: outer(.|\n)*Caused by: Error: inner/) },
    });
  });

  test("an error may say never or when", async () => {
    const { run } = await setup();
    expect(await run("throws-permanent")).toMatchObject({ kind: "threw", permanent: true });
    expect(await run("throws-retry-after")).toMatchObject({
      kind: "threw",
      permanent: false,
      retryAfterMs: 90_000,
    });
  });

  test("the schema checks the input before the handler; input that it refuses is never tried again", async () => {
    const { run } = await setup();
    expect(await run("checked", { input: { days: 2 } })).toEqual({ kind: "returned", result: { days: 4 } });
    expect(await run("checked", { input: { days: 0 } })).toMatchObject({
      kind: "threw",
      permanent: true,
      error: { name: "InputRefused", message: "input.days: must be positive" },
    });
  });

  test("a job that the build does not have fails and may be tried again", async () => {
    const { run } = await setup();
    expect(await run("gone")).toMatchObject({
      kind: "threw",
      permanent: false,
      error: { message: 'this build has no job named "gone"' },
    });
  });

  test("jobs that cannot be loaded fail ready and each attempt, and are not loaded for ever", async () => {
    const attempts = makeThreadAttempts({
      jobsFile: new URL("../fixtures/thread/none.mjs", import.meta.url),
      clock: { nowMs: () => Date.now() },
      timers: handTimers(),
      isolation,
      onOutput: () => undefined,
    });
    onTestFinished(() => attempts.close());
    await expect(attempts.ready()).rejects.toThrow("none.mjs");
  });
});

test.each(["eats-memory", "parses-too-much", "fills-for-ever"])(
  "in a process, even a handler that V8 cannot stop (%s) ends alone, out of memory",
  async (job) => {
    const { run } = await setupWith("process")({ warm: 2, memoryMb: 128 });
    const [end, neighbour] = await Promise.all([run(job), run("keys")]);
    expect([end.kind, neighbour.kind]).toEqual(["out-of-memory", "returned"]);
  },
);

test("a handler in a process does not outlive its parent, even one that blocks its event loop", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? String(address?.port) : "";
  const parent = spawn(process.execPath, [fileURLToPath(PARENT), port], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [socket]: Socket[] = await once(server, "connection");
  if (!socket) throw new Error("nobody connected");
  const gone = new Promise((resolve) => socket.on("error", resolve).on("close", resolve).resume());
  parent.kill("SIGKILL");
  // The handler holds the connection, and never looks at it; it ends with the handler's process.
  await gone;
});
