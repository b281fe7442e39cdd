import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scheduleOfJob } from "../../../lib/core/jobs/job-list.ts";
import { shortIsoOf } from "../../../lib/core/time.ts";
import { cli, ended, JOBS, LONG_STACK, spawnCli, startStack } from "./stack.ts";

// One stack for the file: each test uses a job or a slot of its own.
let stack: Awaited<ReturnType<typeof startStack>>;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack.close());

const belfry = (...args: readonly string[]) => cli(args, { data: stack.data });

/** The passed slots of the daily job, newest first. */
const pastSlot = (back: number): string => {
  const schedule = JOBS[0] && scheduleOfJob(JOBS[0]);
  let slotMs = schedule?.previous(Date.now());
  for (let step = 0; step < back && slotMs !== undefined; step += 1) slotMs = schedule?.previous(slotMs);
  if (slotMs === undefined) throw new Error("no slot");
  return shortIsoOf(slotMs);
};

test("a run of a slot that is waited for ends with its outcome, and a second one is refused as already done", async () => {
  const slot = pastSlot(0);
  const first = await belfry("run", "daily", "--slot", slot, "--wait", "--json");
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.json()).toMatchObject({
    job: "daily",
    slot,
    trigger: "manual",
    state: "succeeded",
    result: { deletedCount: 7 },
    attempts: [{ n: 1, outcome: "succeeded" }],
  });
  const second = await belfry("run", "daily", "--slot", slot, "--wait", "--json");
  expect(second.code).toBe(3);
  expect(second.json()).toMatchObject({
    error: { code: "already_done", message: expect.stringContaining("already done") },
  });
});

test.each([
  ["idle", "skipped", 0],
  ["broken", "dead", 1],
  ["stopped", "cancelled", 1],
  ["unclear", "parked", 3],
])("waiting for a run of %s, which ends %s, exits %d", async (job, state, code) => {
  const answer = await belfry("run", job, "--wait", "--json");
  expect(answer.code).toBe(code);
  expect(answer.json()).toMatchObject({ job, state });
});

test("a run that is not waited for is accepted, and its id can be shown", async () => {
  const accepted = await belfry("run", "daily", "--reason", "asked for", "--json");
  expect(accepted.code).toBe(0);
  const { runId } = accepted.json() as { runId: string };
  const shown = await belfry("show", runId, "--json");
  expect(shown.json()).toMatchObject({ runId, state: "succeeded", reason: "asked for" });
});

test("an answer larger than a pipe takes at once arrives whole although the exit code is not 0", async () => {
  const answer = await belfry("run", "broken", "--wait", "--json");
  expect(answer.code).toBe(1);
  expect(answer.json()).toMatchObject({ error: { name: "TypeError", stack: LONG_STACK } });
});

test("a wait that is over before the run is exits 3, prints the run as it is, and says that it goes on", async () => {
  const slot = pastSlot(3);
  const answer = await belfry("run", "slow", "--slot", slot, "--wait", "--timeout", "1", "--json");
  expect(answer).toMatchObject({ code: 3, stderr: expect.stringContaining("the run goes on") });
  expect(answer.json()).toMatchObject({ job: "slow", state: "queued" });
  const inLine = await belfry("run", "slow", "--json");
  expect(inLine).toMatchObject({ code: 0, stderr: expect.stringMatching(/note: it waits for slow~\d{8}T/) });
  const { runId, ...waiting } = inLine.json() as { runId: string };
  expect(waiting).toMatchObject({ state: "queued", notice: expect.stringContaining("it waits for slow~") });
  expect((await belfry("show", runId, "--json")).json()).toMatchObject({
    reason: expect.stringContaining("waits for slow~"),
  });
  const interrupted = spawnCli(["run", "slow", "--slot", slot, "--wait"], { data: stack.data });
  expect(await ended(interrupted)).toMatchObject({ code: 3, stderr: expect.stringContaining("in flight") });
});

test("Ctrl-C ends the waiting and says that the run goes on", async () => {
  const other = await startStack();
  const child = spawnCli(["run", "slow", "--wait"], { data: other.data });
  const end = ended(child);
  await other.whenAsked(/^\/v1\/runs\//);
  child.kill("SIGINT");
  expect(await end).toMatchObject({
    code: 130,
    stdout: "",
    stderr: expect.stringContaining("the run goes on"),
  });
  expect((await cli(["show", "slow", "--json"], { data: other.data })).json()).toMatchObject({
    state: "queued",
  });
  await other.close();
});

test("a stack that goes away while a run is waited for exits 4, and says that the run goes on", async () => {
  const other = await startStack();
  const end = ended(spawnCli(["run", "slow", "--wait", "--json"], { data: other.data }));
  await other.whenAsked(/^\/v1\/runs\//);
  await other.close();
  const { code, stderr, json } = await end;
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining("the run goes on") });
  expect(json()).toMatchObject({ error: { code: "no_answer" } });
});

test("a dry run says what would run, and starts nothing", async () => {
  const slot = pastSlot(5);
  const answer = await belfry("run", "daily", "--slot", slot, "--dry-run", "--json");
  expect(answer).toMatchObject({ code: 0 });
  expect(answer.json()).toMatchObject({ dryRun: true, job: "daily", slot });
  expect((await belfry("show", "daily", "--slot", slot, "--json")).json()).toMatchObject({
    error: { code: "unknown_run" },
  });
});

test("input is taken from JSON text, a file, or standard input", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "belfry-input-")), "input.json");
  writeFileSync(file, '{"from": "file"}');
  const asked = async (input: string, stdin = "") => {
    const answer = await cli(["run", "daily", "--input", input, "--dry-run", "--json"], {
      data: stack.data,
      stdin,
    });
    return answer.json();
  };
  expect(await asked('{"from": "text"}')).toMatchObject({ input: { from: "text" } });
  expect(await asked(`@${file}`)).toMatchObject({ input: { from: "file" } });
  expect(await asked("-", '{"from": "stdin"}')).toMatchObject({ input: { from: "stdin" } });
});

const tomorrow = () => shortIsoOf(Date.now() + 86_400_000);

test.each([
  ["an unknown job", () => ["run", "dayly"], "unknown_job", /jobs: daily/],
  [
    "a slot in the future",
    () => ["run", "daily", "--slot", tomorrow()],
    "slot_in_future",
    /nearest slots: 2/,
  ],
  [
    "a slot off the schedule",
    () => ["run", "daily", "--slot", "2026-10-08T02:01"],
    "slot_off_schedule",
    /nearest/,
  ],
  ["a slot that is no time", () => ["run", "daily", "--slot", "noon"], "invalid_time", /write it as/],
  ["an unknown run", () => ["show", "daily~20261007T180000Z"], "unknown_run", undefined],
  [
    "a run id with a slot",
    () => ["show", "daily~20261007T180000Z", "--slot", "2026-10-08"],
    "usage",
    undefined,
  ],
  ["a time that is none", () => ["runs", "--since", "may"], "invalid_time", /write it as/],
])("%s exits 2 with one clear line, or the same as JSON", async (_, args, code, hint) => {
  const told = await belfry(...args());
  expect(told).toMatchObject({ code: 2, stdout: "" });
  expect(told.stderr).toMatch(/^error: .+\n(.+\n)?$/);
  if (hint) expect(told.stderr).toMatch(hint);
  const asJson = await belfry(...args(), "--json");
  expect(asJson).toMatchObject({ code: 2, stderr: "" });
  expect(asJson.json()).toMatchObject({ error: { code, message: expect.any(String) } });
});

test.each([
  [["runs", "--since", "may"], /^error: since: cannot read the time 'may'\n/],
  [
    ["backfill", "daily", "--from", "may", "--to", "2026-10-02"],
    /^error: from: cannot read the time 'may'\n/,
  ],
  [
    ["backfill", "daily", "--from", "2026-10-01", "--to", "2026-10-02", "--redo", "dead,lost"],
    /^error: --redo cannot be "lost"\nit takes missed, expired, skipped, dead, cancelled, with commas, or none\n$/,
  ],
  [
    ["retry", "daily~20261007T180000Z", "--dead", "--yes"],
    /^error: --dead is for all dead runs: leave it out/,
  ],
])("%j exits 2, and the error names what was wrong", async (args, message) => {
  expect(await belfry(...args)).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(message),
  });
});

test("list shows each job with its next slot in the job's zone and in UTC", async () => {
  const jobs = (await belfry("list", "--json")).json();
  expect(jobs).toHaveLength(JOBS.length);
  expect(jobs).toMatchObject([
    { name: "daily", timezone: "Asia/Shanghai", nextSlot: expect.stringMatching(/T18:00:00Z$/) },
    ...JOBS.slice(1).map(() => ({})),
  ]);
  const table = await belfry("list");
  expect(table.stdout).toMatch(/^JOB +HEALTH +SCHEDULE +ZONE/);
  expect(table.stdout).toMatch(/daily .*Asia\/Shanghai +\d{4}-\d\d-\d\d 02:00 +\d{4}-\d\d-\d\dT18:00:00Z/);
});

test("runs answers a list, narrowed by job, state and limit, and nothing where none match", async () => {
  await belfry("run", "idle", "--wait");
  const idle = (await belfry("runs", "--job", "idle", "--limit", "1", "--json")).json();
  expect(idle).toMatchObject([{ job: "idle", state: "skipped" }]);
  await belfry("run", "broken", "--wait");
  const dead = (await belfry("runs", "--state", "dead", "--json")).json() as { state: string }[];
  expect(new Set(dead.map(({ state }) => state))).toEqual(new Set(["dead"]));
  const none = await belfry("runs", "--job", "daily", "--state", "missed");
  expect(none).toMatchObject({ code: 0, stdout: "", stderr: "no runs match\n" });
});

test("show prints a dead run with its error, its stack, and times in the job's zone and UTC", async () => {
  await belfry("run", "broken", "--wait");
  const { code, stdout } = await belfry("show", "broken");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^state +dead$/m);
  expect(stdout).toMatch(/^error +TypeError: no such host$/m);
  expect(stdout).toContain("    at fetch (jobs/broken.ts:1:1)");
  expect(stdout).toMatch(/^started +\S+ \S+ Asia\/Shanghai \(\S+Z\)$/m);
});

test("next answers for a job of the stack, in its own zone", async () => {
  const answer = await belfry("next", "daily", "--count", "2", "--json");
  expect(answer.json()).toMatchObject({
    job: "daily",
    timezone: "Asia/Shanghai",
    occurrences: [expect.stringMatching(/T18:00:00Z$/), expect.stringMatching(/T18:00:00Z$/)],
  });
  expect(await belfry("next", "daily", "--timezone", "UTC")).toMatchObject({ code: 2 });
});
