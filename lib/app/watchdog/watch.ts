import { type Occurrence, runIdOf } from "../../core/identity.ts";
import {
  CONTROL_KEY,
  CURSOR_KEY,
  HEALTH_NOTE,
  OLDEST_DELIVERY_MS,
  occurrenceInOpenKey,
  openRanges,
  runKey,
} from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { isMonitor } from "../../core/monitors/monitor.ts";
import { absent, type Change, equals, type Item, isMap, remove, set } from "../../core/write.ts";
import { syncDefinitions } from "../definitions.ts";
import type { Deps } from "../deps.ts";
import { closeHealth } from "../health/close-health.ts";
import { keepHealth } from "../health/health.ts";
import { noteOpenRuns } from "../path/open-runs.ts";
import { continueSeries } from "../series/series.ts";
import { type Subject, subjectOfJob, subjectsNamed } from "../subjects.ts";
import { lastPassMs, noteAtWork, tellOfAbsence } from "./absence.ts";
import { lookAtAgenda } from "./agenda.ts";
import { eachInTurn, type Failure, keptElsewhere, throwAny } from "./each-in-turn.ts";
import { keepPromise, look, lookAt, type Promised, promisedIn } from "./looks.ts";
import { type Cursor, type Pass, see } from "./pass.ts";
import { endOrphan } from "./removed-jobs.ts";
import { type DueSlots, lookAtDue, lookAtMonitor } from "./watch-slots.ts";

/**
 * One pass of the watchdog: compares the slots that the definitions expect with the records, from where the last pass
 * ended, and mends what did not happen. Everything it does is a transition that any number of processes may try, so
 * two passes at once, or one that is repeated after a crash, do no harm. The first pass ever only sets the cursor.
 */
export const watch = async (deps: Deps): Promise<void> => {
  const { since, changed } = await syncDefinitions(deps);
  const nowMs = deps.clock.nowMs();
  const { firstLookMs, clockBoundMs } = deps.timings;
  const behind = new Map<string, number>();
  const until = { slotsUntilMs: nowMs - firstLookMs, notesUntilMs: nowMs - clockBoundMs, behind };
  const from = await readCursor(deps, until);
  const control = await deps.table.get(CONTROL_KEY, { consistent: false });
  await tellOfAbsence(deps, from);
  const pass: Pass = {
    from,
    until,
    nowMs,
    since,
    changed,
    control,
    behind,
    sightings: new Map(),
    noted: new Set(),
    subjects: new Map(),
  };
  const firing = deps.jobs.all.filter((job) => deps.jobs.firesHere(job));
  const failures = [
    ...(await lookBackAtChanges(deps, pass)),
    ...(await lookAtSlots(deps, firing, pass)),
    ...keptElsewhere(await lookAtAgenda(deps, pass)),
    ...(await lookAtNotes(deps, pass)),
    ...(await keepHealth(deps, pass)),
    ...(await closeHealth(deps, pass)),
    ...keptElsewhere(await continueSeries(deps)),
  ];
  // One that fails for long must not make each pass look at ever more of all the others.
  if (failures.every(({ isKept }) => isKept)) await moveCursor(deps, from, until);
  else await noteAtWork(deps);
  throwAny(failures);
};

const readCursor = async ({ table, timings }: Deps, first: Cursor): Promise<Cursor> => {
  const changes = [set("doneUntilMs", first.slotsUntilMs), set("notesUntilMs", first.notesUntilMs)];
  const answer = await table.write({ key: CURSOR_KEY, condition: absent("doneUntilMs"), changes });
  if (answer.written) return first;
  const lastMs = lastPassMs(answer.item, timings.firstLookMs);
  return {
    slotsUntilMs: Number(answer.item?.["doneUntilMs"]),
    notesUntilMs: Number(answer.item?.["notesUntilMs"]),
    behind: behindIn(answer.item),
    ...(lastMs === undefined ? {} : { lastPassMs: lastMs }),
  };
};

const behindIn = (item: Item | undefined): ReadonlyMap<string, number> => {
  const behind = item?.["behind"];
  return new Map(isMap(behind) ? Object.entries(behind).map(([subject, ms]) => [subject, Number(ms)]) : []);
};

/** Forward, and only from where this pass began: another pass may have been further already. */
const moveCursor = async ({ table }: Deps, from: Cursor, until: Cursor): Promise<void> => {
  if (until.slotsUntilMs <= from.slotsUntilMs) return;
  await table.write({
    key: CURSOR_KEY,
    condition: equals("doneUntilMs", from.slotsUntilMs),
    changes: [
      set("doneUntilMs", until.slotsUntilMs),
      set("notesUntilMs", until.notesUntilMs),
      ...behindChanges(from, until),
    ],
  });
};

const behindChanges = (from: Cursor, until: Cursor): readonly Change[] => {
  if (until.behind.size > 0) return [set("behind", Object.fromEntries(until.behind))];
  return from.behind.size > 0 ? [remove("behind")] : [];
};

/**
 * Once more, when older code can no longer be at work: a dispatcher of the deployment before may have claimed a slot
 * after the change was seen, and ended before its send. Nobody else looks at slots from before a change.
 */
const lookBackAtChanges = (deps: Deps, { changed, from, until }: Pass): Promise<readonly Failure[]> => {
  const passed = [...changed].filter(
    ([, changedMs]) => from.slotsUntilMs < changedMs && changedMs <= until.slotsUntilMs,
  );
  return eachInTurn(passed, ([subject]) => noteOpenRuns(deps, subject));
};

/** As many slots as one request reads the records of. */
const SLOTS_TOGETHER = 100;

const lookAtSlots = async (
  deps: Deps,
  firing: readonly JobDefinition[],
  pass: Pass,
): Promise<readonly Failure[]> => {
  const failures: Failure[] = [];
  let due: DueSlots[] = [];
  let count = 0;
  const keep = ({ subject }: DueSlots): void =>
    void pass.behind.set(subject.job.subject, lookedUntilMs(pass, subject.job));
  const lookAtThem = async (): Promise<void> => {
    failures.push(
      ...(await lookAtDue(deps, pass, due, keep).catch((error: unknown) => {
        due.forEach(keep);
        return [{ error, isKept: true }];
      })),
    );
    due = [];
    count = 0;
  };
  for (const job of firing) {
    const one = dueOf(deps, job, pass);
    pass.subjects.set(job.subject, one.subject);
    if (one.slots.length > 0) due.push(one);
    count += one.slots.length;
    if (count >= SLOTS_TOGETHER) await lookAtThem();
  }
  await lookAtThem();
  return failures;
};

const lookedUntilMs = ({ from }: Pass, { subject }: JobDefinition): number =>
  from.behind.get(subject) ?? from.slotsUntilMs;

const dueOf = (deps: Deps, job: JobDefinition, pass: Pass): DueSlots => {
  const subject = subjectOfJob(deps, job, pass.control);
  const sinceMs = pass.since.get(job.subject) ?? pass.nowMs;
  const fromMs = Math.max(lookedUntilMs(pass, job), sinceMs, pass.nowMs - OLDEST_DELIVERY_MS);
  return { subject, slots: [...(subject.schedule?.slots(fromMs, pass.until.slotsUntilMs) ?? [])] };
};

/** The runs that somebody noted for a look in this pass: by hand, retried, or not over at an earlier look. */
const lookAtNotes = async (deps: Deps, pass: Pass): Promise<readonly Failure[]> => {
  const { from, until, nowMs } = pass;
  const fromMs = Math.max(from.notesUntilMs, nowMs - OLDEST_DELIVERY_MS);
  if (until.notesUntilMs <= fromMs) return [];
  const notes = await Promise.all(
    openRanges(fromMs, until.notesUntilMs).map((range) => deps.table.query(range)),
  );
  const { runs: noted, health } = sorted(notes.flat());
  for (const subject of health) pass.noted.add(subject);
  const subjects = await readSubjects(deps, pass, [
    ...health,
    ...[...noted.values()].map(({ occurrence }) => occurrence.subject),
  ]);
  const runs = new Map(
    (await deps.table.getMany([...noted.values()].map(({ occurrence }) => runKey(occurrence)))).map((run) => [
      `${run["pk"]}/${run["sk"]}`,
      run,
    ]),
  );
  const lookAtNote = async ({ occurrence, promised }: Note): Promise<void> => {
    const subject = subjects.get(occurrence.subject);
    const job = subject?.job;
    const { pk, sk } = runKey(occurrence);
    const run = runs.get(`${pk}/${sk}`);
    await keepPromise(deps, { occurrence, run }, promised);
    if (subject === undefined || job === undefined) return endOrphan(deps, { occurrence, run });
    if (isMonitor(job)) return lookAtMonitor(deps, pass, subject, { job, occurrence, run });
    if (run?.["st"] !== undefined) see(pass, occurrence, run);
    const isListed = await look(deps, { job, occurrence, run });
    if (run?.["st"] === undefined && isListed) see(pass, occurrence, run);
  };
  return eachInTurn(noted.values(), lookAtNote, ({ occurrence, promised }) =>
    lookAt(deps, occurrence, { atMs: nowMs, ...(promised === undefined ? {} : { promised }) }),
  );
};

/** All that are named, those of the pass included. */
const readSubjects = async (
  deps: Deps,
  { subjects, control }: Pass,
  names: readonly string[],
): Promise<ReadonlyMap<string, Subject>> => {
  const unread = names.filter((name) => !subjects.has(name));
  for (const [name, subject] of await subjectsNamed(deps, unread, control)) subjects.set(name, subject);
  return subjects;
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
