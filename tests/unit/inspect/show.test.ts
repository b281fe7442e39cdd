import { expect, test } from "vitest";
import { makeInspect } from "../../../lib/app/inspect/inspect.ts";
import { runIdOf } from "../../../lib/core/identity.ts";
import { claimLock, joinWaiters, releaseHolder } from "../../../lib/core/runs/lock.ts";
import { markAbsent } from "../../../lib/core/runs/marks.ts";
import { countDuplicate, finish, start, takeOverAndEnd } from "../../../lib/core/runs/transitions.ts";
import type { Table } from "../../../lib/ports/table.ts";
import { jobOf, msOf, NOW, setup, slotOf } from "./setup.ts";

const SLOT = slotOf("report", "2026-10-08T02:00:00Z");
const RUN_ID = "report~20261008T020000Z";

test("a succeeded run shows when it was queued, started and finished, how late, how long, and its result", async () => {
  const { write, claimed, started, succeeded, inspect } = setup();
  await write(claimed(SLOT, { limit: 3 }), started(SLOT), succeeded(SLOT, { deletedCount: 7 }));
  expect(await inspect.run(RUN_ID)).toEqual({
    runId: RUN_ID,
    job: "report",
    slot: "2026-10-08T02:00:00Z",
    trigger: "schedule",
    state: "succeeded",
    attempts: [
      { n: 1, startedAt: "2026-10-08T02:00:02Z", endedAt: "2026-10-08T02:00:05Z", outcome: "succeeded" },
    ],
    queuedAt: "2026-10-08T02:00:01Z",
    startedAt: "2026-10-08T02:00:02Z",
    finishedAt: "2026-10-08T02:00:05Z",
    durationMs: 3_000,
    latenessMs: 2_000,
    duplicates: 0,
    input: { limit: 3 },
    result: { deletedCount: 7 },
  });
});

test("a run without an input of its own shows its job's", async () => {
  const { runTo, inspect } = setup([jobOf({ name: "report", input: { limit: 10 } })]);
  await runTo(SLOT, "succeeded");
  expect(await inspect.run(RUN_ID)).toMatchObject({ input: { limit: 10 } });
});

test("a run of a job with several schedules names each of them whose slot it is", async () => {
  const job = jobOf({ name: "report", schedules: ["0 2 * * *", "0 2 * * thu", "0 3 * * *"] });
  const { runTo, inspect } = setup([job]);
  await runTo(SLOT, "succeeded");
  expect(await inspect.run(RUN_ID)).toMatchObject({ schedules: ["0 2 * * *", "0 2 * * thu"] });
  await runTo(slotOf("report", "2026-10-07T02:00:00Z"), "succeeded");
  expect(await inspect.run("report~20261007T020000Z")).toMatchObject({ schedules: ["0 2 * * *"] });
});

test("a slot that no schedule of the job names any more, and a run by hand, name none", async () => {
  const job = jobOf({ name: "report", schedules: ["0 4 * * *", "0 5 * * *"] });
  const { runTo, inspect } = setup([job]);
  await runTo(SLOT, "succeeded");
  expect(await inspect.run(RUN_ID)).not.toHaveProperty("schedules");
  await runTo({ subject: "report", slotKey: "2026-10-08T04:00:00.000Z-k3x9f2" }, "succeeded");
  expect(await inspect.run("report~20261008T040000Z-k3x9f2")).not.toHaveProperty("schedules");
});

test("a running run shows the attempt that is not over", async () => {
  const { runTo, inspect } = setup();
  await runTo(SLOT, "running");
  expect(await inspect.run(RUN_ID)).toMatchObject({
    state: "running",
    attempts: [{ n: 1, startedAt: "2026-10-08T02:00:02Z", outcome: "running" }],
    finishedAt: null,
    durationMs: null,
  });
});

test("a waiting run shows what went wrong so far", async () => {
  const { runTo, inspect } = setup();
  await runTo(SLOT, "waiting");
  const run = await inspect.run(RUN_ID);
  expect(run).toMatchObject({
    state: "waiting",
    nextAttemptAt: expect.any(String),
    attempts: [{ n: 1, outcome: "failed", error: "no such host" }],
    error: { name: "TypeError", message: "no such host" },
    finishedAt: null,
  });
});

test("a dead run shows its reason, its error, and the stack that lies beside it", async () => {
  const { runTo, aside, inspect } = setup();
  await runTo(SLOT, "dead");
  const error = {
    name: "TypeError",
    message: "no such host",
    stack: "TypeError: no such host\n    at fetch",
  };
  await aside(SLOT, "error-1", error);
  expect(await inspect.run(RUN_ID)).toMatchObject({ state: "dead", reason: "6 attempts failed", error });
});

test("input and result too big for the record are shown, and left out of the list", async () => {
  const { write, claimed, started, aside, inspect } = setup([
    jobOf({ name: "report", input: { limit: 10 } }),
  ]);
  const big = { text: "x".repeat(1_000) };
  await aside(SLOT, "input", big);
  await aside(SLOT, "result-1", big);
  await write({
    ...claimed(SLOT),
    changes: [...claimed(SLOT).changes, { kind: "set", path: "sideInput", value: true }],
  });
  await write(
    started(SLOT),
    finish(
      { occurrence: SLOT, fence: 1 },
      { state: "succeeded", nowMs: msOf("2026-10-08T02:00:05Z"), tries: [], sideResult: true, failed: false },
    ),
  );
  expect(await inspect.run(RUN_ID)).toMatchObject({ input: big, result: big });
  expect(await inspect.listRuns({ subject: "report", limit: 1 })).toMatchObject([
    { input: null, result: null },
  ]);
});

test("a slot that was skipped for another run says for which", async () => {
  const { write, inspect } = setup();
  const mark = { occurrence: SLOT, state: "skipped", nowMs: msOf(NOW), trigger: "schedule" } as const;
  const blockedBy = "report~20261008T010000Z";
  await write(markAbsent({ ...mark, reason: "the run before it is not over", blockedBy }));
  expect(await inspect.run(RUN_ID)).toMatchObject({ state: "skipped", blockedBy });
});

test("a parked run is not finished, and nobody waits for it", async () => {
  const { write, claimed, started, inspect, clock } = setup();
  const lost = {
    occurrence: SLOT,
    token: "other",
    seenFence: 1,
    nowMs: msOf(NOW),
    clockBoundMs: 30_000,
    tries: [],
  };
  await write(
    claimed(SLOT),
    started(SLOT),
    takeOverAndEnd(lost, {
      state: "parked",
      reason: "lost",
      error: { name: "Lost", message: "worker gone" },
    }),
  );
  expect(await inspect.run(RUN_ID, 20_000)).toMatchObject({
    state: "parked",
    reason: "lost",
    finishedAt: null,
  });
  expect(clock.nowMs()).toBe(msOf(NOW));
});

test("one record for many missed slots shows how many, and from when", async () => {
  const { write, inspect } = setup();
  const range = { count: 1_200, fromMs: msOf("2026-08-19T03:00:00Z") };
  const missed = { state: "missed", trigger: "watchdog", reason: "outage" } as const;
  await write(markAbsent({ occurrence: SLOT, nowMs: msOf(NOW), range, ...missed }));
  expect(await inspect.run(RUN_ID)).toMatchObject({
    state: "missed",
    range: { count: 1_200, from: "2026-08-19T03:00:00Z" },
    startedAt: null,
    durationMs: null,
    latenessMs: null,
  });
});

test("deliveries beyond the first are counted", async () => {
  const { runTo, write, inspect } = setup();
  await runTo(SLOT, "succeeded");
  await write(countDuplicate(SLOT, "a", msOf(NOW)), countDuplicate(SLOT, "b", msOf(NOW)));
  expect(await inspect.run(RUN_ID)).toMatchObject({ duplicates: 2 });
});

const lockClaim = (occurrence = SLOT) =>
  claimLock({
    contender: { occurrence, epoch: 1, class: 0 },
    token: "dispatcher",
    nowMs: msOf("2026-10-08T02:00:01Z"),
    max: 1,
    newestOnly: true,
  });

test("a claimed run of a locked job is queued before it has a record, with the deliveries counted so far", async () => {
  const { write, inspect } = setup([jobOf({ name: "report", overlap: "skip" })]);
  await write(lockClaim(), countDuplicate(SLOT, "a", msOf(NOW)));
  expect(await inspect.run(RUN_ID)).toMatchObject({
    state: "queued",
    queuedAt: "2026-10-08T02:00:01Z",
    trigger: "schedule",
    duplicates: 1,
    attempts: [],
  });
});

test("what made a claimed run is told by the class of its entry in the lock", async () => {
  for (const [itsClass, trigger] of [
    [0, "schedule"],
    [1, "manual"],
    [2, "backfill"],
  ] as const) {
    const { write, inspect } = setup([jobOf({ name: "report", overlap: "skip" })]);
    const contender = { occurrence: SLOT, epoch: 1, class: itsClass };
    await write(claimLock({ contender, token: "any", nowMs: msOf(NOW), max: 1, newestOnly: false }));
    expect(await inspect.run(RUN_ID)).toMatchObject({ trigger });
  }
});

test("a run that waits for the lock is queued, and names the run it waits for", async () => {
  const { write, inspect } = setup([jobOf({ name: "report", overlap: "skip" })]);
  const later = slotOf("report", "2026-10-08T03:00:00Z");
  await write(lockClaim(), joinWaiters({ occurrence: later, epoch: 1, class: 0 }));
  expect(await inspect.run(runIdOf(later))).toMatchObject({ state: "queued", reason: `waits for ${RUN_ID}` });
});

test("a run that starts, ends and leaves the lock between two reads is still found", async () => {
  const { table, jobs, clock, timers, write, succeeded } = setup([
    jobOf({ name: "report", overlap: "skip" }),
  ]);
  await write(lockClaim());
  const meanwhile = [
    start({
      occurrence: SLOT,
      epoch: 1,
      token: "worker",
      nowMs: msOf("2026-10-08T02:00:02Z"),
      leaseUntilMs: msOf("2026-10-08T02:01:02Z"),
      locked: true,
      trigger: "schedule",
      queuedAtMs: msOf("2026-10-08T02:00:01Z"),
    }),
    succeeded(SLOT),
    releaseHolder(SLOT, 1),
  ];
  const interrupted: Table = {
    ...table,
    get: async (key, options) => {
      if (key.sk === "L") await write(...meanwhile.splice(0));
      return table.get(key, options);
    },
  };
  const inspect = makeInspect({ table: interrupted, jobs, clock, timers });
  expect(await inspect.run(RUN_ID)).toMatchObject({ state: "succeeded" });
});

test("an occurrence that was only counted is no run", async () => {
  const { write, inspect } = setup();
  await write(countDuplicate(SLOT, "a", msOf(NOW)));
  await expect(inspect.run(RUN_ID)).rejects.toMatchObject({ code: "unknown_run" });
});

test("text that is no run id is refused as an unknown run", async () => {
  const { inspect } = setup();
  await expect(inspect.run("report~yesterday")).rejects.toMatchObject({
    code: "unknown_run",
    field: "run",
    hint: expect.stringContaining("belfry runs"),
  });
});

test("a renamed job keeps its history: its runs are found under either name", async () => {
  const { runTo, inspect } = setup([jobOf({ name: "weekly", subject: "report" })]);
  await runTo(SLOT, "succeeded");
  expect(await inspect.run(RUN_ID)).toMatchObject({ job: "weekly", runId: RUN_ID });
  expect(await inspect.run("weekly~20261008T020000Z")).toMatchObject({ runId: RUN_ID });
  expect(await inspect.lastRun("report")).toMatchObject({ runId: RUN_ID });
});

test("the last run of a job is the one with the newest slot, with what lies beside its record", async () => {
  const { runTo, aside, inspect } = setup();
  const newer = slotOf("report", "2026-10-08T03:00:00Z");
  await runTo(newer, "dead");
  await aside(newer, "error-1", { name: "TypeError", message: "no such host", stack: "the stack" });
  await runTo(SLOT, "succeeded");
  expect(await inspect.lastRun("report")).toMatchObject({ state: "dead", error: { stack: "the stack" } });
});

test("a job that never ran has no last run, and an unknown job names those there are", async () => {
  const { inspect } = setup();
  await expect(inspect.lastRun("report")).rejects.toMatchObject({ code: "unknown_run" });
  await expect(inspect.lastRun("reprot")).rejects.toMatchObject({
    code: "unknown_job",
    hint: "jobs: report",
  });
});

test("waiting answers as soon as the run is over", async () => {
  const { runTo, write, succeeded, inspect, timers, clock, table, jobs } = setup();
  await runTo(SLOT, "running");
  let polls = 0;
  const finishing = {
    after: (waitMs: number, callback: () => void) => {
      polls += 1;
      return timers.after(
        waitMs,
        () => void (polls === 3 ? write(succeeded(SLOT)).then(callback) : callback()),
      );
    },
  };
  const waiting = makeInspect({ table, jobs, clock, timers: finishing });
  expect(await waiting.run(RUN_ID, 20_000)).toMatchObject({ state: "succeeded" });
  expect(clock.nowMs() - msOf(NOW)).toBeLessThan(1_000);
  expect(await inspect.run(RUN_ID, 20_000)).toMatchObject({ state: "succeeded" });
});

test("waiting ends when its time is over, with the run as it is", async () => {
  const { runTo, inspect, clock } = setup();
  await runTo(SLOT, "running");
  expect(await inspect.run(RUN_ID, 20_000)).toMatchObject({ state: "running" });
  expect(clock.nowMs() - msOf(NOW)).toBe(20_000);
});
