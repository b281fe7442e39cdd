import { setTimeout as pause } from "node:timers/promises";
import { SECOND_MS } from "../../lib/core/time.ts";
import { atSlots, FRAGILE, type JobFiles, jobFile, NARROW } from "./project.ts";
import { alarm, allSucceeded, paged, runOf, type Stage, untilMs } from "./stage.ts";
import type { Outcome } from "./watch.ts";

/** The runs of a row begin so far apart that each is looked at for itself: 15 s after its slot, by a pass each 5 s or so. */
const ROW_STEP_MS = 30 * SECOND_MS;
const ROW_FAILURES = 3;
const ROW_PATIENCE_MS = 240 * SECOND_MS;
/** The pool of the late job is busy until so long after its slot. */
const BUSY_MS = 24 * SECOND_MS;

/** The attempt after the kill lasts over a pass of the watchdog, so that its trouble has an end that is told. */
const AGAIN_MS = 8 * SECOND_MS;
const GIVE_UP_MS = 60 * SECOND_MS;

const THROWS = '() => { throw new Error("made for the drill"); }';
const NO_RETRY = "{ retries: 0 }";

const base = (receiver: string, slotMs: number): JobFiles => ({
  throws: jobFile({ schedule: atSlots(slotMs), retry: NO_RETRY, handler: THROWS }),
  hangs: jobFile({
    schedule: atSlots(slotMs),
    retry: NO_RETRY,
    timeout: '"3 seconds"',
    handler: "() => new Promise((resolve) => setTimeout(resolve, 600_000))",
  }),
  killed: jobFile({
    schedule: atSlots(slotMs),
    pool: `"${FRAGILE}"`,
    timeout: '"1 minute"',
    handler: `async ({ attempt }) => {
      if (attempt > 1) return new Promise((resolve) => setTimeout(resolve, ${AGAIN_MS}));
      await fetch("${receiver}/begun?job=killed&worker=" + process.ppid);
      await new Promise((resolve) => setTimeout(resolve, 50_000));
    }`,
  }),
});

const late = (slotMs: number): JobFiles => ({
  late: jobFile({
    schedule: atSlots(slotMs),
    pool: `"${NARROW}"`,
    grace: '"10 seconds"',
    handler: "() => undefined",
  }),
  busy: jobFile({
    pool: `"${NARROW}"`,
    overlap: '"allow"',
    handler: "({ input }) => new Promise((resolve) => setTimeout(resolve, input.untilMs - Date.now()))",
  }),
});

const row = (slotMs: number): JobFiles => {
  const slots = Array.from({ length: ROW_FAILURES + 1 }, (_, n) => slotMs + n * ROW_STEP_MS);
  const healsAtMs = slots[ROW_FAILURES];
  return {
    row: jobFile({
      schedule: atSlots(...slots),
      retry: NO_RETRY,
      handler: `({ slot }) => { if (slot.getTime() < ${healsAtMs}) throw new Error("made for the drill"); }`,
    }),
  };
};

/** Kills the worker that carries the job's handler; answers when. */
const killWorkerOf = async (job: string, { receiver }: Stage): Promise<number> => {
  const endMs = Date.now() + GIVE_UP_MS;
  while (Date.now() < endMs) {
    const begun = receiver.begun.find((one) => one.job === job);
    if (begun !== undefined) {
      process.kill(begun.workerPid, "SIGKILL");
      return Date.now();
    }
    await pause(50);
  }
  throw new Error(`no handler of ${job} has begun`);
};

const killed = async (stage: Stage, slotMs: number): Promise<Outcome> => {
  const sinceMs = await killWorkerOf("killed", stage);
  const run = runOf("killed", slotMs);
  return stage.watch.outcomeOf({
    case: "a run's worker is killed",
    sinceMs,
    expected: [
      `chat stuck notify ${run}`,
      `chat alarm notify ${alarm("worker-errors")}`,
      `chat alarm-over notify ${alarm("worker-errors")}`,
      "chat recovered notify killed",
    ],
    check: () => allSucceeded(stage, [run]),
  });
};

/** One at a time on an idle pool, two at once here: both places are taken before the slot. */
const keepBusy = async (stage: Stage, slotMs: number): Promise<void> => {
  const input = { untilMs: slotMs + BUSY_MS };
  for (let n = 0; n < 2; n++) await stage.run("busy", input);
};

const single = (stage: Stage, name: string, job: string, slotMs: number): Promise<Outcome> =>
  stage.watch.outcomeOf({
    case: name,
    sinceMs: slotMs,
    expected: [`chat failed notify ${runOf(job, slotMs)}`],
  });

const rowOutcomes = ({ watch }: Stage, slotMs: number): readonly Promise<Outcome>[] => {
  const lastMs = slotMs + (ROW_FAILURES - 1) * ROW_STEP_MS;
  return [
    watch.outcomeOf({
      case: "three failures in a row",
      sinceMs: lastMs,
      expected: paged("failing", runOf("row", lastMs)),
      patienceMs: ROW_PATIENCE_MS,
    }),
    watch.outcomeOf({
      case: "the first failure of the row",
      sinceMs: slotMs,
      expected: [`chat failed notify ${runOf("row", slotMs)}`],
    }),
    watch.outcomeOf({
      case: "recovery",
      sinceMs: lastMs + ROW_STEP_MS,
      expected: paged("recovered", "row"),
      patienceMs: ROW_PATIENCE_MS,
    }),
  ];
};

const lateOutcome = ({ watch }: Stage, slotMs: number): Promise<Outcome> =>
  watch.outcomeOf({
    case: "a run starts late",
    sinceMs: slotMs,
    expected: [`chat late notify ${runOf("late", slotMs)}`, "chat recovered notify late"],
  });

/** Jobs that fail by themselves, side by side; in short, those that do so soonest. */
export const failingJobs = async (stage: Stage, isQuick: boolean): Promise<readonly Outcome[]> => {
  const slotMs = await stage.load((atMs) => ({
    ...base(stage.receiver.url, atMs),
    ...(isQuick ? {} : { ...late(atMs), ...row(atMs) }),
  }));
  if (!isQuick) await keepBusy(stage, slotMs);
  return Promise.all([
    single(stage, "a job throws", "throws", slotMs),
    single(stage, "a job hangs", "hangs", slotMs),
    killed(stage, slotMs),
    ...(isQuick ? [] : [lateOutcome(stage, slotMs), ...rowOutcomes(stage, slotMs)]),
  ]);
};

/** The scheduler does not strike: the watchdog alone knows of the slot. */
export const neverStarts = async (stage: Stage): Promise<readonly Outcome[]> => {
  await stage.restart({ BELFRY_DEV_SCHEDULER: "off" });
  const slotMs = await stage.load((atMs) => ({
    never: jobFile({ schedule: atSlots(atMs), misfire: '"skip"', handler: "() => undefined" }),
    "made-up-for": jobFile({ schedule: atSlots(atMs), handler: "() => undefined" }),
  }));
  await untilMs(slotMs);
  const outcome = await stage.watch.outcomeOf({
    case: "the scheduler is stopped, and a job never starts",
    sinceMs: slotMs,
    expected: [`chat missed notify ${runOf("never", slotMs)}`],
    check: () => allSucceeded(stage, [runOf("made-up-for", slotMs)]),
  });
  return [outcome];
};
