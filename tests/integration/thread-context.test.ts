import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock, systemTimers } from "../../lib/adapters/system/system.ts";
import { makeThreadAttempts } from "../../lib/adapters/thread/thread-attempts.ts";
import type { Json } from "../../lib/core/json.ts";
import type { Effect, Progress } from "../../lib/core/runs/kept.ts";
import type { AttemptServices } from "../../lib/ports/attempts.ts";
import { QUIET_SERVICES } from "../support/quiet-services.ts";

const JOBS = new URL("../fixtures/thread/jobs.mjs", import.meta.url);

/** A run's memory, as the use cases keep it; one thread or process, so that attempts follow one another in it. */
const setupWith =
  (isolation: "thread" | "process") =>
  async (own: Partial<AttemptServices> = {}) => {
    const states: Json[] = [];
    const effects = new Map<string, Effect>();
    const said: Progress[] = [];
    const lines: string[] = [];
    const attempts = makeThreadAttempts({
      jobsFile: JOBS,
      clock: systemClock,
      timers: systemTimers,
      isolation,
      onOutput: () => undefined,
    });
    onTestFinished(() => attempts.close());
    await attempts.ready();
    const services: AttemptServices = {
      ...QUIET_SERVICES,
      log: (_level, message) => lines.push(message),
      loadState: async () => states.at(-1),
      saveState: async (state) => void states.push(state),
      recallEffect: async (key) => effects.get(key),
      recordEffect: async (key, effect) => void effects.set(key, effect),
      progress: (progress) => said.push(progress),
      ...own,
    };
    const start = (job: string, input: Json = null) =>
      attempts.start(
        { job, runId: `${job}~1`, slotMs: 0, attempt: 1, trigger: "schedule", input, timeoutMs: 60_000 },
        services,
      );
    return {
      states,
      effects,
      said,
      lines,
      start,
      run: (job: string, input?: Json) => start(job, input).ended,
    };
  };

describe.each(["thread", "process"] as const)("in a %s", (isolation) => {
  const setup = setupWith(isolation);

  test("a checkpoint is saved and loaded as JSON carries it, and later attempts find it", async () => {
    const { run, states } = await setup();
    expect(await run("saves-and-loads", { row: 1 })).toEqual({
      kind: "returned",
      result: { after: { row: 1 } },
    });
    expect(await run("saves-and-loads", [2])).toMatchObject({ result: { before: { row: 1 }, after: [2] } });
    expect(states).toEqual([{ row: 1 }, [2]]);
  });

  test("a checkpoint over its limit fails the attempt and says by how much, and what to save instead", async () => {
    const { run, states } = await setup();
    expect(await run("saves-and-loads", "x".repeat(40_000))).toMatchObject({
      kind: "threw",
      error: {
        name: "InvalidInput",
        message:
          "the checkpoint has 40002 bytes of JSON; at most 32768 fit (save where the work stands, and leave the data where it is)",
      },
    });
    expect(states).toEqual([]);
  });

  test("what cannot be saved is told to the handler", async () => {
    const saveState = () => Promise.reject(new Error("another attempt has this run by now"));
    const { run } = await setup({ saveState });
    expect(await run("saves-and-loads", 1)).toMatchObject({
      kind: "threw",
      error: { message: "another attempt has this run by now" },
    });
  });

  test("what an attempt left behind cannot save for the one that has its thread now", async () => {
    const { run, states, lines } = await setup();
    await run("saves-when-over", "first");
    await run("saves-when-over", "second");
    expect(states).toEqual([]);
    expect(lines).toEqual(["saveState was called after its handler had returned"]);
  });

  test("saves that are not awaited are stored in their order", async () => {
    const { run, states } = await setup();
    expect(await run("saves-without-await")).toEqual({ kind: "returned" });
    expect(states).toEqual([0, 1, 2]);
  });

  test("continueLater ends the attempt as such with its state, returned or thrown", async () => {
    const { run } = await setup();
    expect(await run("continues", { row: 7 })).toEqual({ kind: "continue", state: { row: 7 } });
    expect(await run("continues-from-deep")).toEqual({ kind: "continue", state: { row: 1 } });
    expect(await run("continues", "x".repeat(40_000))).toMatchObject({
      kind: "threw",
      error: { message: expect.stringContaining("the checkpoint has 40002 bytes") },
    });
  });

  test("once calls its function once for each key, in this attempt and in later ones", async () => {
    const { run, effects } = await setup();
    expect(await run("once")).toMatchObject({ result: [{ call: 1 }, { call: 1 }, { call: 2 }, 2] });
    expect(await run("once")).toMatchObject({ result: [{ call: 1 }, { call: 1 }, { call: 2 }, 0] });
    expect([...effects.keys()]).toEqual(["a", "b"]);
  });

  test("a function of once that fails is not remembered, and may be tried again", async () => {
    const { run } = await setup();
    expect(await run("once-fails")).toMatchObject({ result: ["no mail server", "sent"] });
  });

  test("different keys may run side by side", async () => {
    const { run } = await setup();
    expect(await run("once-side-by-side")).toMatchObject({ result: ["a", "b"] });
  });

  test.each([
    ["a key whose function runs", "once-inside-itself", null, 'once("a") is running already'],
    ["an empty key", "once-with", { key: "" }, "once: the key is empty (name the effect, "],
    ["a key over 100 characters", "once-with", { key: "k".repeat(101) }, "once: the key has 101 characters"],
    ["no function", "once-without-function", null, 'once("a"): the second argument is no function'],
    [
      "a result over 4 KB",
      "once-with",
      { key: "a", result: "x".repeat(5_000) },
      'the result of once("a") has 5002 bytes of JSON; at most 4096 fit',
    ],
  ])("once refuses %s with its reason", async (_what, job, input, message) => {
    const { run } = await setup();
    expect(await run(job, input)).toMatchObject({
      kind: "threw",
      error: { message: expect.stringContaining(message) },
    });
  });

  test("a hundred thousand reports in a row are passed on as a few, the last among them", async () => {
    const { run, said } = await setup();
    expect(await run("reports-progress")).toEqual({ kind: "returned" });
    expect(said.at(0)).toEqual({ done: 1, total: 100_000 });
    expect(said.at(-1)).toEqual({ done: 100_000, total: 100_000 });
    expect(said.length).toBeLessThan(100);
  });

  test("a report that is held back is passed on while the handler waits", async () => {
    const all = Promise.withResolvers<void>();
    const said: Progress[] = [];
    const progress = (progress: Progress) => {
      if (said.push(progress) === 2) all.resolve();
    };
    const { start } = await setup({ progress });
    const running = start("reports-and-waits");
    await all.promise;
    expect(said).toEqual([{ done: 1 }, { done: 2 }]);
    running.stop("enough");
    await running.ended;
  });

  test("progress that is no number fails the attempt", async () => {
    const { run } = await setup();
    expect(await run("reports-nonsense")).toMatchObject({
      kind: "threw",
      error: { message: "progress: done must be a number from 0 on, and is NaN" },
    });
  });
});
