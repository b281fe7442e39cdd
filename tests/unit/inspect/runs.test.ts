import { expect, test } from "vitest";
import { LOOKED_AT } from "../../../lib/app/inspect/list-runs.ts";
import { claimLock } from "../../../lib/core/runs/lock.ts";
import { markAbsent } from "../../../lib/core/runs/marks.ts";
import type { RunView } from "../../../lib/core/runs/run.ts";
import { countDuplicate } from "../../../lib/core/runs/transitions.ts";
import { hoursBefore, jobOf, msOf, NOW, setup, slotOf } from "./setup.ts";

const idsOf = (runs: readonly RunView[]): readonly string[] => runs.map(({ runId }) => runId);

const TWO_JOBS = [jobOf({ name: "alpha" }), jobOf({ name: "beta" })];

test("the runs of all jobs come out by slot, newest first", async () => {
  const { runTo, inspect } = setup(TWO_JOBS);
  await runTo(slotOf("alpha", "2026-10-08T01:00:00Z"), "succeeded");
  await runTo(slotOf("beta", "2026-10-08T02:00:00Z"), "dead");
  await runTo(slotOf("alpha", "2026-10-08T03:00:00Z"), "queued");
  expect(idsOf(await inspect.listRuns({ limit: 20 }))).toEqual([
    "alpha~20261008T030000Z",
    "beta~20261008T020000Z",
    "alpha~20261008T010000Z",
  ]);
});

test("a limit keeps the newest of all jobs together", async () => {
  const { runTo, inspect } = setup(TWO_JOBS);
  for (const hour of ["01", "03"]) await runTo(slotOf("alpha", `2026-10-08T${hour}:00:00Z`), "succeeded");
  for (const hour of ["02", "04"]) await runTo(slotOf("beta", `2026-10-08T${hour}:00:00Z`), "succeeded");
  expect(idsOf(await inspect.listRuns({ limit: 2 }))).toEqual([
    "beta~20261008T040000Z",
    "alpha~20261008T030000Z",
  ]);
});

test("since includes the slot it names and nothing before it", async () => {
  const { runTo, inspect } = setup();
  for (const hour of ["01", "02", "03"]) await runTo(slotOf("report", `2026-10-08T${hour}:00:00Z`), "dead");
  const sinceMs = msOf("2026-10-08T02:00:00Z");
  const expected = ["report~20261008T030000Z", "report~20261008T020000Z"];
  expect(idsOf(await inspect.listRuns({ sinceMs, limit: 20 }))).toEqual(expected);
  expect(idsOf(await inspect.listRuns({ sinceMs, state: "dead", limit: 20 }))).toEqual(expected);
});

test("dead runs are found by their end, over months, newest end first, whatever the job", async () => {
  const { runTo, inspect } = setup(TWO_JOBS);
  await runTo(slotOf("alpha", "2026-08-31T23:00:00Z"), "dead");
  await runTo(slotOf("beta", "2026-09-30T23:00:00Z"), "dead");
  await runTo(slotOf("alpha", "2026-10-08T02:00:00Z"), "dead");
  await runTo(slotOf("beta", "2026-10-08T03:00:00Z"), "succeeded");
  expect(idsOf(await inspect.listRuns({ state: "dead", limit: 20 }))).toEqual([
    "alpha~20261008T020000Z",
    "beta~20260930T230000Z",
    "alpha~20260831T230000Z",
  ]);
  expect(idsOf(await inspect.listRuns({ state: "dead", subject: "beta", limit: 20 }))).toEqual([
    "beta~20260930T230000Z",
  ]);
});

test("a run that a faster clock ended in the month to come is found", async () => {
  const { runTo, advance, inspect, clock } = setup();
  advance(msOf("2026-10-31T23:59:59Z") - clock.nowMs());
  await runTo(slotOf("report", "2026-10-31T23:59:58Z"), "dead");
  expect(await inspect.listRuns({ state: "dead", limit: 20 })).toHaveLength(1);
});

test("a state that the index holds is told apart from the other states in it", async () => {
  const { runTo, write, inspect } = setup();
  await runTo(slotOf("report", "2026-10-08T02:00:00Z"), "dead");
  const occurrence = slotOf("report", "2026-10-08T03:00:00Z");
  await write(
    markAbsent({ occurrence, state: "missed", trigger: "watchdog", nowMs: msOf(NOW), reason: "outage" }),
  );
  expect(idsOf(await inspect.listRuns({ state: "missed", limit: 20 }))).toEqual(["report~20261008T030000Z"]);
});

test("a removed job's dead runs are still listed, under the name they are kept by", async () => {
  const { runTo, inspect } = setup();
  await runTo(slotOf("removed", "2026-10-08T02:00:00Z"), "dead");
  expect(await inspect.listRuns({ state: "dead", limit: 20 })).toMatchObject([{ job: "removed" }]);
});

test("more runs than a page are listed without a gap or a repeat", async () => {
  const { runTo, inspect } = setup();
  const slots = Array.from({ length: 205 }, (_, back) =>
    slotOf("report", hoursBefore("2026-10-08T12:00:00Z", back)),
  );
  for (const slot of slots) await runTo(slot, "dead");
  for (const wanted of [{}, { state: "dead" } as const]) {
    const ids = idsOf(await inspect.listRuns({ ...wanted, limit: 1_000 }));
    expect(ids).toHaveLength(205);
    expect(new Set(ids).size).toBe(205);
    expect(ids).toEqual([...ids].sort().reverse());
  }
});

test("a state that no index holds is looked for behind newer runs of other states", async () => {
  const { runTo, inspect } = setup();
  await runTo(slotOf("report", hoursBefore("2026-10-08T12:00:00Z", 150)), "waiting");
  for (let back = 0; back < 150; back += 1)
    await runTo(slotOf("report", hoursBefore("2026-10-08T12:00:00Z", back)), "succeeded");
  expect(await inspect.listRuns({ state: "waiting", limit: 20 })).toHaveLength(1);
});

test("without since, a state that no index holds is looked for among the newest thousand; with it, further", async () => {
  const { runTo, write, claimed, inspect } = setup();
  const oldest = slotOf("report", hoursBefore("2026-10-08T12:00:00Z", LOOKED_AT));
  await runTo(oldest, "running");
  for (let back = 0; back < LOOKED_AT; back += 1)
    await write(claimed(slotOf("report", hoursBefore("2026-10-08T12:00:00Z", back))));
  expect(await inspect.listRuns({ state: "running", limit: 20 })).toEqual([]);
  const sinceMs = msOf("2026-01-01T00:00:00Z");
  expect(await inspect.listRuns({ state: "running", sinceMs, limit: 20 })).toHaveLength(1);
});

const lockClaim = (iso: string) =>
  claimLock({
    contender: { occurrence: slotOf("report", iso), epoch: 1, class: 0 },
    token: "dispatcher",
    nowMs: msOf(NOW),
    max: 1,
    newestOnly: true,
  });

test("a claimed run of a locked job is listed as queued, also when queued runs are asked for", async () => {
  const { runTo, write, inspect } = setup([jobOf({ name: "report", overlap: "skip" })]);
  await runTo(slotOf("report", "2026-10-08T02:00:00Z"), "succeeded");
  await write(lockClaim("2026-10-08T03:00:00Z"));
  expect(await inspect.listRuns({ limit: 20 })).toMatchObject([
    { runId: "report~20261008T030000Z", state: "queued" },
    { runId: "report~20261008T020000Z", state: "succeeded" },
  ]);
  expect(idsOf(await inspect.listRuns({ state: "queued", limit: 20 }))).toEqual(["report~20261008T030000Z"]);
  expect(await inspect.listRuns({ state: "running", limit: 20 })).toEqual([]);
  expect(await inspect.listRuns({ sinceMs: msOf("2026-10-08T03:00:00.001Z"), limit: 20 })).toEqual([]);
});

test("a run that holds its lock and has a record is listed once, by its record", async () => {
  const { runTo, write, inspect } = setup([jobOf({ name: "report", overlap: "skip" })]);
  await write(lockClaim("2026-10-08T03:00:00Z"));
  await runTo(slotOf("report", "2026-10-08T03:00:00Z"), "running");
  expect(await inspect.listRuns({ limit: 20 })).toMatchObject([{ state: "running" }]);
  expect(await inspect.listRuns({ state: "queued", limit: 20 })).toEqual([]);
});

test("an occurrence that was only counted does not take a place in the list", async () => {
  const { runTo, write, inspect } = setup();
  await runTo(slotOf("report", "2026-10-08T02:00:00Z"), "succeeded");
  await write(countDuplicate(slotOf("report", "2026-10-08T03:00:00Z"), "a", msOf(NOW)));
  expect(idsOf(await inspect.listRuns({ limit: 1 }))).toEqual(["report~20261008T020000Z"]);
});
