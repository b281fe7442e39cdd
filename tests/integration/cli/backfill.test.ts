import { afterAll, beforeAll, expect, test } from "vitest";
import { cli, ended, spawnCli, startStack } from "./stack.ts";

// One stack for the file: each test uses a job, or a month, of its own.
let stack: Awaited<ReturnType<typeof startStack>>;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack.close());

const belfry = (...args: readonly string[]) => cli(args, { data: stack.data });
const monthOf2026 = (month: string) => ["--from", `2026-${month}-01`, "--to", `2026-${month}-11`];

test("a dry run says what would run in words, and starts nothing", async () => {
  const answer = await belfry("backfill", "daily", ...monthOf2026("01"), "--dry-run");
  expect(answer).toMatchObject({ code: 0, stderr: "" });
  expect(answer.stdout.split("\n")).toEqual([
    "daily has 10 slots from 2026-01-01 02:00 Asia/Shanghai (2025-12-31T18:00:00Z) to 2026-01-10 02:00 Asia/Shanghai (2026-01-09T18:00:00Z)",
    "  10  without a record: run",
    "  10 of them passed before the 90 days that records are kept: what ran then runs again",
    "10 slots would run, one at a time",
    "",
  ]);
  const json = await belfry("backfill", "daily", ...monthOf2026("01"), "--dry-run", "--json");
  expect(json.json()).toMatchObject({ dryRun: true, job: "daily", slots: 10, toRun: 10, recorded: {} });
  expect((await belfry("runs", "--job", "daily", "--json")).json()).toEqual([]);
});

test("a backfill shows its plan and its bar on stderr, and its end on stdout", async () => {
  const answer = await belfry("backfill", "daily", ...monthOf2026("02"), "--yes");
  expect(answer).toMatchObject({
    code: 0,
    stdout: "backfill of daily (2026-01-31T16:00:00Z to 2026-02-10T16:00:00Z): done, 10 succeeded\n",
  });
  expect(answer.stderr).toContain("10 slots would run, one at a time");
  expect(answer.stderr).toContain("[====================] 100 %  10 of 10, 10 succeeded");
  const again = await belfry("backfill", "daily", ...monthOf2026("02"), "--yes");
  expect(again).toMatchObject({ code: 0, stdout: "" });
  expect(again.stderr).toContain("10  succeeded: left alone");
});

test("runs that die make it exit 1, are told how to run again, and run again with --redo", async () => {
  const answer = await belfry("backfill", "broken", ...monthOf2026("03"), "--yes", "--json");
  expect(answer.code).toBe(1);
  expect(answer.json()).toMatchObject({ job: "broken", state: "done", asked: 10, ended: { dead: 10 } });
  const plan = await belfry("backfill", "broken", ...monthOf2026("03"), "--dry-run");
  expect(plan.stdout).toContain("10  dead: left alone; --redo dead runs them again");
  const redo = await belfry("backfill", "broken", ...monthOf2026("03"), "--redo", "dead", "--dry-run");
  expect(redo.stdout).toContain("10  dead: run again");
});

test("without a terminal and without --yes nothing is begun", async () => {
  const answer = await belfry("backfill", "daily", ...monthOf2026("04"), "--json");
  expect(answer.code).toBe(2);
  expect(answer.json()).toMatchObject({ error: { code: "not_confirmed", field: "yes" } });
});

test.each([
  [["backfill"], "job"],
  [["backfill", "daily", "--from", "2026-01-01"], "to"],
  [["backfill", "daily", "--from", "2026-02-01", "--to", "2026-01-01"], "from"],
  [["backfill", "daily", ...monthOf2026("01"), "--parallel", "2", "--dry-run"], "parallel"],
  [["backfill", "daily", ...monthOf2026("01"), "--redo", "running", "--dry-run"], "redo"],
  [["backfill", "nothing-of-that-name", ...monthOf2026("01")], "job"],
  [["retry", "--dead", "--stop"], "job"],
  [["retry", "daily~20261007T180000Z", "--parallel", "2"], "parallel"],
])("%j is wrong usage, and names the field", async (args, field) => {
  const answer = await belfry(...args, "--json");
  expect(answer.code).toBe(2);
  expect(answer.json()).toMatchObject({ error: { field } });
});

test("Ctrl-C leaves it going on and says so, the same command takes it up, and --stop ends it", async () => {
  const range = monthOf2026("05");
  const child = spawnCli(["backfill", "slow", ...range, "--yes"], { data: stack.data });
  const whole = ended(child);
  // First whether it goes on already; then how far it is.
  await stack.whenAsked(/slow\/series\/backfill$/, 2);
  child.kill("SIGINT");
  const answer = await whole;
  expect(answer).toMatchObject({ code: 130, stdout: "" });
  expect(answer.stderr).toContain('"belfry backfill slow --stop" ends it');
  const again = await belfry("backfill", "slow", ...range, "--detach", "--json");
  expect(again).toMatchObject({ code: 0 });
  expect(again.json()).toMatchObject({ state: "open", asked: 1, outstanding: [{ state: "queued" }] });
  const other = await belfry("backfill", "slow", ...monthOf2026("06"), "--yes", "--json");
  expect(other.code).toBe(3);
  expect(other.json()).toMatchObject({ error: { code: "in_flight" } });
  const listed = await belfry("backfill", "--list", "--json");
  expect(listed.json()).toContainEqual(expect.objectContaining({ job: "slow", state: "open" }));
  const stopped = await belfry("backfill", "slow", "--stop");
  expect(stopped).toMatchObject({ code: 0, stdout: expect.stringContaining("stopping (stopped by hand)") });
  expect((await belfry("backfill", "--list")).stdout).toMatch(/slow +backfill +stopping/);
});

test("a backfill that waits for a person says which run, and exits 3", async () => {
  const answer = await belfry("backfill", "unclear", ...monthOf2026("07"), "--yes");
  expect(answer.code).toBe(3);
  expect(answer.stderr).toContain("unclear~20260630T180000Z is parked");
});

test("all dead runs of a job are retried as one series", async () => {
  await belfry("backfill", "broken", ...monthOf2026("08"), "--yes");
  const answer = await belfry("retry", "--dead", "--job", "broken", "--yes", "--json");
  expect(answer.code).toBe(0);
  expect(answer.json()).toMatchObject([{ job: "broken", kind: "retry", redo: ["dead"], parallel: 1 }]);
  const listed = await belfry("backfill", "--list", "--json");
  // Each died again, and none was retried twice.
  expect(listed.json()).toContainEqual(
    expect.objectContaining({
      job: "broken",
      kind: "retry",
      state: "done",
      ended: { dead: expect.any(Number) },
    }),
  );
  const stopped = await belfry("retry", "--dead", "--job", "broken", "--stop");
  expect(stopped).toMatchObject({ code: 3, stderr: "error: no retry of broken goes on\n" });
});
