import { expect, test } from "vitest";
import { makePing, type PingRequest } from "../../../lib/app/monitors/ping.ts";
import { pauseJob, retryRun, skipNextSlot } from "../../../lib/app/operate/operator.ts";
import { makeRunByHand } from "../../../lib/app/operate/run-by-hand.ts";
import { retryDead } from "../../../lib/app/series/retry-dead.ts";
import { runKey } from "../../../lib/core/items.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { DEFAULTS } from "../../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { type LiveStack, liveStack, toldIn } from "../../support/live-stack.ts";
import { at, msOf, onRun } from "../../support/path.ts";

const hourly = (changes: Partial<JobDefinition> = {}): JobDefinition =>
  definition({
    name: "backup",
    schedules: ["0 * * * *"],
    overlap: "allow",
    misfire: { policy: "skip", max: 1 },
    monitor: { endWithinMs: 30 * MINUTE_MS },
    ...changes,
  });

const JOB = hourly();

const started = (job = JOB, now = "2027-03-01T00:31:00Z"): Promise<LiveStack> =>
  liveStack({ now, jobs: [job, definition({ name: "local" })] });

type Said = Omit<PingRequest, "job">;

const pingAt = async (stack: LiveStack, iso: string, said: Said, job = JOB) => {
  await stack.playUntil(iso);
  return makePing(stack.deps)({ job, ...said });
};

/** As DynamoDB does: a write that changes an attribute twice is refused as a whole. */
const twiceChanged = (stack: LiveStack): readonly string[] =>
  stack.writes.flatMap(({ changes }) => {
    const paths = changes.map(({ path }) => String(path));
    return paths.filter((path, index) => paths.indexOf(path) !== index);
  });

const runOf = (stack: LiveStack, slotIso: string) => {
  const { pk, sk } = runKey(at("backup", slotIso));
  return stack.table.items().find((item) => item["pk"] === pk && item["sk"] === sk);
};
const ONE = "2027-03-01T01:00:00Z";

test("a monitor that is pinged in time, by success alone or from start to end, is told of in no way", async () => {
  const stack = await started();
  await pingAt(stack, "2027-03-01T01:04:00Z", { signal: "ok", message: "3 GB" });
  await pingAt(stack, "2027-03-01T02:01:00Z", { signal: "start" });
  expect(runOf(stack, "2027-03-01T02:00:00Z")).toMatchObject({ st: "running", trigger: "ping" });
  await pingAt(stack, "2027-03-01T02:20:00Z", { signal: 0 });
  await stack.playUntil("2027-03-01T02:59:00Z");
  expect(toldIn(stack)).toEqual([]);
  expect(runOf(stack, ONE)).toMatchObject({ st: "succeeded", result: "3 GB", ep: 1 });
  const second = runOf(stack, "2027-03-01T02:00:00Z");
  expect(Number(second?.["endedAtMs"]) - Number(second?.["startedAtMs"])).toBe(19 * MINUTE_MS);
  expect(stack.sent).toEqual([]);
});

test("a slot without a ping by its grace is missed and told within two minutes, and healed by the next success", async () => {
  const stack = await started();
  await stack.playUntil("2027-03-01T01:05:00Z");
  expect(runOf(stack, ONE)).toBeUndefined();
  await pingAt(stack, "2027-03-01T02:00:00Z", { signal: "ok" });
  await stack.playUntil("2027-03-01T02:10:00Z");
  expect(runOf(stack, ONE)).toMatchObject({ st: "missed", reason: "no ping came in time" });
  expect(toldIn(stack)).toEqual(["03-01T01:06 notify missed x1", "03-01T02:01 notify recovered"]);
});

test("a grace longer than the watchdog's first look, or shorter, is kept to", async () => {
  const patient = hourly({ graceMs: 45 * MINUTE_MS });
  const long = await started(patient);
  await pingAt(long, "2027-03-01T01:44:00Z", { signal: "ok" }, patient);
  await long.playUntil("2027-03-01T02:30:00Z");
  expect(toldIn(long)).toEqual([]);
  await long.playUntil("2027-03-01T02:50:00Z");
  expect(toldIn(long)).toEqual(["03-01T02:46 notify missed x1"]);
  const hasty = await started(hourly({ graceMs: MINUTE_MS }));
  await hasty.playUntil("2027-03-01T01:10:00Z");
  expect(toldIn(hasty)).toEqual(["03-01T01:03 notify missed x1"]);
});

test("a ping that would be early for the next slot counts for the one before, while that is awaited", async () => {
  const job = hourly({ schedules: ["*/5 * * * *"] });
  const stack = await started(job, "2027-03-01T01:00:30Z");
  const slots = [];
  for (const minute of ["08", "09", "14"]) {
    slots.push((await pingAt(stack, `2027-03-01T01:${minute}:30Z`, { signal: "ok" }, job)).slotMs);
  }
  const minutes = slots.map((slotMs) => new Date(slotMs).getUTCMinutes());
  expect(minutes).toEqual([5, 10, 15]);
  await stack.playUntil("2027-03-01T01:19:30Z");
  expect(toldIn(stack)).toEqual([]);
});

test("a slot that is named counts, an early one too", async () => {
  const stack = await started();
  const ping = makePing(stack.deps);
  const slotMs = msOf(ONE);
  await stack.playUntil("2027-03-01T00:58:00Z");
  expect(await ping({ job: JOB, signal: "ok", slotMs })).toMatchObject({ slotMs, duplicate: false });
  await stack.playUntil("2027-03-01T01:58:00Z");
  expect(await ping({ job: JOB, signal: "ok", slotMs })).toMatchObject({ slotMs, duplicate: true });
});

test("three slots without a ping in a row wake somebody, once", async () => {
  const stack = await started();
  await stack.playUntil("2027-03-01T05:30:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:06 notify missed x1", "03-01T03:06 page missed x3"]);
});

test("a success that comes after its slot was missed takes its place, and the recovery is told", async () => {
  const stack = await started();
  const answer = await pingAt(stack, "2027-03-01T01:20:00Z", { signal: "ok" });
  expect(answer).toEqual({ runId: "backup~20270301T010000Z", slotMs: msOf(ONE), duplicate: false });
  await stack.playUntil("2027-03-01T01:25:00Z");
  const run = runOf(stack, ONE);
  expect(run).toMatchObject({ st: "succeeded", ep: 2 });
  expect(run).not.toHaveProperty("reason");
  expect(run).not.toHaveProperty("badKey");
  expect(toldIn(stack)).toEqual(["03-01T01:06 notify missed x1", "03-01T01:21 notify recovered"]);
});

test("an early ping counts for its slot: nothing is missed, and nothing is late", async () => {
  const stack = await started();
  const { slotMs } = await pingAt(stack, "2027-03-01T00:59:00Z", { signal: "ok" });
  expect(slotMs).toBe(msOf(ONE));
  await stack.playUntil("2027-03-01T01:30:00Z");
  expect(toldIn(stack)).toEqual([]);
});

test("a failure and an exit code are told within two minutes with their words, and a success after it heals the slot", async () => {
  const stack = await started();
  await pingAt(stack, "2027-03-01T01:02:00Z", { signal: "start" });
  await pingAt(stack, "2027-03-01T01:15:00Z", { signal: 3, message: "disk full" });
  await stack.playUntil("2027-03-01T01:18:00Z");
  expect(runOf(stack, ONE)).toMatchObject({
    st: "dead",
    error: { name: "ExitCode", message: "it ended with exit code 3: disk full" },
  });
  expect(stack.alerts().at(-1)).toMatchObject({
    kind: "failed",
    runId: "backup~20270301T010000Z",
    error: { name: "ExitCode", message: "it ended with exit code 3: disk full" },
  });
  expect(stack.notices.filter(({ code }) => code === "dead").length).toBe(1);
  await pingAt(stack, "2027-03-01T01:22:00Z", { signal: "ok" });
  await stack.playUntil("2027-03-01T01:26:00Z");
  expect(runOf(stack, ONE)).toMatchObject({ st: "succeeded" });
  expect(runOf(stack, ONE)).not.toHaveProperty("error");
  expect(toldIn(stack).at(-1)).toBe("03-01T01:23 notify recovered");
  expect(twiceChanged(stack)).toEqual([]);
});

test("each ping may come again: a second start, success or failure is a duplicate, counted, and changes nothing", async () => {
  const stack = await started();
  await stack.playUntil("2027-03-01T01:01:00Z");
  for (const [signal, state] of [
    ["start", "running"],
    ["ok", "succeeded"],
  ] as const) {
    const first = await makePing(stack.deps)({ job: JOB, signal });
    const before = runOf(stack, ONE);
    const second = await makePing(stack.deps)({ job: JOB, signal });
    expect([first.duplicate, second.duplicate]).toEqual([false, true]);
    const { dup: _, ...after } = { ...runOf(stack, ONE) };
    const { dup: __, ...was } = { ...before };
    expect(after).toEqual(was);
    expect(after).toMatchObject({ st: state });
  }
  // A start that was sent before its success, and comes after it.
  expect((await makePing(stack.deps)({ job: JOB, signal: "start" })).duplicate).toBe(true);
  expect(runOf(stack, ONE)).toMatchObject({ st: "succeeded", ep: 1 });
  expect(runOf(stack, ONE)?.["dup"]).toHaveProperty("size", 3);
  await stack.playUntil("2027-03-01T01:30:00Z");
  expect(toldIn(stack)).toEqual([]);
});

test("a failure after a success of the same slot is not swallowed", async () => {
  const stack = await started();
  await pingAt(stack, "2027-03-01T01:01:00Z", { signal: "ok" });
  await pingAt(stack, "2027-03-01T01:20:00Z", { signal: "fail" });
  expect((await makePing(stack.deps)({ job: JOB, signal: "fail" })).duplicate).toBe(true);
  await stack.playUntil("2027-03-01T01:24:00Z");
  expect(runOf(stack, ONE)).toMatchObject({ st: "dead", ep: 2 });
  expect(twiceChanged(stack)).toEqual([]);
  expect(toldIn(stack)).toEqual(["03-01T01:21 notify failed x1"]);
});

test("an end belongs to the run that has started, however near the next slot is", async () => {
  const long = hourly({ monitor: { endWithinMs: 3 * HOUR_MS }, graceMs: HOUR_MS });
  const stack = await started(long);
  await pingAt(stack, "2027-03-01T01:02:00Z", { signal: "start" }, long);
  const { slotMs } = await pingAt(stack, "2027-03-01T01:58:00Z", { signal: "ok" }, long);
  expect(slotMs).toBe(msOf(ONE));
  expect(runOf(stack, "2027-03-01T02:00:00Z")).toBeUndefined();
});

test("a start whose end does not come is dead when its time is over, told once, and a late success heals it", async () => {
  const stack = await started();
  await pingAt(stack, "2027-03-01T01:02:00Z", { signal: "start" });
  await stack.playUntil("2027-03-01T01:32:00Z");
  expect(runOf(stack, ONE)).toMatchObject({ st: "running" });
  await stack.playUntil("2027-03-01T01:36:00Z");
  expect(runOf(stack, ONE)).toMatchObject({
    st: "dead",
    error: { name: "NoEnd", message: "it started, and its end was not told within 30 minutes" },
  });
  expect(toldIn(stack)).toEqual(["03-01T01:34 notify failed x1"]);
  await pingAt(stack, "2027-03-01T01:50:00Z", { signal: "ok", slotMs: msOf(ONE) });
  await stack.playUntil("2027-03-01T01:54:00Z");
  expect(toldIn(stack).at(-1)).toBe("03-01T01:51 notify recovered");
});

test("a run that takes longer than finishWithin is an overrun before it is dead", async () => {
  const job = hourly({ alerts: { ...DEFAULTS.alerts, finishWithinMs: 10 * MINUTE_MS } });
  const stack = await started(job);
  await pingAt(stack, "2027-03-01T01:02:00Z", { signal: "start" }, job);
  await stack.playUntil("2027-03-01T01:20:00Z");
  expect(toldIn(stack)).toEqual(["03-01T01:13 notify overrun"]);
});

test("paused and skipped slots expect no ping, and one that comes all the same is recorded", async () => {
  const stack = await started();
  await skipNextSlot(stack.deps, JOB);
  await stack.playUntil("2027-03-01T01:30:00Z");
  expect(runOf(stack, ONE)).toMatchObject({ st: "skipped", reason: "skipped by hand" });
  await pauseJob(stack.deps, JOB, { reason: "moved" });
  await stack.playUntil("2027-03-01T02:30:00Z");
  expect(runOf(stack, "2027-03-01T02:00:00Z")).toMatchObject({ st: "skipped", reason: "paused" });
  await makePing(stack.deps)({ job: JOB, signal: "ok", slotMs: msOf("2027-03-01T02:00:00Z") });
  expect(runOf(stack, "2027-03-01T02:00:00Z")).toMatchObject({ st: "succeeded" });
  expect(toldIn(stack).filter((line) => line.includes("missed"))).toEqual([]);
});

test("a length that the ping names stands where no start was told", async () => {
  const stack = await started();
  await pingAt(stack, "2027-03-01T01:04:00Z", { signal: "ok", durationMs: 90_000 });
  const run = runOf(stack, ONE);
  expect(Number(run?.["endedAtMs"]) - Number(run?.["startedAtMs"])).toBe(90_000);
});

test.each(["down", "lost", "repeated"] as const)(
  "a ping whose write is %s is taken once, if need be when it is sent again",
  async (fault) => {
    const stack = await started();
    await stack.playUntil("2027-03-01T01:01:00Z");
    stack.fail("write", fault, onRun);
    const ping = () => makePing(stack.deps)({ job: JOB, signal: "ok" });
    const sent = ping();
    if (fault === "repeated") await expect(sent).resolves.toMatchObject({ duplicate: false });
    else await expect(sent).rejects.toMatchObject({ code: "test" });
    expect(await ping()).toMatchObject({ duplicate: fault !== "down" });
    expect(runOf(stack, ONE)).toMatchObject({ st: "succeeded", ep: 1 });
  },
);

test("two pings at once are both taken: the later one judges by what the other wrote", async () => {
  const stack = await started();
  await stack.playUntil("2027-03-01T01:01:00Z");
  stack.meanwhile("write", onRun, () => makePing(stack.deps)({ job: JOB, signal: "start" }));
  expect(await makePing(stack.deps)({ job: JOB, signal: "ok" })).toMatchObject({ duplicate: false });
  expect(runOf(stack, ONE)).toMatchObject({
    st: "succeeded",
    ep: 1,
    startedAtMs: msOf("2027-03-01T01:01:00Z"),
  });
});

test("what cannot be a ping is refused, with the reason", async () => {
  const stack = await started();
  const ping = makePing(stack.deps);
  const local = stack.deps.jobs.byName("local");
  if (local === undefined) throw new Error("no such job");
  await expect(ping({ job: local, signal: "ok" })).rejects.toMatchObject({
    code: "no_monitor",
    field: "job",
  });
  await expect(ping({ job: JOB, signal: "ok", slotMs: msOf("2027-03-01T00:10:00Z") })).rejects.toMatchObject({
    code: "slot_off_schedule",
  });
  await expect(ping({ job: JOB, signal: "ok", slotMs: msOf("2027-03-01T03:00:00Z") })).rejects.toMatchObject({
    code: "slot_in_future",
  });
  const elsewhere = { ...JOB, stages: ["prod"] };
  await expect(ping({ job: elsewhere, signal: "ok" })).rejects.toMatchObject({ code: "not_expected" });
});

test("nothing here runs a monitor: not its slots, a person, a retry or an event", async () => {
  const stack = await started();
  await stack.playUntil("2027-03-01T01:30:00Z");
  await expect(makeRunByHand(stack.deps)({ job: JOB })).rejects.toMatchObject({ code: "runs_elsewhere" });
  await expect(retryRun(stack.deps, { job: JOB, occurrence: at("backup", ONE) })).rejects.toMatchObject({
    code: "runs_elsewhere",
  });
  await expect(retryDead(stack.deps, JOB)).rejects.toMatchObject({ code: "runs_elsewhere" });
  expect(await stack.deliver("2027-03-01T01:00:00Z", ["backup"])).toEqual(["off-schedule"]);
  expect(stack.sent).toEqual([]);
});

test("back from an outage the watchdog records what no ping came for, and takes what was pinged meanwhile as it is", async () => {
  const stack = await started();
  stack.works.watchdog = false;
  await pingAt(stack, "2027-03-01T02:01:00Z", { signal: "ok" });
  await stack.playUntil("2027-03-01T03:30:00Z");
  stack.works.watchdog = true;
  await stack.playUntil("2027-03-01T03:40:00Z");
  const states = [1, 2, 3].map((hour) => runOf(stack, `2027-03-01T0${hour}:00:00Z`)?.["st"]);
  expect(states).toEqual(["missed", "succeeded", "missed"]);
});
