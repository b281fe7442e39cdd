import { defineJob, PermanentError } from "belfry";
import { type KillPoint, testJob } from "belfry/testing";
import { expect, test } from "vitest";

const SLOT = "2026-10-08T02:00:00Z";
const nightly = { schedule: "0 2 * * *" };

test("a job runs at its slot, and its run is shown as the command line shows it", async () => {
  const job = defineJob({ ...nightly, handler: ({ slot, job: name }) => ({ name, at: slot }) });
  const run = await testJob(job, { name: "nightly", slot: SLOT }).run();
  expect(run).toMatchObject({
    runId: "nightly~20261008T020000Z",
    state: "succeeded",
    trigger: "schedule",
    slot: SLOT,
    attempts: [{ n: 1, outcome: "returned" }],
    result: { name: "nightly", at: "2026-10-08T02:00:00.000Z" },
    latenessMs: 0,
    duplicates: 0,
  });
});

test("without a slot it is the last one up to the clock, or the first from 2030 on", async () => {
  const job = defineJob({ ...nightly, handler: () => undefined });
  expect(await testJob(job, { clock: "2026-10-08T07:30:00Z" }).run()).toMatchObject({
    slot: SLOT,
    latenessMs: 19_800_000,
  });
  expect((await testJob(job).run()).slot).toBe("2030-01-01T02:00:00Z");
});

test("a job without a schedule, and an input of its own, are run by hand", async () => {
  const job = defineJob({ input: { days: 30 }, handler: ({ input }) => input.days });
  expect(await testJob(job).run()).toMatchObject({ trigger: "manual", result: 30 });
  expect(await testJob(job, { input: { days: 7 } }).run()).toMatchObject({ trigger: "manual", result: 7 });
  const scheduled = defineJob({ ...nightly, handler: ({ input }) => input });
  expect(await testJob(scheduled, { slot: SLOT, input: 1 }).run()).toMatchObject({ slot: SLOT, result: 1 });
});

test("a job that fails is tried again by its waits, which pass at once", async () => {
  const job = defineJob({
    ...nightly,
    retry: { ladder: ["1 minute", "1 hour"] },
    handler: ({ attempt }) => {
      if (attempt < 3) throw new Error(`attempt ${attempt} fails`);
      return attempt;
    },
  });
  const tested = testJob(job, { slot: SLOT });
  expect(await tested.run()).toMatchObject({
    state: "succeeded",
    result: 3,
    attempts: [{ error: "attempt 1 fails" }, { error: "attempt 2 fails" }, { outcome: "returned" }],
  });
  expect(tested.now()).toEqual(new Date("2026-10-08T03:01:00Z"));
});

test("a job that cannot be helped ends dead with its error", async () => {
  const job = defineJob({
    ...nightly,
    handler: () => {
      throw new PermanentError("the account is closed");
    },
  });
  expect(await testJob(job, { slot: SLOT }).run()).toMatchObject({
    state: "dead",
    error: { name: "PermanentError", message: "the account is closed" },
  });
});

test("delivered twice, a job runs once, and the duplicates are counted", async () => {
  let calls = 0;
  const job = defineJob({ ...nightly, handler: () => ++calls });
  const tested = testJob(job, { slot: SLOT });
  expect(await tested.deliverTwice()).toMatchObject({ state: "succeeded", result: 1, duplicates: 1 });
  expect(await tested.deliverTwice()).toMatchObject({ state: "succeeded", result: 1, duplicates: 3 });
  expect(await tested.run()).toMatchObject({ result: 1 });
  expect(calls).toBe(1);
});

test.each<[KillPoint, number, string]>([
  ["before-handler", 1, "lost returned"],
  ["before-record", 2, "lost returned"],
  ["after-record", 1, "returned"],
])("killed %s, the handler is called %i times in all", async (point, times, outcomes) => {
  let calls = 0;
  const tested = testJob(defineJob({ ...nightly, handler: () => void calls++ }), { slot: SLOT });
  tested.killHere(point);
  const run = await tested.run();
  expect(run.state).toBe("succeeded");
  expect(run.attempts.map(({ outcome }) => outcome).join(" ")).toBe(outcomes);
  expect(calls).toBe(times);
});

test("killed after an effect and before its record, the effect is repeated; after its record, it is not", async () => {
  const sent: string[] = [];
  const job = defineJob({
    ...nightly,
    handler: async ({ once, idempotencyKey }) => once("mail", () => sent.push(idempotencyKey("mail"))),
  });
  const repeats = testJob(job, { name: "mails", slot: SLOT });
  repeats.killHere("after-effect");
  expect(await repeats.run()).toMatchObject({ state: "succeeded" });
  // The receiver can tell the repeat by its key.
  expect(sent).toEqual(["mails~20261008T020000Z:mail", "mails~20261008T020000Z:mail"]);
  sent.length = 0;
  const remembers = testJob(job, { name: "mails", slot: SLOT });
  remembers.killHere("before-record");
  expect(await remembers.run()).toMatchObject({ state: "succeeded", result: 1 });
  expect(sent).toHaveLength(1);
});

test("killed after a checkpoint, the next attempt goes on from there", async () => {
  const done: number[] = [];
  const job = defineJob({
    ...nightly,
    handler: async ({ checkpoint, progress }) => {
      for (let row = (await checkpoint.load<number>()) ?? 0; row < 3; row++) {
        done.push(row);
        progress(row + 1, 3);
        await checkpoint.save(row + 1);
      }
    },
  });
  const tested = testJob(job, { slot: SLOT });
  tested.killHere("after-checkpoint");
  expect(await tested.run()).toMatchObject({ state: "succeeded", progress: { done: 3, total: 3 } });
  expect(done).toEqual([0, 1, 2]);
});

test("each call kills one more worker, at the time told, and the kills are counted", async () => {
  const calls: number[] = [];
  const job = defineJob({
    ...nightly,
    handler: async ({ checkpoint, continueLater }) => {
      const row = (await checkpoint.load<number>()) ?? 0;
      calls.push(row);
      return row < 4 ? continueLater(row + 1) : row;
    },
  });
  const tested = testJob(job, { slot: SLOT });
  tested.killHere("before-record", 2);
  tested.killHere("before-record", 4);
  expect(tested.kills()).toBe(0);
  expect(await tested.run()).toMatchObject({ state: "succeeded", result: 4, pieces: 5 });
  expect(calls).toEqual([0, 1, 1, 2, 2, 3, 4]);
  expect(tested.kills()).toBe(2);
});

test("a kill at a point that no worker comes to is none", async () => {
  const tested = testJob(defineJob({ ...nightly, handler: () => 1 }), { slot: SLOT });
  tested.killHere("after-checkpoint");
  await tested.run();
  expect(tested.kills()).toBe(0);
});

test("a point that there is not, and a zeroth time, are refused", () => {
  const tested = testJob(defineJob({ ...nightly, handler: () => 1 }), { slot: SLOT });
  expect(() => tested.killHere("somewhere" as never)).toThrow(/"somewhere" is no place.*before-handler, /);
  expect(() => tested.killHere("before-record", 0)).toThrow("0th time");
});

test.each([
  ["small", { upTo: 7 }],
  ["too big for its record", { rows: Array.from({ length: 200 }, (_, row) => row) }],
  ["of a shape that no record takes", { "": [], deep: { "": null } }],
  ["null", null],
])("a handler finds the success before it, with a result that is %s", async (_what, result) => {
  const job = defineJob({ ...nightly, handler: async ({ previous }) => (await previous()) ?? "none" });
  const run = await testJob(job, { slot: SLOT, previous: { result } }).run();
  expect(run.result).toMatchObject({ slot: "2026-10-07T02:00:00.000Z", result });
  expect(await testJob(job, { slot: SLOT }).run()).toMatchObject({ result: "none" });
});

test("a success before the first slot of all is refused", () => {
  const job = defineJob({ handler: () => 1 });
  expect(() => testJob(job, { previous: {} })).toThrow("no slot before the one that is tried");
});

test("work in pieces is played to its end", async () => {
  const job = defineJob({
    ...nightly,
    handler: async ({ checkpoint, continueLater }) => {
      const row = (await checkpoint.load<number>()) ?? 0;
      return row < 4 ? continueLater(row + 1) : row;
    },
  });
  expect(await testJob(job, { slot: SLOT }).run()).toMatchObject({
    state: "succeeded",
    result: 4,
    pieces: 5,
  });
});

test("a lost run that must not repeat is parked for a person", async () => {
  const tested = testJob(defineJob({ ...nightly, onUnknown: "park", handler: () => 1 }), { slot: SLOT });
  tested.killHere("before-record");
  expect(await tested.run()).toMatchObject({ state: "parked" });
});

test("the clock stands while a handler runs, and moves by hand: a hang is ended by its timeout", async () => {
  const job = defineJob({
    ...nightly,
    timeout: "10 minutes",
    retry: { retries: 0 },
    handler: ({ signal, remaining, log }) => {
      log.info("begun", { left: remaining() });
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  const tested = testJob(job, { slot: SLOT });
  const ended = tested.run();
  expect(await tested.advance("9 minutes")).toMatchObject({ state: "running" });
  await tested.advance("2 minutes");
  expect(await ended).toMatchObject({ state: "dead", attempts: [{ outcome: "timed-out" }] });
  expect(tested.lines).toEqual([
    { level: "info", message: "begun", fields: { left: 600_000, runId: "job~20261008T020000Z" } },
  ]);
});

test("a handler that does not obey its signal is left behind after a second", async () => {
  const job = defineJob({ ...nightly, retry: { retries: 0 }, handler: () => new Promise(() => undefined) });
  const tested = testJob(job, { slot: SLOT });
  const ended = tested.run();
  await tested.advance("5 minutes");
  await tested.advance("1 second");
  expect(await ended).toMatchObject({ state: "dead", attempts: [{ outcome: "timed-out" }] });
});

test("a snoozed run waits as long as it said, by the clock of the test", async () => {
  const times: string[] = [];
  const tested = testJob(
    defineJob({
      ...nightly,
      handler: ({ snooze }) => {
        times.push(tested.now().toISOString());
        return times.length < 2 ? snooze("10 minutes") : undefined;
      },
    }),
    { slot: SLOT },
  );
  await tested.run();
  expect(times).toEqual(["2026-10-08T02:00:00.000Z", "2026-10-08T02:10:00.000Z"]);
});

test("the handler finds its variables in the environment, and they are gone afterwards", async () => {
  const job = defineJob({
    ...nightly,
    environment: { TESTED_TABLE: "of the deployment" },
    handler: () => process.env["TESTED_TABLE"] ?? "none",
  });
  const given = testJob(job, { slot: SLOT, environment: { TESTED_TABLE: "test" } });
  expect((await given.run()).result).toBe("test");
  expect(process.env).not.toHaveProperty("TESTED_TABLE");
  expect((await testJob(job, { slot: SLOT }).run()).result).toBe("none");
});

test("a job of other stages is tried as if it were there", async () => {
  const job = defineJob({ ...nightly, stages: ["prod"], handler: () => 1 });
  expect(await testJob(job, { slot: SLOT }).run()).toMatchObject({ state: "succeeded" });
});

test("an input that the schema refuses ends the run dead", async () => {
  const schema = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: () => ({ issues: [{ message: "must be positive", path: ["days"] }] }),
    },
  } as const;
  const job = defineJob({ schema, handler: () => 1 });
  expect(await testJob(job, { input: { days: -1 } }).run()).toMatchObject({
    state: "dead",
    error: { message: "input.days: must be positive" },
  });
});

test.each([
  [
    "a slot that the schedule does not name",
    { slot: "2026-10-08T03:00:00Z" },
    "job has no slot 2026-10-08T03:00:00Z",
  ],
  [
    "a text that is no instant",
    { slot: "tomorrow" },
    "slot tomorrow is no instant: write 2026-10-08T02:00:00Z",
  ],
  [
    "a slot that the schedule does not name",
    { slot: "2026-10-08T02:01:00Z" },
    "job has no slot 2026-10-08T02:01:00Z; the nearest: 2026-10-08T02:00:00Z, 2026-10-09T02:00:00Z",
  ],
  ["a clock before the slot", { slot: SLOT, clock: "2026-10-08T01:00:00Z" }, "the clock is before the slot"],
])("%s is refused with its reason", (_what, options, message) => {
  expect(() => testJob(defineJob({ ...nightly, handler: () => 1 }), options)).toThrow(message);
});

test("all faults of a job are told at once", () => {
  const job = defineJob({ schedule: "not cron", timeout: "1 week", handler: () => 1 });
  expect(() => testJob(job)).toThrow(/timeout: [\s\S]*schedule: |schedule: [\s\S]*timeout: /);
});
