import { afterAll, beforeAll, expect, test } from "vitest";
import { cli, startStack } from "./stack.ts";

// One stack for the file: each test uses a job of its own.
let stack: Awaited<ReturnType<typeof startStack>>;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack.close());

const belfry = (...args: readonly string[]) => cli(args, { data: stack.data });

const runOf = async (job: string): Promise<string> => {
  const answer = await belfry("run", job, "--wait", "--json");
  return (answer.json() as { readonly runId: string }).runId;
};

test("a dead run is retried under its id", async () => {
  const runId = await runOf("broken");
  const retried = await belfry("retry", runId, "--json");
  expect(retried).toMatchObject({ code: 0, stderr: "" });
  expect(retried.json()).toMatchObject([{ runId }]);
});

test("a dismissed run leaves the list of the dead and stays in the history", async () => {
  const runId = await runOf("broken");
  expect((await belfry("dismiss", runId)).code).toBe(0);
  const dead = await belfry("runs", "--state", "dead", "--json");
  expect(dead.json()).not.toContainEqual(expect.objectContaining({ runId }));
  expect((await belfry("show", runId, "--json")).json()).toMatchObject({ state: "dead" });
  expect((await belfry("dismiss", runId)).code).toBe(3);
});

test("a run that succeeded is refused, and the others of the command are retried all the same", async () => {
  const done = await runOf("daily");
  const dead = await runOf("broken");
  const answer = await belfry("retry", done, dead, "--json");
  expect(answer.code).toBe(3);
  expect(answer.json()).toMatchObject([
    { runId: done, error: { code: "already_done" } },
    { runId: dead, state: expect.any(String) },
  ]);
});

test("an id that is no run exits 2 and says so", async () => {
  const answer = await belfry("retry", "daily~nonsense");
  expect(answer).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("is no run id") });
});

test("retry without a run and without --dead, and with both, is wrong usage", async () => {
  expect((await belfry("retry")).code).toBe(2);
  expect((await belfry("retry", "--dead", "daily~20261007T180000Z")).code).toBe(2);
  expect((await belfry("retry", "daily~20261007T180000Z", "--job", "daily")).code).toBe(2);
});

test("what cannot be undone does nothing without a terminal and without --yes", async () => {
  const dead = await runOf("broken");
  const all = await belfry("retry", "--dead", "--json");
  expect(all.code).toBe(2);
  expect(all.json()).toMatchObject({ error: { code: "not_confirmed", field: "yes" } });
  const cancel = await belfry("cancel", dead);
  expect(cancel).toMatchObject({ code: 2, stderr: expect.stringContaining("nothing was done") });
  const yes = await belfry("retry", "--dead", "--job", "broken", "--yes", "--json");
  expect(yes.code).toBe(0);
  expect(yes.json()).toMatchObject([{ job: "broken", kind: "retry", total: 3 }]);
});

test("a run that nobody carries out yet is cancelled with its reason", async () => {
  const asked = await belfry("run", "slow", "--json");
  const { runId } = asked.json() as { readonly runId: string };
  const answer = await belfry("cancel", runId, "--yes", "--reason", "wrong input", "--json");
  expect(answer.code).toBe(0);
  expect(answer.json()).toMatchObject([{ runId, state: "cancelled", reason: "wrong input" }]);
  expect((await belfry("cancel", runId, "--yes")).code).toBe(3);
});

test("a paused job says so in the list until it is resumed", async () => {
  const paused = await belfry("pause", "idle", "--reason", "holiday", "--until", "2099-01-02", "--json");
  expect(paused).toMatchObject({ code: 0 });
  // Midnight of the job's zone, Asia/Shanghai.
  expect(paused.json()).toMatchObject({ job: "idle", reason: "holiday", until: "2099-01-01T16:00:00Z" });
  const listed = (await belfry("list", "--json")).json() as readonly { name: string; paused: unknown }[];
  expect(listed.find(({ name }) => name === "idle")?.paused).toMatchObject({ reason: "holiday" });
  expect((await belfry("list")).stdout).toContain("paused until 2099-01-02 00:00 (holiday)");
  expect((await belfry("resume", "idle")).code).toBe(0);
  expect((await belfry("resume", "idle")).code).toBe(3);
});

test("a pause without a reason, or that ended before it began, is refused with the field", async () => {
  expect(await belfry("pause", "idle")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--reason"),
  });
  const past = await belfry("pause", "idle", "--reason", "x", "--until", "2020-01-01", "--json");
  expect(past.code).toBe(2);
  expect(past.json()).toMatchObject({ error: { field: "until" } });
});

test("a muted job says so in the list until its silence is over, or ended", async () => {
  const muted = await belfry("mute", "idle", "--until", "2099-01-02", "--reason", "move", "--json");
  expect(muted).toMatchObject({ code: 0 });
  expect(muted.json()).toMatchObject({ job: "idle", reason: "move", until: "2099-01-01T16:00:00Z" });
  expect((await belfry("list")).stdout).toContain("muted until 2099-01-02 00:00");
  expect((await belfry("unmute", "idle")).code).toBe(0);
  expect((await belfry("unmute", "idle")).code).toBe(3);
  expect(await belfry("mute", "idle")).toMatchObject({ code: 2, stderr: expect.stringContaining("--until") });
});

test("the changes of a job's health are listed, and a run has none", async () => {
  const answer = await belfry("show", "idle", "--flips", "--json");
  expect(answer).toMatchObject({ code: 0 });
  expect(answer.json()).toEqual([]);
  expect((await belfry("show", "idle", "--flips")).stderr).toContain("has not changed so far");
  expect(await belfry("show", "idle~20261007T180000Z", "--flips")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("belfry show <job> --flips"),
  });
});

test("skip-next names the slot that it skips", async () => {
  const answer = await belfry("skip-next", "stopped", "--json");
  expect(answer.code).toBe(0);
  const next = (await belfry("next", "stopped", "--count", "1", "--json")).json() as {
    readonly occurrences: readonly string[];
  };
  expect(answer.json()).toMatchObject({ job: "stopped", slot: next.occurrences[0] });
});
