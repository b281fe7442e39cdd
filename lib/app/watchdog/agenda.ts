import {
  type Agenda,
  agendaIn,
  beginWalk,
  idsIn,
  minuteFrom,
  moveLooked,
  moveWalk,
  needsWalk,
  packedPages,
  type Walk,
} from "../../core/automations/agenda.ts";
import { type Automation, automationIn, slotsIn } from "../../core/automations/automation.ts";
import { messageOf } from "../../core/errors.ts";
import { automationSubject, slotKeyOf } from "../../core/identity.ts";
import {
  AGENDA_KEY,
  AUTOMATION_PARTS,
  automationKey,
  automationRange,
  dueRange,
  OLDEST_DELIVERY_MS,
  runKey,
} from "../../core/items.ts";
import { MINUTE_MS } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Deps } from "../deps.ts";
import { keepHealth } from "../health/health.ts";
import { subjectOfAutomation } from "../subjects.ts";
import { eachInTurn, type Failure } from "./each-in-turn.ts";
import type { Pass } from "./pass.ts";
import { endOrphan } from "./removed-jobs.ts";
import { type DueSlots, lookAtDue } from "./watch-slots.ts";

/** After an outage more is due than one pass can look at; the next one goes on. */
const LONGEST_LOOK_MS = 2 * MINUTE_MS;
/** Some 1,200 automations at a time. */
const PAGES_AT_ONCE = 20;

/** Where a look goes on: in the minute at that instant, after that page. */
interface Place {
  readonly lookedUntilMs: number;
  readonly lookedPage?: string;
}

/**
 * The watchdog's part for run-time schedules: of each minute that has come it reads the pages, then the records that they
 * name, compares their slots with the runs as is done for jobs, and judges their health. Then it plans on. It has a
 * place of its own in time, so that neither it nor the rest of the pass waits for what fails in the other. Answers what
 * was thrown. Where nobody ever made a run-time schedule it is one read.
 */
export const lookAtAgenda = async (deps: Deps, pass: Pass): Promise<readonly Failure[]> => {
  const own: Pass = { ...pass, sightings: new Map(), noted: new Set() };
  try {
    const agenda = agendaIn(await deps.table.get(AGENDA_KEY, { consistent: true }));
    if (agenda === undefined) return [];
    const { failures, reached } = await lookAtMinutes(deps, own, agenda);
    const unjudged = await keepHealth(deps, own);
    // Up to the first look that failed: after an outage no pass gets through all of it.
    if (unjudged.every(({ isKept }) => isKept)) await moveTo(deps, agenda, reached);
    await planOn(deps, agenda);
    return [...failures, ...unjudged];
  } catch (error) {
    return [{ error, isKept: true }];
  }
};

const moveTo = async ({ table }: Deps, agenda: Agenda, reached: Place): Promise<void> => {
  const isSame = reached.lookedUntilMs === agenda.lookedUntilMs && reached.lookedPage === agenda.lookedPage;
  if (!isSame) await table.write(moveLooked(agenda, reached));
};

const lookAtMinutes = async (deps: Deps, pass: Pass, agenda: Agenda) => {
  const untilMs = Math.min(pass.until.slotsUntilMs, agenda.plannedUntilMs);
  const stopAtMs = deps.clock.nowMs() + LONGEST_LOOK_MS;
  const failures: Failure[] = [];
  let place = firstPlace(agenda, pass.nowMs);
  let reached = place;
  while (place.lookedUntilMs < untilMs && deps.clock.nowMs() < stopAtMs) {
    try {
      const { pages, next } = await readPages(deps, place);
      const ids = new Set(pages.flatMap(idsIn));
      failures.push(...(await lookAtIds(deps, pass, { ids, minuteMs: place.lookedUntilMs })));
      place = next;
      if (failures.length === 0) reached = place;
    } catch (error) {
      return { failures: [...failures, { error, isKept: true }], reached };
    }
  }
  return { failures, reached };
};

const readPages = async ({ table }: Deps, { lookedUntilMs, lookedPage }: Place) => {
  const range = dueRange(lookedUntilMs, lookedPage);
  const pages = await table.query({ ...range, limit: PAGES_AT_ONCE });
  const last = pages.at(-1);
  const next: Place =
    pages.length < PAGES_AT_ONCE || last === undefined
      ? { lookedUntilMs: lookedUntilMs + MINUTE_MS }
      : { lookedUntilMs, lookedPage: String(last["sk"]) };
  return { pages, next };
};

/** Not further back than anybody may still dispatch. */
const firstPlace = ({ lookedUntilMs, lookedPage }: Agenda, nowMs: number): Place => {
  const oldestMs = minuteFrom(nowMs - OLDEST_DELIVERY_MS);
  if (lookedUntilMs < oldestMs) return { lookedUntilMs: oldestMs };
  return { lookedUntilMs, ...(lookedPage === undefined ? {} : { lookedPage }) };
};

interface Due {
  readonly ids: ReadonlySet<string>;
  readonly minuteMs: number;
}

const lookAtIds = async (deps: Deps, pass: Pass, { ids, minuteMs }: Due): Promise<readonly Failure[]> => {
  if (ids.size === 0) return [];
  const records = await deps.table.getMany([...ids].map(automationKey));
  const due = records.flatMap((record) => dueOf(deps, pass, { record, minuteMs }));
  const failures = await lookAtDue(deps, pass, due);
  const known = new Set(due.map(({ subject }) => subject.job.subject));
  const orphans = records.map(({ sk }) => automationSubject(String(sk))).filter((one) => !known.has(one));
  return [...failures, ...(await eachInTurn(orphans, (one) => endClaimed(deps, one, minuteMs)))];
};

/** Its job was removed: what was claimed before that ends, as the job's own runs do. */
const endClaimed = async (deps: Deps, subject: string, minuteMs: number): Promise<void> => {
  const occurrence = { subject, slotKey: slotKeyOf(minuteMs) };
  await endOrphan(deps, { occurrence, run: await deps.table.get(runKey(occurrence), { consistent: false }) });
};

/**
 * All its slots since that minute, so that its misfire policy sees an outage as a whole. The minute itself may be one
 * that it has no more: then whoever claimed it before the change is mended, and nothing is dispatched.
 */
const dueOf = (
  deps: Deps,
  pass: Pass,
  { record, minuteMs }: { readonly record: Item; readonly minuteMs: number },
): readonly DueSlots[] => {
  try {
    const subject = subjectOfAutomation(deps, record);
    if (subject?.schedule === undefined) return [];
    pass.subjects.set(subject.job.subject, subject);
    const slots = [...subject.schedule.slots(minuteMs, pass.until.slotsUntilMs)];
    return [{ subject, slots, strays: slots[0] === minuteMs ? [] : [minuteMs] }];
  } catch (error) {
    // One that nobody can read must not keep the watchdog from the others, nor for ever from what comes after it.
    deps.journal.notice("error", "automation-unreadable", {
      id: String(record["sk"]),
      why: messageOf(error),
    });
    return [];
  }
};

/** A piece is what one pass plans: so many records and slots, or for so long. */
const PIECE_SIZE = 200_000;
const LONGEST_PIECE_MS = MINUTE_MS;
const RECORDS_AT_ONCE = 1_000;
const WRITES_AT_ONCE = 16;

/** One piece of the walk that is on its way, or has to begin. */
const planOn = async (deps: Deps, agenda: Agenda): Promise<void> => {
  const nowMs = deps.clock.nowMs();
  if (needsWalk(agenda, nowMs)) {
    const { written, item } = await deps.table.write(beginWalk(agenda, nowMs));
    const begun = written ? agendaIn(item) : undefined;
    if (begun?.walk !== undefined) await planPiece(deps, begun.plannedUntilMs, begun.walk);
  } else if (agenda.walk !== undefined) {
    await planPiece(deps, agenda.plannedUntilMs, agenda.walk);
  }
};

const enter = (due: Map<number, string[]>, slotMs: number, id: string): void => {
  const ids = due.get(slotMs);
  if (ids === undefined) due.set(slotMs, [id]);
  else ids.push(id);
};

const planPiece = async (deps: Deps, fromMs: number, walk: Walk): Promise<void> => {
  const due = new Map<number, string[]>();
  const slotsOf = slotsIn(fromMs, walk.toMs);
  const stopAtMs = deps.clock.nowMs() + LONGEST_PIECE_MS;
  let size = 0;
  let { part, after }: { part: number; after?: string | undefined } = walk;
  while (part < AUTOMATION_PARTS && size < PIECE_SIZE && deps.clock.nowMs() < stopAtMs) {
    const records = await deps.table.query({ ...automationRange(part, after), limit: RECORDS_AT_ONCE });
    for (const record of records) {
      const slots = plannedSlots(deps, record, slotsOf);
      for (const slotMs of slots) enter(due, slotMs, String(record["sk"]));
      size += 1 + slots.length;
    }
    const isLast = records.length < RECORDS_AT_ONCE;
    part += isLast ? 1 : 0;
    after = isLast ? undefined : String(records.at(-1)?.["sk"]);
  }
  // All pages before the walk moves on: a crash in between repeats the piece.
  await eachAtOnce(packedPages(due, walk.piece), WRITES_AT_ONCE, async (page) => {
    await deps.table.write(page);
  });
  const next = { part, ...(after === undefined ? {} : { after }) };
  await deps.table.write(moveWalk(walk, part < AUTOMATION_PARTS ? next : undefined));
};

/** Of a record that no walk needs: none. */
const plannedSlots = (
  { journal }: Pick<Deps, "journal">,
  record: Item,
  slotsOf: (automation: Automation) => readonly number[],
): readonly number[] => {
  try {
    const automation = automationIn(record);
    return automation === undefined || automation.deletedAtMs !== undefined ? [] : slotsOf(automation);
  } catch (error) {
    journal.notice("error", "automation-unreadable", { id: String(record["sk"]), why: messageOf(error) });
    return [];
  }
};
