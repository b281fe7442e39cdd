import { duplicatesOf } from "../app/inspect/run-view.ts";
import { type Occurrence, runIdOf, slotMsOf } from "../core/identity.ts";
import { runRange, slotKeyInSortKey } from "../core/items.ts";
import { scheduleOfJob } from "../core/jobs/job-list.ts";
import { isTerminal, type RunState } from "../core/runs/run.ts";
import { shortIsoOf } from "../core/time.ts";
import type { Item } from "../core/write.ts";
import type { Expected } from "./invariants.ts";
import type { Story } from "./story.ts";

/** What became of the slots of one job. Spans are in milliseconds on the virtual clock. */
export interface JobReport {
  readonly job: string;
  readonly timezone: string;
  readonly slots: number;
  /** How many ended so; what is not over is `open`. */
  readonly succeeded: number;
  readonly dead: number;
  readonly skipped: number;
  readonly missed: number;
  readonly expired: number;
  readonly cancelled: number;
  readonly parked: number;
  readonly open: number;
  /** Why slots were skipped, missed, expired or cancelled, and how many for each reason. */
  readonly reasons: { readonly [reason: string]: number };
  /** Times that its handler was called, or would have been. */
  readonly calls: number;
  /** Attempts that failed. */
  readonly failures: number;
  /** Attempts whose worker was lost. */
  readonly crashes: number;
  /** Runs that the watchdog had to dispatch. */
  readonly catchUps: number;
  /** Deliveries beyond the first. */
  readonly duplicates: number;
  /** From a slot to its first start, and from that to the end; null = nothing ran. */
  readonly longestWaitMs: number | null;
  readonly longestRunMs: number | null;
  /** Side effects of `once`, and how often one was done again, by a run killed before it was recorded. */
  readonly effects: number;
  readonly repeatedEffects: number;
  /** Clock changes that its schedule meets, in words. */
  readonly clockChanges: readonly string[];
}

export interface DeadRun {
  readonly runId: string;
  readonly job: string;
  readonly slot: string;
  readonly reason: string | null;
  readonly error: { readonly name: string; readonly message: string } | null;
}

export interface SimulationReport {
  readonly jobs: readonly JobReport[];
  readonly deadRuns: readonly DeadRun[];
  /** How often each kind of fault struck. */
  readonly faults: { readonly [kind: string]: number };
  /** Promises that did not hold, in words; there should be none. */
  readonly broken: readonly string[];
}

interface Run {
  readonly occurrence: Occurrence;
  readonly item: Item;
}

const numberIn = (item: Item, name: string): number => Number(item[name] ?? 0);
const sumOf = (runs: readonly Run[], name: string): number =>
  runs.reduce((sum, { item }) => sum + numberIn(item, name), 0);
/** A record may stand for several slots in a row. */
const slotsOf = (runs: readonly Run[]): number =>
  runs.reduce((sum, { item }) => sum + Number(item["rangeCount"] ?? 1), 0);

const longest = (runs: readonly Run[], spanOf: (run: Run) => number): number | null =>
  runs.length === 0 ? null : runs.reduce((most, run) => Math.max(most, spanOf(run)), 0);

const reasonsOf = (runs: readonly Run[]): { readonly [reason: string]: number } => {
  const withReason = runs.filter(({ item }) => item["reason"] !== undefined && item["st"] !== "dead");
  const groups = Map.groupBy(withReason, ({ item }) => `${item["st"]}: ${item["reason"]}`);
  return Object.fromEntries([...groups].map(([reason, some]) => [reason, slotsOf(some)]));
};

const runsOf = async ({ world }: Story, { job: { subject } }: Expected): Promise<readonly Run[]> => {
  const items = await world.stored.query(runRange(subject));
  return items
    .filter((item) => item["st"] !== undefined)
    .map((item) => ({ occurrence: { subject, slotKey: slotKeyInSortKey(String(item["sk"])) }, item }));
};

const spansOf = (runs: readonly Run[]) => {
  const started = runs.filter(({ item }) => item["startedAtMs"] !== undefined);
  const ended = started.filter(({ item }) => item["endedAtMs"] !== undefined);
  return {
    longestWaitMs: longest(started, ({ occurrence, item }) =>
      Math.max(0, numberIn(item, "startedAtMs") - slotMsOf(occurrence.slotKey)),
    ),
    longestRunMs: longest(ended, ({ item }) => numberIn(item, "endedAtMs") - numberIn(item, "startedAtMs")),
  };
};

const effectsOf = ({ world }: Story, runs: readonly Run[]) => {
  const ids = new Set(runs.map(({ occurrence }) => runIdOf(occurrence)));
  // Of a shard it is the run's id, and the shard's number behind a slash.
  const done = world.effects.filter(({ runId }) => ids.has(runId.replace(/\/.*$/, "")));
  const effects = new Set(done.map(({ runId, key }) => `${runId} ${key}`)).size;
  return { effects, repeatedEffects: done.length - effects };
};

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

const jobReport = (story: Story, expected: Expected, runs: readonly Run[], range: Range): JobReport => {
  const { job, slots } = expected;
  const inState = (state: RunState): number => slotsOf(runs.filter(({ item }) => item["st"] === state));
  const changes = scheduleOfJob(job)?.schedules.flatMap((schedule) =>
    schedule.clockChanges(range.fromMs, range.toMs),
  );
  const over = slotsOf(runs.filter(({ item }) => isTerminal(String(item["st"])) || item["st"] === "parked"));
  return {
    job: job.name,
    timezone: job.timezone,
    slots: slots.length,
    succeeded: inState("succeeded"),
    dead: inState("dead"),
    skipped: inState("skipped"),
    missed: inState("missed"),
    expired: inState("expired"),
    cancelled: inState("cancelled"),
    parked: inState("parked"),
    open: slots.length - over,
    reasons: reasonsOf(runs),
    calls: story.world.executions.filter((execution) => execution.job === job.name).length,
    failures: sumOf(runs, "attempts"),
    crashes: sumOf(runs, "crashes"),
    catchUps: runs.filter(({ item }) => item["trigger"] === "watchdog" && item["startedAtMs"] !== undefined)
      .length,
    duplicates: runs.reduce((sum, { item }) => sum + duplicatesOf(item), 0),
    ...spansOf(runs),
    ...effectsOf(story, runs),
    clockChanges: [...new Set(changes?.map(({ message }) => message))],
  };
};

const errorOf = ({ item }: Run): DeadRun["error"] => {
  const error = item["error"];
  if (typeof error !== "object" || error === null) return null;
  const [name, message]: readonly unknown[] = [Reflect.get(error, "name"), Reflect.get(error, "message")];
  return { name: String(name), message: String(message) };
};

const deadRun = (job: string, run: Run): DeadRun => ({
  runId: runIdOf(run.occurrence),
  job,
  slot: shortIsoOf(slotMsOf(run.occurrence.slotKey)),
  reason: run.item["reason"] === undefined ? null : String(run.item["reason"]),
  error: errorOf(run),
});

/** By kind, wherever they struck. */
const faultsIn = (hits: ReadonlyMap<string, number>): { readonly [kind: string]: number } => {
  const kinds = Map.groupBy(hits, ([name]) => name.slice(0, name.indexOf(" ")));
  const counts = [...kinds].map(([kind, some]) => [kind, some.reduce((sum, [, n]) => sum + n, 0)] as const);
  return Object.fromEntries(counts.sort(([left], [right]) => (left < right ? -1 : 1)));
};

/** What happened in a story, job by job. */
export const reportOf = async (story: Story, range: Range): Promise<SimulationReport> => {
  const { expected, verdict, world } = story;
  const all = await Promise.all(
    expected.map(async (one) => ({ expected: one, runs: await runsOf(story, one) })),
  );
  return {
    jobs: all.map(({ expected: one, runs }) => jobReport(story, one, runs, range)),
    deadRuns: all.flatMap(({ expected: { job }, runs }) =>
      runs.filter(({ item }) => item["st"] === "dead").map((run) => deadRun(job.name, run)),
    ),
    faults: faultsIn(world.hits),
    broken: [...verdict.lost, ...verdict.doubled, ...verdict.stuck],
  };
};
