import { memoryTable } from "../../../lib/adapters/memory/memory-table.ts";
import { makeInspect } from "../../../lib/app/inspect/inspect.ts";
import { storeAside } from "../../../lib/app/path/side.ts";
import { type Occurrence, slotKeyOf } from "../../../lib/core/identity.ts";
import { DEFAULTS, type JobDefinition } from "../../../lib/core/jobs/job.ts";
import { jobList } from "../../../lib/core/jobs/job-list.ts";
import type { Json } from "../../../lib/core/json.ts";
import { claim, failAttempt, finish, start, triesWith } from "../../../lib/core/runs/transitions.ts";
import { isoOf, readInstant } from "../../../lib/core/time.ts";
import type { Write } from "../../../lib/core/write.ts";
import type { Timers } from "../../../lib/ports/clock.ts";

export const msOf = (iso: string): number => {
  const atMs = readInstant(iso);
  if (atMs === undefined) throw new TypeError(`no instant: ${iso}`);
  return atMs;
};

export const jobOf = (options: Partial<JobDefinition> & { readonly name: string }): JobDefinition => ({
  subject: options.name,
  schedules: ["0 * * * *"],
  dst: { gap: "skip", repeat: "first" },
  input: null,
  misfire: { policy: "latest", max: 1 },
  onUnknown: "retry",
  ...DEFAULTS,
  overlap: "allow",
  ...options,
});

export const slotOf = (subject: string, iso: string): Occurrence => ({
  subject,
  slotKey: slotKeyOf(msOf(iso)),
});

/** A clock that only moves when somebody waits on its timers, or says so. */
export const makeClock = (startIso: string) => {
  let nowMs = msOf(startIso);
  const timers: Timers = {
    after: (waitMs, callback) => {
      nowMs += waitMs;
      queueMicrotask(callback);
      return { cancel: () => undefined };
    },
  };
  return {
    timers,
    clock: { nowMs: () => nowMs },
    advance: (ms: number): void => {
      nowMs += ms;
    },
  };
};

export const NOW = "2026-10-08T12:30:00Z";

/** Fresh per test: a memory table, a standing clock, and runs written by the real transitions. */
export const setup = (jobs: readonly JobDefinition[] = [jobOf({ name: "report" })]) => {
  const table = memoryTable();
  const time = makeClock(NOW);
  const list = jobList({ jobs, hash: "test" }, "dev");
  const inspect = makeInspect({ table, jobs: list, ...time });
  const write = async (...writes: readonly Write[]): Promise<void> => {
    for (const one of writes) {
      const answer = await table.write(one);
      if (!answer.written) throw new Error(`refused: ${JSON.stringify(one.key)}`);
    }
  };

  const claimed = (occurrence: Occurrence, input?: Json): Write =>
    claim({
      occurrence,
      token: "dispatcher",
      nowMs: msOf(occurrence.slotKey.slice(0, 24)) + 1_000,
      trigger: "schedule",
      ...(input === undefined ? {} : { input }),
    });

  const started = (occurrence: Occurrence, afterMs = 2_000): Write => {
    const nowMs = msOf(occurrence.slotKey.slice(0, 24)) + afterMs;
    return start({
      occurrence,
      epoch: 1,
      token: "worker",
      nowMs,
      leaseUntilMs: nowMs + 60_000,
      locked: false,
      trigger: "schedule",
      queuedAtMs: nowMs,
    });
  };

  const tryOf = (occurrence: Occurrence, outcome: string, error?: string) => {
    const slotMs = msOf(occurrence.slotKey.slice(0, 24));
    return triesWith(undefined, {
      n: 1,
      startedAtMs: slotMs + 2_000,
      endedAtMs: slotMs + 5_000,
      outcome,
      ...(error === undefined ? {} : { error }),
    });
  };

  const succeeded = (occurrence: Occurrence, result: Json = null): Write =>
    finish(
      { occurrence, fence: 1 },
      {
        state: "succeeded",
        nowMs: msOf(occurrence.slotKey.slice(0, 24)) + 5_000,
        tries: tryOf(occurrence, "succeeded"),
        result,
        failed: false,
      },
    );

  const dead = (occurrence: Occurrence): Write =>
    finish(
      { occurrence, fence: 1 },
      {
        state: "dead",
        nowMs: msOf(occurrence.slotKey.slice(0, 24)) + 5_000,
        tries: tryOf(occurrence, "failed", "no such host"),
        reason: "6 attempts failed",
        error: { name: "TypeError", message: "no such host" },
        failed: true,
      },
    );

  const failed = (occurrence: Occurrence): Write =>
    failAttempt(
      { occurrence, fence: 1 },
      {
        nextAttemptAtMs: msOf(occurrence.slotKey.slice(0, 24)) + 65_000,
        tries: tryOf(occurrence, "failed", "no such host"),
        error: { name: "TypeError", message: "no such host" },
      },
    );

  return {
    table,
    jobs: list,
    inspect,
    write,
    claimed,
    started,
    succeeded,
    dead,
    failed,
    ...time,
    aside: (occurrence: Occurrence, name: string, value: Json) =>
      storeAside(table, occurrence, name, value, msOf(NOW)),
    /** A whole run of the slot. */
    runTo: async (occurrence: Occurrence, end: "queued" | "running" | "waiting" | "succeeded" | "dead") => {
      await write(claimed(occurrence));
      if (end !== "queued") await write(started(occurrence));
      if (end === "waiting") await write(failed(occurrence));
      if (end === "succeeded") await write(succeeded(occurrence));
      if (end === "dead") await write(dead(occurrence));
    },
  };
};

export const hoursBefore = (iso: string, hours: number): string => isoOf(msOf(iso) - hours * 3_600_000);
