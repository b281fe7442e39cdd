import { type Occurrence, runIdOf, slotKeyOf, slotMsOf } from "../core/identity.ts";
import {
  CONTROL_KEY,
  CURSOR_KEY,
  HEALTH_NOTE,
  OLDEST_DELIVERY_MS,
  occurrenceInOpenKey,
  openRanges,
  runKey,
} from "../core/items.ts";
import type { JobDefinition } from "../core/job.ts";
import { markAbsent } from "../core/marks.ts";
import { slotsToCatchUp } from "../core/misfire.ts";
import { isTerminal } from "../core/run.ts";
import { shortIsoOf } from "../core/time.ts";
import { claim } from "../core/transitions.ts";
import { absent, equals, type Item, set } from "../core/write.ts";
import { lastPassMs, noteFailedPass, tellOfAbsence } from "./absence.ts";
import { claimAndSend } from "./claims.ts";
import { reasonNotToClaim } from "./control.ts";
import { type ScheduleSince, syncDefinitions } from "./definitions.ts";
import type { Deps } from "./deps.ts";
import { eachInTurn } from "./each-in-turn.ts";
import { keepHealth, type Sighting } from "./health.ts";
import { catchesUpInLine, isLocked, listedInLock } from "./lock-keeper.ts";
import { keepPromise, look, noteAsk, type Promised, promisedIn } from "./looks.ts";
import { endOrphan } from "./removed-jobs.ts";
import { continueSeries } from "./series.ts";

/** So many missed slots in a row have a record each; more share one. */
const MAX_MISSED_RECORDS = 1_000;

/** Up to where earlier passes have looked: at slots, and at the notes of what to look at. */
interface Cursor {
  readonly slotsUntilMs: number;
  readonly notesUntilMs: number;
  readonly lastPassMs?: number;
}

/** What one pass looks at: everything between the last pass and now, each range half-open. */
interface Pass {
  readonly from: Cursor;
  readonly until: Cursor;
  readonly nowMs: number;
  readonly since: ScheduleSince;
  readonly control: Item | undefined;
  /** What the pass has come across so far. */
  readonly sightings: Map<string, Sighting[]>;
  /** Subjects whose health was noted for a look. */
  readonly noted: Set<string>;
}

const see = ({ sightings }: Pass, occurrence: Occurrence, run: Item | undefined): void => {
  const seen = sightings.get(occurrence.subject);
  if (seen === undefined) sightings.set(occurrence.subject, [{ occurrence, run }]);
  else seen.push({ occurrence, run });
};

/**
 * One pass of the watchdog: compares the slots that the definitions expect with the records, from where the last pass
 * ended, and mends what did not happen. Everything it does is a transition that any number of processes may try, so
 * two passes at once, or one that is repeated after a crash, do no harm. The first pass ever only sets the cursor.
 */
export const watch = async (deps: Deps): Promise<void> => {
  const since = await syncDefinitions(deps);
  const nowMs = deps.clock.nowMs();
  const { firstLookMs, clockBoundMs } = deps.timings;
  const until = { slotsUntilMs: nowMs - firstLookMs, notesUntilMs: nowMs - clockBoundMs };
  const from = await readCursor(deps, until);
  const control = await deps.table.get(CONTROL_KEY, { consistent: false });
  await tellOfAbsence(deps, from.lastPassMs);
  const pass: Pass = { from, until, nowMs, since, control, sightings: new Map(), noted: new Set() };
  const firing = deps.jobs.all.filter((job) => deps.jobs.firesHere(job));
  const failures = [
    ...(await eachInTurn(firing, (job) => lookAtSlots(deps, job, pass))),
    ...(await lookAtNotes(deps, pass)),
    ...(await keepHealth(deps, pass)),
    ...(await continueSeries(deps)),
  ];
  // The cursor stays, so that the next pass looks again; what went well is found done then.
  if (failures.length > 0) await noteFailedPass(deps, from.slotsUntilMs);
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} looks of this pass failed`);
  await moveCursor(deps, from, until);
};

const readCursor = async ({ table, timings }: Deps, first: Cursor): Promise<Cursor> => {
  const changes = [set("doneUntilMs", first.slotsUntilMs), set("notesUntilMs", first.notesUntilMs)];
  const answer = await table.write({ key: CURSOR_KEY, condition: absent("doneUntilMs"), changes });
  if (answer.written) return first;
  const lastMs = lastPassMs(answer.item, timings.firstLookMs);
  return {
    slotsUntilMs: Number(answer.item?.["doneUntilMs"]),
    notesUntilMs: Number(answer.item?.["notesUntilMs"]),
    ...(lastMs === undefined ? {} : { lastPassMs: lastMs }),
  };
};

/** Forward, and only from where this pass began: another pass may have been further already. */
const moveCursor = async ({ table }: Deps, from: Cursor, until: Cursor): Promise<void> => {
  if (until.slotsUntilMs <= from.slotsUntilMs) return;
  await table.write({
    key: CURSOR_KEY,
    condition: equals("doneUntilMs", from.slotsUntilMs),
    changes: [set("doneUntilMs", until.slotsUntilMs), set("notesUntilMs", until.notesUntilMs)],
  });
};

const lookAtSlots = async (deps: Deps, job: JobDefinition, pass: Pass): Promise<void> => {
  const sinceMs = pass.since.get(job.subject) ?? pass.nowMs;
  const fromMs = Math.max(pass.from.slotsUntilMs, sinceMs, pass.nowMs - OLDEST_DELIVERY_MS);
  const slots = [...(deps.jobs.scheduleOf(job)?.slots(fromMs, pass.until.slotsUntilMs) ?? [])];
  if (slots.length === 0) return;
  const runs = await runsOf(deps, job, slots.map(slotKeyOf));
  const recorded = slots.filter((slotMs) => runs.get(slotKeyOf(slotMs))?.["st"] !== undefined);
  const claimed = await claimedOf(deps, job, slots.length > recorded.length);
  const isInRange = rangesIn(runs);
  const missing: number[] = [];
  for (const slotMs of slots) {
    const occurrence = { subject: job.subject, slotKey: slotKeyOf(slotMs) };
    const run = runs.get(occurrence.slotKey);
    if (run?.["st"] === undefined && !claimed.has(occurrence.slotKey)) {
      if (!isInRange(slotMs)) missing.push(slotMs);
      continue;
    }
    see(pass, occurrence, run);
    if (!isTerminal(String(run?.["st"]))) await look(deps, { job, occurrence, run });
  }
  await mendMissing(deps, job, { pass, slots, missing });
};

/** By slot key; records that only count duplicates are none. */
const runsOf = async (
  { table }: Deps,
  { subject }: JobDefinition,
  slotKeys: readonly string[],
): Promise<ReadonlyMap<string, Item>> => {
  const items = await table.getMany(slotKeys.map((slotKey) => runKey({ subject, slotKey })));
  return new Map(items.map((item) => [String(item["sk"]).slice(2), item]));
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

const mendMissing = async (deps: Deps, job: JobDefinition, all: Missing): Promise<void> => {
  const { pass, slots, missing } = all;
  if (missing.length === 0) return;
  const reasons = new Map(missing.map((slotMs) => [slotMs, reasonNotToClaim(pass.control, job, slotMs)]));
  const wanted = missing.filter((slotMs) => reasons.get(slotMs) === undefined);
  const toRun = new Set(
    slotsToCatchUp({
      slots: wanted,
      misfire: job.misfire,
      startDeadlineMs: job.startDeadlineMs,
      nowMs: pass.nowMs,
      next: (slotMs) => deps.jobs.scheduleOf(job)?.next(slotMs),
    }),
  );
  for (const reason of new Set(reasons.values())) {
    if (reason === undefined) continue;
    const skipped = new Set(missing.filter((slotMs) => reasons.get(slotMs) === reason));
    for (const row of inARow(slots, skipped)) {
      await markAll(deps, job, { pass, slots: row, state: "skipped", reason });
    }
  }
  const missed = new Set(wanted.filter((slotMs) => !toRun.has(slotMs)));
  for (const row of inARow(slots, missed)) {
    await markAll(deps, job, { pass, slots: row, state: "missed", reason: "nothing dispatched it in time" });
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

/** The runs that somebody noted for a look in this pass: by hand, retried, or not over at an earlier look. */
const lookAtNotes = async (deps: Deps, pass: Pass): Promise<readonly unknown[]> => {
  const { from, until, nowMs } = pass;
  const fromMs = Math.max(from.notesUntilMs, nowMs - OLDEST_DELIVERY_MS);
  if (until.notesUntilMs <= fromMs) return [];
  const notes = await Promise.all(
    openRanges(fromMs, until.notesUntilMs).map((range) => deps.table.query(range)),
  );
  const { runs: noted, health } = sorted(notes.flat());
  for (const subject of health) pass.noted.add(subject);
  const runs = new Map(
    (await deps.table.getMany([...noted.values()].map(({ occurrence }) => runKey(occurrence)))).map((run) => [
      `${run["pk"]}/${run["sk"]}`,
      run,
    ]),
  );
  return eachInTurn(noted.values(), async ({ occurrence, promised }) => {
    const job = deps.jobs.bySubject(occurrence.subject);
    const { pk, sk } = runKey(occurrence);
    const run = runs.get(`${pk}/${sk}`);
    await keepPromise(deps, { occurrence, run }, promised);
    if (job === undefined) return endOrphan(deps, { occurrence, run });
    if (run?.["st"] !== undefined) see(pass, occurrence, run);
    const isListed = await look(deps, { job, occurrence, run });
    if (run?.["st"] === undefined && isListed) see(pass, occurrence, run);
  });
};

interface Note {
  readonly occurrence: Occurrence;
  readonly promised: Promised | undefined;
}

interface Notes {
  /** One note a run: of several, the one that promises the newest attempt set. */
  readonly runs: ReadonlyMap<string, Note>;
  readonly health: readonly string[];
}

const sorted = (items: readonly Item[]): Notes => {
  const noted = new Map<string, Note>();
  const health: string[] = [];
  for (const item of items) {
    const occurrence = occurrenceInOpenKey(String(item["sk"]));
    if (occurrence.slotKey === HEALTH_NOTE) {
      health.push(occurrence.subject);
      continue;
    }
    const promised = promisedIn(item);
    const known = noted.get(runIdOf(occurrence));
    if (known !== undefined && (promised?.epoch ?? 0) <= (known.promised?.epoch ?? 0)) continue;
    noted.set(runIdOf(occurrence), { occurrence, promised });
  }
  return { runs: noted, health };
};
