import { expect, test } from "vitest";
import { readRunId, slotKeyOf } from "../../lib/core/identity.ts";
import { runKey } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/core/time.ts";
import { type Handlers, notedExecution } from "../../lib/simulation/attempts.ts";
import { brokenPromises } from "../../lib/simulation/invariants.ts";
import { definition } from "../support/definitions.ts";
import { makeWorld, type World } from "./world.ts";

// A year of a daily job beside its live slot, and beside a job of every minute in the same pool.

const START_MS = Date.parse("2026-10-08T20:00:30Z");
const YEAR = { fromMs: Date.parse("2025-10-08T00:00:00Z"), toMs: Date.parse("2026-10-08T00:00:00Z") };
/** Long enough for all of it, and for the live slot in its middle. */
const END_MS = START_MS + 16 * HOUR_MS;
const WORKERS = 3;

const daily = (changes: Partial<JobDefinition>) =>
  definition({ name: "daily", schedules: ["0 2 * * *"], timezone: "Europe/Berlin", ...changes });
// Events come up to a minute late here: with a lock, the job would skip for itself now and then.
const minutely = definition({
  name: "minutely",
  schedules: ["* * * * *"],
  endsAtMs: END_MS,
  overlap: "allow",
});

/** The backfilled job takes its time; the one of every minute does not. */
const handlers: Handlers = (universe, process, traces) => ({
  start(request) {
    const { number, ended, end } = notedExecution(traces, universe, process, request);
    const lastsMs = universe.random.whole(10, request.job === "daily" ? 240 : 40) * SECOND_MS;
    process.timers.after(lastsMs, () => end({ kind: "returned", result: number }));
    return { ended, stop: () => end({ kind: "stopped", error: { name: "AbortError", message: "stop" } }) };
  },
});

const liveSlotsOf = (world: World, job: JobDefinition, untilMs: number): readonly number[] => [
  ...(world
    .spawn("reader")
    .deps.jobs.scheduleOf(job)
    ?.slots(START_MS + 2 * MINUTE_MS, untilMs) ?? []),
];

/** Live slots that are not done, or began after their grace. */
const late = async (
  world: World,
  job: JobDefinition,
  slots: readonly number[],
): Promise<readonly string[]> => {
  const wrong: string[] = [];
  for (const slotMs of slots) {
    const occurrence = { subject: job.subject, slotKey: slotKeyOf(slotMs) };
    const run = await world.stored.get(runKey(occurrence), { consistent: true });
    const lateByMs = Number(run?.["startedAtMs"]) - slotMs;
    if (run?.["st"] !== "succeeded") wrong.push(`${occurrence.slotKey} is ${String(run?.["st"])}`);
    else if (lateByMs > job.graceMs) wrong.push(`${occurrence.slotKey} began ${lateByMs} ms late`);
  }
  return wrong;
};

test.each([
  ["runs one at a time", { overlap: "skip" }, 1],
  ["waits in line", { overlap: "queue" }, 1],
  ["allows overlap", { overlap: "allow" }, 2],
] as const)(
  "a year of a daily job that %s is backfilled, and no live slot of it, or of a job of every minute beside it, is late or skipped",
  { timeout: 300_000 },
  async (_, changes, parallel) => {
    const job = daily(changes);
    const jobs = [job, minutely];
    const world = makeWorld({
      seed: 1,
      startMs: START_MS,
      jobs,
      faults: {},
      watchdog: true,
      workers: WORKERS,
      handlers,
    });
    const live = new Map(jobs.map((one) => [one, liveSlotsOf(world, one, END_MS)]));
    world.start();
    for (const [one, slots] of live) for (const slotMs of slots) world.schedule(one, slotMs);
    world.backfill({ job, ...YEAR, parallel }, START_MS + 2 * MINUTE_MS);
    await world.time.playUntil(END_MS + HOUR_MS);
    for (const [one, slots] of live) {
      expect(slots.length).toBe(one === job ? 1 : 16 * 60 - 2);
      expect(await late(world, one, slots)).toEqual([]);
    }
    // One night in March has no two o'clock.
    const slots = [...(world.spawn("reader").deps.jobs.scheduleOf(job)?.slots(YEAR.fromMs, YEAR.toMs) ?? [])];
    expect(slots).toHaveLength(364);
    expect(await brokenPromises(world, [{ job, slots }])).toEqual({ lost: [], doubled: [], stuck: [] });
    const ran = world.executions
      .map(({ runId }) => readRunId(runId))
      .filter((one) => one?.subject === "daily");
    // Each once, and in the order of their slots where they run one at a time.
    expect(ran).toHaveLength(364 + 1);
    const past = ran.map((one) => String(one?.slotKey)).filter((slotKey) => slotKey < slotKeyOf(YEAR.toMs));
    if (parallel === 1) expect(past).toEqual(past.toSorted());
  },
);
