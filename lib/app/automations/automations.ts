import { ENTERED_AHEAD_MS, enterDue, openAgenda } from "../../core/automations/agenda.ts";
import {
  AUTOMATION_LIMITS,
  type Automation,
  type AutomationLimits,
  automationIn,
  checkAutomationId,
  checkAutomationInput,
  checkOwner,
  checkPeriod,
  createAutomation,
  currentPeriod,
  deleteAutomation,
  editAutomation,
  type Period,
} from "../../core/automations/automation.ts";
import { enterOwned, ownedIn, strikeOwned } from "../../core/automations/owner.ts";
import { Conflict, InvalidInput, Unavailable } from "../../core/errors.ts";
import { automationSubject } from "../../core/identity.ts";
import { automationKey, HEALTH_NOTE, ownerKey } from "../../core/items.ts";
import { DEFAULTS, type JobDefinition } from "../../core/jobs/job.ts";
import type { Json } from "../../core/json.ts";
import { mustRunHere } from "../../core/monitors/monitor.ts";
import { parseSchedule } from "../../core/schedule/schedule.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Deps } from "../deps.ts";
import { type PauseView, pauseOf } from "../operate/control.ts";
import { subjectOfAutomation } from "../subjects.ts";
import { LONGEST_ASK_MS, lookAt } from "../watchdog/looks.ts";

type AutomationDeps = Pick<Deps, "table" | "clock" | "random" | "jobs"> & {
  /** Default: one hour between two slots, 100 for an owner. */
  readonly limits?: AutomationLimits;
};

export interface AutomationRequest {
  /** Default: a new one. The same request with the same id makes one automation. */
  readonly id?: string;
  /** Its name. */
  readonly job: string;
  readonly owner: string;
  readonly cron: string;
  /** IANA; default UTC. */
  readonly timezone?: string;
  /** Default: the job's own. */
  readonly input?: Json;
}

export interface AutomationView {
  readonly id: string;
  readonly job: string;
  readonly owner: string;
  readonly cron: string;
  readonly timezone: string;
  readonly input: Json;
  readonly createdAt: string;
  /** The next instant at which it is due, paused or not; null = it fires no more, or its job is gone. */
  readonly nextSlot: string | null;
  /** A deploy has removed its job. It is kept, fires nothing, and goes on when the job comes back. */
  readonly orphaned: boolean;
  readonly paused: PauseView | null;
}

const viewOf = (deps: AutomationDeps, record: Item, automation: Automation): AutomationView => {
  const nowMs = deps.clock.nowMs();
  const { id, owner, input, createdAtMs } = automation;
  const { cron, timezone } = currentPeriod(automation);
  const subject = subjectOfAutomation(deps, record);
  const nextMs = subject?.schedule?.next(nowMs);
  return {
    id,
    job: subject?.job.name ?? automation.job,
    owner,
    cron,
    timezone,
    input,
    createdAt: shortIsoOf(createdAtMs),
    nextSlot: nextMs === undefined ? null : shortIsoOf(nextMs),
    orphaned: subject === undefined,
    paused: (subject && pauseOf(record, subject.job, nowMs)) ?? null,
  };
};

const jobNamed = ({ jobs }: AutomationDeps, name: string): JobDefinition => {
  const job = jobs.byName(name) ?? jobs.bySubject(name);
  if (job === undefined) throw new InvalidInput("unknown_job", `no job "${name}"`, { field: "job" });
  return job;
};

/** Of an owner token: what an id may have. */
const newId = ({ random }: AutomationDeps): string =>
  `a${(random.token() + random.token()).toLowerCase().replaceAll(/[^a-z0-9]/g, "")}`.slice(0, 15);

const readRecord = ({ table }: AutomationDeps, id: string): Promise<Item | undefined> =>
  table.get(automationKey(id), { consistent: true });

const MINUTES_AT_ONCE = 8;

/** Before the change that makes it due then: a crash in between leaves entries that lead to nothing. */
const enterAhead = async ({ table }: AutomationDeps, id: string, period: Period): Promise<void> => {
  const { cron, timezone, fromMs } = period;
  const slots = parseSchedule(cron, { timezone }).slots(fromMs, fromMs + ENTERED_AHEAD_MS);
  await eachAtOnce(slots, MINUTES_AT_ONCE, async (slotMs) => {
    await table.write(enterDue(slotMs, id));
  });
};

/**
 * Makes a run-time schedule; its first slot is the next one. In this order: a place on its owner's list, the next day's
 * minutes, the record. Whatever ends in between has made nothing that fires.
 * @throws InvalidInput naming the field; Conflict `already_exists` for an id of another, or of one that is deleted,
 *   `too_many` where the owner has as many as may be, `runs_elsewhere` for a monitor
 */
export const createFor = async (
  deps: AutomationDeps,
  request: AutomationRequest,
): Promise<AutomationView> => {
  const { limits = AUTOMATION_LIMITS, clock, table } = deps;
  const { owner, cron, timezone = DEFAULTS.timezone, id = newId(deps) } = request;
  const nowMs = clock.nowMs();
  const job = jobNamed(deps, request.job);
  mustRunHere(job);
  const { input = job.input } = request;
  const period = { cron, timezone, fromMs: nowMs };
  checkAutomationId(id);
  checkOwner(owner);
  checkAutomationInput(input);
  checkPeriod(period, limits);
  const wanted = { id, job: job.subject, owner, input, periods: [period], createdAtMs: nowMs };
  const known = await readRecord(deps, id);
  if (automationIn(known) !== undefined) return sameAs(deps, wanted, known);
  await table.write(openAgenda(nowMs));
  await takePlace(deps, { owner, id, nowMs }, limits.perOwner);
  await enterAhead(deps, id, period);
  const { item } = await table.write(createAutomation(wanted));
  return sameAs(deps, wanted, item);
};

type Wanted = Omit<Automation, "revision" | "deletedAtMs">;

const scheduleIn = (automation: Pick<Automation, "periods">) => {
  const { cron, timezone } = currentPeriod(automation);
  return [cron, timezone];
};

/** What is there is what was asked for: made by an earlier try. */
const sameAs = async (
  deps: AutomationDeps,
  wanted: Wanted,
  record: Item | undefined,
): Promise<AutomationView> => {
  const there = automationIn(record);
  const isIt =
    there !== undefined &&
    record !== undefined &&
    there.deletedAtMs === undefined &&
    JSON.stringify([there.owner, there.job, there.input, scheduleIn(there)]) ===
      JSON.stringify([wanted.owner, wanted.job, wanted.input, scheduleIn(wanted)]);
  if (isIt) return viewOf(deps, record, there);
  if (there?.owner !== wanted.owner) await deps.table.write(strikeOwned(wanted.owner, wanted.id));
  throw new Conflict(
    "already_exists",
    `there is, or was, another automation "${wanted.id}"; each id is used once`,
  );
};

interface Place {
  readonly owner: string;
  readonly id: string;
  readonly nowMs: number;
}

const takePlace = async (deps: AutomationDeps, place: Place, perOwner: number): Promise<void> => {
  const { owner, id, nowMs } = place;
  const enter = () => deps.table.write(enterOwned(owner, { id, enteredAtMs: nowMs }, perOwner));
  const has = (item: Item | undefined) => ownedIn(item).some((owned) => owned.id === id);
  const first = await enter();
  if (first.written || has(first.item)) return;
  await strikeUnused(deps, place, first.item);
  const second = await enter();
  if (second.written || has(second.item)) return;
  throw new Conflict("too_many", `${owner} has ${perOwner} automations; no more fit, before one is deleted`);
};

/** Places whose automation never came, or is gone. */
const strikeUnused = async (
  deps: AutomationDeps,
  { owner, nowMs }: Place,
  item: Item | undefined,
): Promise<void> => {
  for (const { id, enteredAtMs } of ownedIn(item)) {
    const automation = automationIn(await readRecord(deps, id));
    const isComing = automation === undefined && enteredAtMs > nowMs - LONGEST_ASK_MS;
    const isThere = automation?.owner === owner && automation.deletedAtMs === undefined;
    if (!isComing && !isThere) await deps.table.write(strikeOwned(owner, id));
  }
};

/** Of one automation, that of anybody, or with an owner only his. */
export interface AutomationPointer {
  readonly id: string;
  readonly owner?: string;
}

const unknown = (id: string): InvalidInput =>
  new InvalidInput("unknown_automation", `no automation "${id}"`, { field: "id" });

const readKnown = async (deps: AutomationDeps, { id, owner }: AutomationPointer) => {
  const record = await readRecord(deps, id);
  const automation = automationIn(record);
  const isHis = owner === undefined || automation?.owner === owner;
  if (record === undefined || automation === undefined || !isHis) throw unknown(id);
  return { record, automation };
};

export interface AutomationChange {
  readonly cron?: string;
  readonly timezone?: string;
  readonly input?: Json;
}

/** As often as others may change it between our reading and our writing. */
const MAX_TRIES = 5;

const contended = (id: string): Unavailable =>
  new Unavailable("contended", `automation ${id} is changed by too many at once`);

/**
 * Changes what is given. A changed schedule starts from now: earlier slots stay what they were.
 * @throws InvalidInput naming the field, or `unknown_automation`
 */
export const editAutomationOf = async (
  deps: AutomationDeps,
  pointer: AutomationPointer,
  change: AutomationChange,
): Promise<AutomationView> => {
  const { limits = AUTOMATION_LIMITS, clock, table } = deps;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { record, automation } = await readKnown(deps, pointer);
    if (automation.deletedAtMs !== undefined) throw unknown(pointer.id);
    const current = currentPeriod(automation);
    const fromMs = clock.nowMs();
    const wanted = { cron: current.cron, timezone: current.timezone, input: automation.input, ...change };
    const isSameSchedule = wanted.cron === current.cron && wanted.timezone === current.timezone;
    const isSameInput = JSON.stringify(wanted.input) === JSON.stringify(automation.input);
    if (isSameSchedule && isSameInput) return viewOf(deps, record, automation);
    checkAutomationInput(wanted.input);
    const period = { cron: wanted.cron, timezone: wanted.timezone, fromMs };
    if (!isSameSchedule) {
      checkPeriod(period, limits);
      await enterAhead(deps, automation.id, period);
    }
    const { written, item } = await table.write(editAutomation(automation, wanted, fromMs));
    const edited = automationIn(item);
    if (written && item !== undefined && edited !== undefined) return viewOf(deps, item, edited);
  }
  throw contended(pointer.id);
};

/**
 * From now on it is not due. What was claimed goes on; earlier slots that nobody dispatched are recorded as skipped. Done
 * again, it is done.
 * @throws InvalidInput `unknown_automation`
 */
export const deleteAutomationOf = async (deps: AutomationDeps, pointer: AutomationPointer): Promise<void> => {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { automation } = await readKnown(deps, pointer);
    const isGone = automation.deletedAtMs !== undefined;
    const done = isGone || (await deps.table.write(deleteAutomation(automation, deps.clock.nowMs()))).written;
    if (!done) continue;
    // Its open trouble, if people know of one, is over with it.
    const health = { subject: automationSubject(automation.id), slotKey: HEALTH_NOTE };
    await lookAt(deps, health, { atMs: deps.clock.nowMs() });
    await deps.table.write(strikeOwned(automation.owner, automation.id));
    return;
  }
  throw contended(pointer.id);
};

/** Those of an owner, in order of their ids. One that was made a moment ago may be missing. */
export const listAutomationsOf = async (
  deps: AutomationDeps,
  owner: string,
): Promise<readonly AutomationView[]> => {
  const owned = ownedIn(await deps.table.get(ownerKey(owner), { consistent: true }));
  const records = await deps.table.getMany(owned.map(({ id }) => automationKey(id)));
  return records
    .flatMap((record) => {
      const automation = automationIn(record);
      const isHis = automation?.owner === owner && automation.deletedAtMs === undefined;
      return isHis ? [viewOf(deps, record, automation)] : [];
    })
    .sort((left, right) => (left.id < right.id ? -1 : 1));
};
