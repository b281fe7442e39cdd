import { Unavailable } from "../../core/errors.ts";
import { type Flip, type Health, isSound, type Seen, unknownHealth } from "../../core/health/health.ts";
import { type Fact, factOf, isNotable } from "../../core/health/health-facts.ts";
import {
  alertsIn,
  forgetUntold,
  type StoredHealth,
  storedHealth,
  writeFlip,
  writeHealth,
} from "../../core/health/health-items.ts";
import { type Judgement, judgeHealth } from "../../core/health/judge-health.ts";
import { type Occurrence, runIdOf } from "../../core/identity.ts";
import {
  HEALTH_NOTE,
  healthKey,
  runKey,
  runRange,
  slotKeyInSortKey,
  subjectInHealthKey,
  subjectInPartitionKey,
} from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { absent, any, atMost, type Item, set } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { putAlert } from "../notify/outbox.ts";
import { mutedUntilMs, pausedBy, pauseEntry } from "../operate/control.ts";
import { listedInLock } from "../path/lock-keeper.ts";
import { controlKey, type Subject } from "../subjects.ts";
import { eachInTurn, type Failure } from "../watchdog/each-in-turn.ts";
import { lookAt } from "../watchdog/looks.ts";

export type HealthDeps = Pick<Deps, "table" | "clock" | "journal" | "timings" | "jobs">;

/** A run as a pass of the watchdog came across it; without a record when it is claimed only. */
export interface Sighting {
  readonly occurrence: Occurrence;
  readonly run: Item | undefined;
}

/** What a pass came across, by subject. */
export type Sightings = ReadonlyMap<string, readonly Sighting[]>;

interface Look {
  readonly job: JobDefinition;
  readonly sightings: readonly Sighting[];
  readonly control: Item | undefined;
  readonly nowMs: number;
}

const factsOf = ({ jobs, timings }: HealthDeps, job: JobDefinition, sightings: readonly Sighting[]) => {
  const looking = { fires: jobs.firesHere(job), clockBoundMs: timings.clockBoundMs };
  return sightings.map(({ occurrence, run }) => factOf(occurrence, run, looking));
};

const sightingOf = (run: Item): Sighting => ({
  occurrence: {
    subject: subjectInPartitionKey(String(run["pk"])),
    slotKey: slotKeyInSortKey(String(run["sk"])),
  },
  run,
});

const PAGE = 25;
/** A row of failures that is longer counts as that long. */
const MAX_FAILURES = 100;

/** The newest runs, back to the last success. */
const newestRuns = async (deps: HealthDeps, job: JobDefinition): Promise<readonly Fact[]> => {
  const facts: Fact[] = [];
  let last: string | undefined;
  while (facts.length < MAX_FAILURES) {
    const range = runRange(job.subject, "", last);
    const page = await deps.table.query({ ...range, descending: true, limit: PAGE });
    // Bounds are inclusive: the next page begins with the item that ended this one.
    const items = page.filter((item) => slotKeyInSortKey(String(item["sk"])) !== last);
    facts.push(...factsOf(deps, job, items.filter((item) => item["st"] !== undefined).map(sightingOf)));
    const end = items.at(-1);
    if (page.length < PAGE || end === undefined) break;
    if (facts.some(({ counts, state }) => counts && state === "succeeded")) break;
    last = slotKeyInSortKey(String(end["sk"]));
  }
  return facts;
};

const troubledRuns = async (
  deps: HealthDeps,
  job: JobDefinition,
  health: Health,
): Promise<readonly Fact[]> => {
  const slotKeys = new Set(health.troubles.map(({ slotKey }) => slotKey));
  const keys = [...slotKeys].map((slotKey) => runKey({ subject: job.subject, slotKey }));
  const runs = keys.length === 0 ? [] : await deps.table.getMany(keys);
  const found = runs.filter((run) => run["st"] !== undefined).map(sightingOf);
  for (const { occurrence } of found) slotKeys.delete(occurrence.slotKey);
  if (slotKeys.size === 0) return factsOf(deps, job, found);
  // Without a record a run is in trouble for as long as its job's lock lists it.
  const listed = await listedInLock(deps.table, job.subject);
  const claimed = [...slotKeys]
    .filter((slotKey) => listed.has(slotKey))
    .map((slotKey) => ({ occurrence: { subject: job.subject, slotKey }, run: undefined }));
  return factsOf(deps, job, [...found, ...claimed]);
};

const seenOf = async (deps: HealthDeps, look: Look, health: Health): Promise<Seen> => {
  const { job, control, nowMs, sightings } = look;
  const newest = await newestRuns(deps, job);
  const paused = pausedBy(control, job, nowMs);
  const mutedMs = mutedUntilMs(control, job, nowMs);
  return {
    nowMs,
    fresh: factsOf(deps, job, sightings),
    runs: [...newest, ...(await troubledRuns(deps, job, health))],
    ...(paused === undefined ? {} : { paused }),
    ...(mutedMs === undefined ? {} : { mutedUntilMs: mutedMs }),
  };
};

/** A pause that stands already, whoever made it, does as well; one that is over by now does not. */
const pauseJob = ({ table, clock }: HealthDeps, job: JobDefinition, reason: string): Promise<unknown> => {
  const entry = pauseEntry(job);
  const nowMs = clock.nowMs();
  return table.write({
    key: controlKey(job.subject),
    condition: any(absent(entry), atMost([entry, "untilMs"], nowMs)),
    changes: [set(entry, { sinceMs: nowMs, reason, byItself: true })],
  });
};

const count = (deps: HealthDeps, job: JobDefinition, judged: Judgement): void => {
  const { subject, name } = job;
  const runIds = (facts: readonly Fact[]) => facts.map(({ slotKey }) => runIdOf({ subject, slotKey }));
  for (const runId of runIds(judged.late)) deps.journal.notice("warn", "late", { runId, job: name });
  for (const runId of runIds(judged.stuck)) deps.journal.notice("warn", "stuck", { runId, job: name });
  if (judged.reachesPage) deps.journal.notice("error", "page-threshold", { job: name });
  noteFlips(deps, job, judged.flips);
};

export const noteFlips = ({ journal }: HealthDeps, { name }: JobDefinition, flips: readonly Flip[]): void => {
  for (const { n, from, to, alert } of flips) {
    const of = alert === undefined ? {} : { kind: alert.kind, reason: alert.reason };
    journal.notice(to === "up" ? "info" : "warn", "health", { job: name, flip: n, from, to, ...of });
  }
};

/** Records the flips, tells what is to be told, and then forgets that it has to. */
export const tellAll = async (
  deps: HealthDeps,
  { subject }: JobDefinition,
  { untold, revision }: Pick<StoredHealth, "untold" | "revision">,
): Promise<void> => {
  if (untold.length === 0) return;
  for (const flip of untold) await deps.table.write(writeFlip(subject, flip));
  for (const alert of alertsIn(untold)) await putAlert(deps.table, alert);
  await deps.table.write(forgetUntold(subject, revision));
};

export const readHealth = async ({ table }: HealthDeps, { subject }: JobDefinition) =>
  storedHealth(await table.get(healthKey(subject), { consistent: true }));

/** As often as others may change a job's health between our reading and our writing it. */
const MAX_TRIES = 5;

const isSame = (one: Health, other: Health): boolean => JSON.stringify(one) === JSON.stringify(other);

const store = async (deps: HealthDeps, look: Look, stored: StoredHealth | undefined): Promise<boolean> => {
  const { job, nowMs } = look;
  const before = stored?.health ?? unknownHealth(nowMs);
  const judged = judgeHealth(job, before, await seenOf(deps, look, before));
  const { after, flips, pause } = judged;
  if (isSame(before, after)) return true;
  // Each step may be repeated, and the last one says that all are done.
  if (pause !== undefined) await pauseJob(deps, job, pause);
  if (after.lookAtMs !== undefined && after.lookAtMs !== before.lookAtMs) {
    await lookAt(deps, { subject: job.subject, slotKey: HEALTH_NOTE }, { atMs: after.lookAtMs });
  }
  const answer = await deps.table.write(
    writeHealth(job.subject, { seenRevision: stored?.revision, health: after, flips }),
  );
  if (!answer.written) return false;
  count(deps, job, judged);
  await tellAll(deps, job, { untold: flips, revision: Number(answer.item["rev"]) });
  return true;
};

const judge = async (deps: HealthDeps, look: Look): Promise<void> => {
  let now = look;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await readHealth(deps, look.job);
    if (stored !== undefined && stored.untold.length > 0) await tellAll(deps, look.job, stored);
    else if (await store(deps, now, stored)) return;
    // Whoever was faster may have paused the job, too; we ourselves may, with a write whose answer was lost.
    now = { ...look, control: await deps.table.get(controlKey(look.job.subject), { consistent: true }) };
  }
  throw new Unavailable("contended", `the health of ${look.job.name} is written by too many at once`);
};

/** Can what was seen change what is known? Most passes see nothing but sound runs of sound jobs. */
const isWorthIt = (deps: HealthDeps, look: Look, stored: StoredHealth | undefined): boolean => {
  const { job, control, nowMs } = look;
  const facts = factsOf(deps, job, look.sightings);
  if (facts.some((fact) => isNotable(job, fact, nowMs))) return true;
  const isPaused = pausedBy(control, job, nowMs) !== undefined;
  if (stored === undefined) return isPaused;
  const { health, untold } = stored;
  return untold.length > 0 || !isSound(health) || (health.state === "paused") !== isPaused;
};

export const isDeleted = ({ automation }: Subject): boolean => automation?.deletedAtMs !== undefined;

export interface HealthPass {
  readonly sightings: Sightings;
  /** Subjects whose health somebody noted for a look in this pass. */
  readonly noted: ReadonlySet<string>;
  /** All of both, as far as anybody knows them. */
  readonly subjects: ReadonlyMap<string, Subject>;
}

/**
 * Judges the health of the jobs that a pass came across, and tells what changed; the others cost nothing. One that
 * cannot be judged must not keep the watchdog from the others. Answers what was thrown.
 */
export const keepHealth = async (
  deps: HealthDeps,
  { sightings, noted, subjects }: HealthPass,
): Promise<readonly Failure[]> => {
  const names = [...new Set([...sightings.keys(), ...noted])];
  // The health of a run-time schedule ends with it.
  const judged = names.flatMap((name) => subjects.get(name) ?? []).filter((one) => !isDeleted(one));
  if (judged.length === 0) return [];
  const items = await deps.table.getMany(judged.map(({ job }) => healthKey(job.subject)));
  const bySubject = new Map(
    items.map((item) => [
      subjectInHealthKey({ pk: String(item["pk"]), sk: String(item["sk"]) }),
      storedHealth(item),
    ]),
  );
  const judgeOne = async ({ job, control }: Subject): Promise<void> => {
    const look = { job, sightings: sightings.get(job.subject) ?? [], control, nowMs: deps.clock.nowMs() };
    const isWanted = noted.has(job.subject) || isWorthIt(deps, look, bySubject.get(job.subject));
    if (isWanted) await judge(deps, look);
  };
  return eachInTurn(judged, judgeOne, ({ job: { subject } }) =>
    lookAgain(deps, subject, sightings.get(subject) ?? []),
  );
};

/** At the job, and at all that the pass has seen of it. */
const lookAgain = async (
  deps: HealthDeps,
  subject: string,
  sightings: readonly Sighting[],
): Promise<void> => {
  const atMs = deps.clock.nowMs();
  await lookAt(deps, { subject, slotKey: HEALTH_NOTE }, { atMs });
  for (const { occurrence } of sightings) await lookAt(deps, occurrence, { atMs });
};
