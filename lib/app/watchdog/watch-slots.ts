import { type Occurrence, runIdOf, slotKeyOf, slotMsOf } from "../../core/identity.ts";
import { runKey, slotKeyInSortKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { slotsToCatchUp } from "../../core/jobs/misfire.ts";
import { isMonitor, pingDueMs } from "../../core/monitors/monitor.ts";
import { markAbsent } from "../../core/runs/marks.ts";
import { isTerminal } from "../../core/runs/run.ts";
import { claim } from "../../core/runs/transitions.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { claimAndSend } from "../path/claims.ts";
import { catchesUpInLine, isLocked, listedInLock } from "../path/lock-keeper.ts";
import type { Subject } from "../subjects.ts";
import { eachInTurn, type Failure } from "./each-in-turn.ts";
import { look, lookAt, noteAsk, type OpenRun } from "./looks.ts";
import { type Pass, see } from "./pass.ts";
import { endSilentRun } from "./silent-runs.ts";

/** So many missed slots in a row have a record each; more share one. */
const MAX_MISSED_RECORDS = 1_000;

/** A subject, and the slots of it that a pass compares with the records. */
export interface DueSlots {
  readonly subject: Subject;
  /** Those that its schedule names, ascending. */
  readonly slots: readonly number[];
  /** Those that somebody may have claimed, although its schedule does not name them any more. */
  readonly strays?: readonly number[];
}

/** By partition key, then by slot key. Records that only count duplicates are none. */
type Runs = ReadonlyMap<string, ReadonlyMap<string, Item>>;

const readRuns = async ({ table }: Deps, all: readonly DueSlots[]): Promise<Runs> => {
  const keys = all.flatMap(({ subject, slots, strays = [] }) =>
    [...slots, ...strays].map((slotMs) =>
      runKey({ subject: subject.job.subject, slotKey: slotKeyOf(slotMs) }),
    ),
  );
  const items = keys.length === 0 ? [] : await table.getMany(keys);
  const partitions = Map.groupBy(items, (item) => String(item["pk"]));
  return new Map(
    [...partitions].map(([pk, runs]) => [
      pk,
      new Map(runs.map((run) => [slotKeyInSortKey(String(run["sk"])), run])),
    ]),
  );
};

/** Compares slots with their records, and mends what did not happen; one request reads all records. Answers what was thrown. */
export const lookAtDue = async (
  deps: Deps,
  pass: Pass,
  all: readonly DueSlots[],
  keep?: (due: DueSlots) => void,
): Promise<readonly Failure[]> => {
  const runs = await readRuns(deps, all);
  return eachInTurn(all, (due) => lookAtSubject(deps, pass, due, runs), keep);
};

const NO_RUNS: ReadonlyMap<string, Item> = new Map();

const lookAtSubject = async (
  deps: Deps,
  pass: Pass,
  { subject, slots, strays = [] }: DueSlots,
  all: Runs,
): Promise<void> => {
  const { job } = subject;
  if (slots.length + strays.length === 0) return;
  const runs = all.get(runKey({ subject: job.subject, slotKey: "" }).pk) ?? NO_RUNS;
  const looked = [...slots, ...strays];
  const recorded = looked.filter((slotMs) => runs.get(slotKeyOf(slotMs))?.["st"] !== undefined);
  const claimed = await claimedOf(deps, job, looked.length > recorded.length);
  const isInRange = rangesIn(runs);
  const missing: number[] = [];
  for (const slotMs of looked) {
    const occurrence = { subject: job.subject, slotKey: slotKeyOf(slotMs) };
    const run = runs.get(occurrence.slotKey);
    if (run?.["st"] === undefined && !claimed.has(occurrence.slotKey)) {
      if (!isInRange(slotMs) && !strays.includes(slotMs)) missing.push(slotMs);
      continue;
    }
    await lookAtRecorded(deps, pass, { job, occurrence, run });
  }
  await mendMissing(deps, subject, { pass, slots, missing });
};

/** A record, or a claim. What a monitor told is judged as it is after the look: nobody else ends its run. */
const lookAtRecorded = async (deps: Deps, pass: Pass, { job, occurrence, run }: OpenRun): Promise<void> => {
  if (isMonitor(job) && run !== undefined) {
    see(pass, occurrence, await endSilentRun(deps, { job, occurrence, run }));
    return;
  }
  see(pass, occurrence, run);
  if (!isTerminal(String(run?.["st"]))) await look(deps, { job, occurrence, run });
};

/** A monitor's slot that somebody noted for a look: without a ping by now it is missed. */
export const lookAtMonitor = (deps: Deps, pass: Pass, subject: Subject, open: OpenRun): Promise<void> => {
  if (open.run?.["st"] !== undefined) return lookAtRecorded(deps, pass, open);
  const slots = [slotMsOf(open.occurrence.slotKey)];
  return mendMissing(deps, subject, { pass, slots, missing: slots });
};

/** Does one of these records stand for the slot too? So it is when a pass is repeated that has recorded a range. */
const rangesIn = (runs: ReadonlyMap<string, Item>): ((slotMs: number) => boolean) => {
  const ranges = [...runs]
    .filter(([, run]) => run["rangeFromMs"] !== undefined)
    .map(([slotKey, run]) => ({ fromMs: Number(run["rangeFromMs"]), lastMs: slotMsOf(slotKey) }));
  return (slotMs) => ranges.some(({ fromMs, lastMs }) => fromMs <= slotMs && slotMs <= lastMs);
};

/** Slot keys that the job's lock lists: claimed, although they have no record before they start. */
const claimedOf = async (
  { table }: Deps,
  job: JobDefinition,
  wanted: boolean,
): Promise<ReadonlySet<string>> => {
  if (!wanted || !isLocked(job)) return new Set();
  return listedInLock(table, job.subject);
};

interface Missing {
  readonly pass: Pass;
  /** Every slot that the pass looks at, ascending. */
  readonly slots: readonly number[];
  /** Those without a record. */
  readonly missing: readonly number[];
}

const mendMissing = async (deps: Deps, subject: Subject, all: Missing): Promise<void> => {
  const { pass, slots, missing } = all;
  const { job } = subject;
  if (missing.length === 0) return;
  const reasons = new Map(missing.map((slotMs) => [slotMs, subject.reasonNotToClaim(slotMs)]));
  const wanted = missing.filter((slotMs) => reasons.get(slotMs) === undefined);
  const toRun = new Set(
    slotsToCatchUp({
      slots: wanted,
      misfire: job.misfire,
      startDeadlineMs: job.startDeadlineMs,
      nowMs: pass.nowMs,
      next: (slotMs) => subject.schedule?.next(slotMs),
    }),
  );
  for (const reason of new Set(reasons.values())) {
    if (reason === undefined) continue;
    const skipped = new Set(missing.filter((slotMs) => reasons.get(slotMs) === reason));
    for (const row of inARow(slots, skipped)) {
      await markAll(deps, job, { pass, slots: row, state: "skipped", reason });
    }
  }
  const awaited = new Set(wanted.filter((slotMs) => isMonitor(job) && pingDueMs(job, slotMs) > pass.nowMs));
  for (const slotMs of awaited) {
    await lookAt(deps, { subject: job.subject, slotKey: slotKeyOf(slotMs) }, { atMs: slotMs + job.graceMs });
  }
  const missed = new Set(wanted.filter((slotMs) => !toRun.has(slotMs) && !awaited.has(slotMs)));
  const reason = isMonitor(job) ? "no ping came in time" : "nothing dispatched it in time";
  for (const row of inARow(slots, missed)) {
    await markAll(deps, job, { pass, slots: row, state: "missed", reason });
  }
  for (const slotMs of toRun) await catchUp(deps, job, pass, slotMs);
};

/** Groups of chosen slots with no other slot between them, ascending. */
const inARow = (slots: readonly number[], chosen: ReadonlySet<number>): number[][] => {
  const rows: number[][] = [];
  let previousChosen = false;
  for (const slotMs of slots) {
    const isChosen = chosen.has(slotMs);
    if (isChosen && previousChosen) rows.at(-1)?.push(slotMs);
    else if (isChosen) rows.push([slotMs]);
    previousChosen = isChosen;
  }
  return rows;
};

interface Marks {
  readonly pass: Pass;
  readonly slots: readonly number[];
  readonly state: "missed" | "skipped";
  readonly reason: string;
}

const markRange = async (
  deps: Deps,
  job: JobDefinition,
  { pass, slots, state, reason }: Marks,
): Promise<number> => {
  const [fromMs] = slots;
  // A slot that was claimed since the look refuses to stand for the row; then the one before it does.
  for (let count = slots.length; count > 0; count--) {
    const lastMs = slots[count - 1];
    if (fromMs === undefined || lastMs === undefined) break;
    const occurrence = { subject: job.subject, slotKey: slotKeyOf(lastMs) };
    const answer = await deps.table.write(
      markAbsent({
        occurrence,
        state,
        reason,
        nowMs: deps.clock.nowMs(),
        trigger: "watchdog",
        ...(count > 1 ? { range: { count, fromMs } } : {}),
      }),
    );
    // Refused: somebody else has it; that record is seen at the next look, if it is not over.
    if (answer.written) see(pass, occurrence, answer.item);
    if (answer.written) return count;
  }
  return 0;
};

const markEach = async (deps: Deps, job: JobDefinition, marks: Marks): Promise<number> => {
  let count = 0;
  for (const slotMs of marks.slots) count += await markRange(deps, job, { ...marks, slots: [slotMs] });
  return count;
};

const markAll = async (deps: Deps, job: JobDefinition, marks: Marks): Promise<void> => {
  const { slots, state, reason } = marks;
  const [firstMs] = slots;
  const lastMs = slots.at(-1);
  if (firstMs === undefined || lastMs === undefined) return;
  const mark = slots.length > MAX_MISSED_RECORDS ? markRange : markEach;
  const count = await mark(deps, job, marks);
  if (count === 0) return;
  deps.journal.notice(state === "missed" ? "warn" : "info", state, {
    job: job.name,
    count,
    from: shortIsoOf(firstMs),
    to: shortIsoOf(lastMs),
    reason,
  });
};

/** T1: makes the record; false = the occurrence has one by now. */
const isFirst = async ({ table, clock }: Deps, occurrence: Occurrence, token: string): Promise<boolean> => {
  const answer = await table.write(claim({ occurrence, token, nowMs: clock.nowMs(), trigger: "watchdog" }));
  return answer.written || answer.item?.["own"] === token;
};

/** What EventBridge did not deliver, the watchdog dispatches in its place. */
const catchUp = async (deps: Deps, job: JobDefinition, pass: Pass, slotMs: number): Promise<void> => {
  const occurrence = { subject: job.subject, slotKey: slotKeyOf(slotMs) };
  const queuedAtMs = deps.clock.nowMs();
  // Noted first: a crash after the claim must not leave a run that nobody looks at.
  await noteAsk(deps, occurrence, 1);
  const token = deps.random.token();
  const recorded = catchesUpInLine(job);
  if (recorded && !(await isFirst(deps, occurrence, token))) return;
  const ask = { job, occurrence, epoch: 1, trigger: "watchdog", queuedAtMs, recorded } as const;
  const outcome = await claimAndSend(deps, ask, token).catch((error: unknown) => {
    // Whatever came of it, nothing has started: a slot whose grace is over is late.
    see(pass, occurrence, undefined);
    throw error;
  });
  if (outcome === "claimed" || outcome === "waiting") see(pass, occurrence, undefined);
  deps.journal.notice("warn", "caught-up", { runId: runIdOf(occurrence), outcome });
};
