import { memoryTable } from "../adapters/memory/memory-table.ts";
import type { Deps } from "../app/deps.ts";
import { makeReadRun } from "../app/inspect/read-run.ts";
import { makeRunByHand } from "../app/operate/run-by-hand.ts";
import { dispatch } from "../app/path/dispatch.ts";
import { work } from "../app/path/work.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import { InvalidInput } from "../core/errors.ts";
import { type Occurrence, readRunId, slotKeyOf } from "../core/identity.ts";
import { isJob, type Job } from "../core/jobs/authoring.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { type JobList, jobList, scheduleOfJob } from "../core/jobs/job-list.ts";
import { checkJob } from "../core/jobs/job-options.ts";
import type { Json } from "../core/json.ts";
import type { RunMessage } from "../core/runs/message.ts";
import { isTerminal, type RunView } from "../core/runs/run.ts";
import { schedulerInput } from "../core/runs/scheduler-event.ts";
import { AWS_TIMINGS } from "../core/settings.ts";
import { readInstant, SECOND_MS, shortIsoOf } from "../core/time.ts";
import type { LogLevel } from "../ports/attempts.ts";
import type { Journal } from "../ports/journal.ts";
import { type VirtualTime, virtualTime } from "../simulation/virtual-time.ts";
import { withEnvironment } from "./environment.ts";
import { type PreviousRun, recordPrevious } from "./previous.ts";
import { type KillPoint, makeTrap, type Trap } from "./trap.ts";
import { workerProcess } from "./worker.ts";

export interface TestJobOptions {
  /** The job's name where its options give none; default `job`. In a project it is the file's. */
  readonly name?: string;
  /**
   * The slot that is run: a `Date`, or a text with `Z` or an offset. The schedule must name it. Default: the last one
   * up to `clock`, else the first one from 2030 on. A job without a schedule is run by hand.
   */
  readonly slot?: Date | string;
  /** The run's own input, as a run by hand brings it. Default: the job's. */
  readonly input?: Json;
  /** The instant at which the slot is delivered. Default: the slot itself. */
  readonly clock?: Date | string;
  /** The success of the slot before, for `ctx.previous()`. Default: none. */
  readonly previous?: PreviousRun;
  /** Variables of the process while the handler runs. Those of the job's own options belong to a deployment. */
  readonly environment?: { readonly [variable: string]: string };
}

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: { readonly [name: string]: Json };
}

/** One occurrence of a job: the real use cases, over a table in memory, on a clock that the test moves. */
export interface TestedJob {
  /**
   * Delivers the slot, unless it was delivered before, and plays on until the run is over: waits between attempts pass
   * at once, while the clock stands as long as a handler runs. Answers the run as `show` does. A run that waits for
   * a person (`parked`) is answered as well.
   */
  run(): Promise<RunView>;
  /** The same with everything twice: two deliveries, and two workers for each message. */
  deliverTwice(): Promise<RunView>;
  /**
   * The next worker that comes to this point is killed there, once; with `nth`, the one that comes there for the nth time
   * from now. Each call is one more kill.
   * @throws InvalidInput for a point that there is not, and for an `nth` below 1
   */
  killHere(point: KillPoint, nth?: number): void;
  /** How many workers have been killed so far: did they come to the points at all? */
  kills(): number;
  /** Moves the clock: timeouts, leases and waits that end meanwhile end. Answers the run as it is then, if there is one. */
  advance(by: Duration): Promise<RunView | undefined>;
  /** What the clock shows. */
  now(): Date;
  /** What the handler has logged so far. */
  readonly lines: readonly LogLine[];
}

/**
 * A job to be tried in a test: nothing leaves the process, and nothing waits.
 * @throws InvalidInput for a job with faults, all of them in its message; for a slot that its schedule does not name
 */
export const testJob = (job: Job, options: TestJobOptions = {}): TestedJob => {
  const definition = definitionOf(job, options.name ?? "job");
  const { slotMs, startMs } = instantsOf(definition, options);
  const time = virtualTime(startMs, settle);
  const lines: LogLine[] = [];
  const trap = makeTrap();
  const stage = definition.stages?.[0] ?? "test";
  const jobs = jobList({ jobs: [definition], hash: "tested" }, stage);
  const stack = makeStack({ job: withEnvironment(job, options.environment ?? {}), time, lines, trap, jobs });
  const { input, previous } = options;
  // A table in memory is written at once, whoever waits for it.
  if (previous !== undefined) void recordPrevious(stack.deps.table, definition, slotMs, previous);
  const play = makePlay(stack, time, { definition, slotMs, input });
  return {
    run: () => play.toEnd(1),
    deliverTwice: () => play.toEnd(2),
    killHere: (point, nth = 1) => trap.set(point, nth),
    kills: trap.kills,
    advance: async (by) => {
      await settle();
      await time.playUntil(time.now() + durationMs(by, "advance"));
      return play.view();
    },
    now: () => new Date(time.now()),
    lines,
  };
};

/** Lets everything happen that waits for no time of ours: promises, and what the host has ready. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
};

const definitionOf = (job: Job, name: string): JobDefinition => {
  if (!isJob(job)) throw new InvalidInput("not_a_job", "testJob takes what defineJob made");
  const checked = checkJob(job.options, name);
  if (checked.ok) return checked.value;
  const faults = checked.faults.map(({ field, message, hint }) =>
    [field, message, hint].filter((part) => part !== undefined).join(": "),
  );
  throw new InvalidInput("invalid_job", `the job has faults:\n${faults.join("\n")}`);
};

const instantOf = (given: Date | string | undefined, field: string): number | undefined => {
  if (given === undefined) return undefined;
  const atMs = typeof given === "string" ? readInstant(given) : given.getTime();
  if (atMs !== undefined && !Number.isNaN(atMs)) return atMs;
  throw new InvalidInput("invalid_instant", `${field} ${given} is no instant: write 2026-10-08T02:00:00Z`, {
    field,
  });
};

const FIRST_DEFAULT_MS = Date.UTC(2030, 0, 1);

/** The slot to run, none for a run by hand, and when the story begins. */
const instantsOf = (
  definition: JobDefinition,
  options: TestJobOptions,
): { readonly slotMs: number | undefined; readonly startMs: number } => {
  const schedule = scheduleOfJob(definition);
  const clockMs = instantOf(options.clock, "clock");
  const given = instantOf(options.slot, "slot");
  const last = (beforeMs: number | undefined) =>
    beforeMs === undefined ? undefined : schedule?.previous(beforeMs);
  const slotMs =
    given ??
    (clockMs === undefined
      ? (schedule?.next(FIRST_DEFAULT_MS - 1) ?? last(FIRST_DEFAULT_MS))
      : last(clockMs + 1));
  if (slotMs !== undefined && schedule?.has(slotMs) !== true) {
    const nearest = [schedule?.previous(slotMs), schedule?.next(slotMs)].filter((near) => near !== undefined);
    const hint = nearest.length === 0 ? "" : `; the nearest: ${nearest.map(shortIsoOf).join(", ")}`;
    throw new InvalidInput(
      "slot_off_schedule",
      `${definition.name} has no slot ${shortIsoOf(slotMs)}${hint}`,
      { field: "slot" },
    );
  }
  const startMs = clockMs ?? slotMs ?? FIRST_DEFAULT_MS;
  if (slotMs !== undefined && startMs < slotMs) {
    throw new InvalidInput("clock_before_slot", `the clock is before the slot ${shortIsoOf(slotMs)}`, {
      field: "clock",
    });
  }
  return { slotMs, startMs };
};

interface Setting {
  readonly job: Job;
  readonly time: VirtualTime;
  readonly lines: LogLine[];
  readonly trap: Trap;
  readonly jobs: JobList;
}

/** A deployment of one job: a table, a queue that shows each message when it is due, and a worker for each message. */
const makeStack = ({ job, time, lines, trap, jobs }: Setting) => {
  const working = new Set<Promise<void>>();
  let copies = 1;
  let tokens = 0;
  const journal: Journal = {
    attempt: () => undefined,
    notice: () => undefined,
    handlerLine: (level, message, fields) => lines.push({ level, message, fields }),
  };
  const { leaseMs, clockBoundMs } = AWS_TIMINGS;
  const show = (message: RunMessage, afterMs: number): void => {
    time.timers.after(afterMs, () => {
      const one = receive(message).finally(() => working.delete(one));
      working.add(one);
    });
  };
  const put = (message: RunMessage): void => {
    for (let copy = 0; copy < copies; copy++) show(message, 0);
  };
  const deps: Deps = {
    table: memoryTable(),
    queue: {
      send: async (_pool, message) => put(message),
      sendBatch: async (_pool, messages) => {
        for (const message of messages) put(message);
        return messages.map(() => ({ kind: "sent" }));
      },
    },
    clock: { nowMs: time.now },
    timers: time.timers,
    random: { token: () => `t${String(++tokens).padStart(6, "0")}`, fraction: () => 0 },
    journal,
    timings: AWS_TIMINGS,
    jobs,
  };
  const receive = async (message: RunMessage): Promise<void> => {
    const worker = workerProcess(job, deps, trap);
    // The watchdog sends the run of a lost worker again when its lease is over by more than the clock bound.
    const lost = { kind: "return", afterMs: leaseMs + clockBoundMs + SECOND_MS } as const;
    const settlement = await Promise.race([
      work(worker.deps, message).catch(() => lost),
      worker.killed.then(() => lost),
    ]);
    if (settlement.kind === "return") show(message, settlement.afterMs ?? lost.afterMs);
  };
  return {
    deps,
    working,
    /** So many copies of each message from now on. */
    copy: (times: number): void => {
      copies = times;
    },
  };
};

interface Asked {
  readonly definition: JobDefinition;
  readonly slotMs: number | undefined;
  readonly input: Json | undefined;
}

const makePlay = ({ deps, working, copy }: ReturnType<typeof makeStack>, time: VirtualTime, asked: Asked) => {
  const readRun = makeReadRun(deps);
  let occurrence: Occurrence | undefined;
  let deliveries = 0;
  const view = async () => (occurrence === undefined ? undefined : readRun(occurrence));

  const deliver = async (): Promise<void> => {
    const { definition, slotMs, input } = asked;
    deliveries += 1;
    if (slotMs !== undefined && input === undefined) {
      occurrence = { subject: definition.subject, slotKey: slotKeyOf(slotMs) };
      const event = { ...schedulerInput([definition.subject]), scheduledTime: shortIsoOf(slotMs) };
      await dispatch(deps, event, `delivery-${deliveries}`);
    } else if (slotMs !== undefined || occurrence === undefined) {
      const answer = await makeRunByHand(deps)({
        job: definition,
        ...(slotMs === undefined ? {} : { slotMs }),
        ...(input === undefined ? {} : { input }),
      });
      occurrence = readRunId(answer.runId);
    }
  };

  const toEnd = async (copies: number): Promise<RunView> => {
    copy(copies);
    const wanted = copies === 1 ? Number(deliveries === 0) : copies;
    for (let n = 0; n < wanted; n++) await deliver();
    for (;;) {
      await settle();
      if (working.size > 0) {
        await Promise.race(working);
        continue;
      }
      const run = await view();
      const over = run !== undefined && (isTerminal(run.state) || run.state === "parked");
      // What is left to happen after the end, such as a message that comes back, happens with the clock.
      if (over || !(await time.step(Number.POSITIVE_INFINITY))) return ended(run);
    }
  };
  return { toEnd, view };
};

const ended = (run: RunView | undefined): RunView => {
  if (run === undefined) throw new Error("the job has no run: its schedule does not fire here");
  return run;
};
