import { slotKeyOf } from "../../core/identity.ts";
import {
  badMonthOf,
  lockKey,
  RETENTION_MS,
  runKey,
  runRange,
  slotKeyInSortKey,
  subjectInPartitionKey,
} from "../../core/items.ts";
import type { JobList } from "../../core/jobs/job-list.ts";
import type { RunState, RunView } from "../../core/runs/run.ts";
import { DAY_MS } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Query, Table } from "../../ports/table.ts";
import { unstartedRuns } from "../path/unstarted-runs.ts";
import { jobOfSubject, subjectsNamed } from "../subjects.ts";
import { occurrenceOfItem, runViewOf, stateOf } from "./run-view.ts";

export interface RunsWanted {
  /** None = of all jobs. */
  readonly subject?: string;
  readonly state?: RunState;
  /** Slots at or after that instant. */
  readonly sinceMs?: number;
  readonly limit: number;
}

/** The sparse index holds them; all others are read by their jobs' own keys. */
const LISTED_STATES: ReadonlySet<string> = new Set<RunState>([
  "dead",
  "parked",
  "missed",
  "expired",
  "cancelled",
]);

/** Without `since`, a state that no index holds is looked for among so many runs of each job, newest first. */
export const LOOKED_AT = 1_000;

const PAGE = 100;

/** All items of the query, newest first, page by page as they are asked for. */
async function* newestFirst(table: Table, query: Query, sortName: string): AsyncGenerator<Item> {
  let last = query.last;
  let seen: unknown;
  for (;;) {
    const page = await table.query({ ...query, last, descending: true, limit: PAGE });
    const fresh = page.filter((item) => item[sortName] !== seen);
    yield* fresh;
    const end = fresh.at(-1);
    if (end === undefined || page.length < PAGE) return;
    // Bounds are inclusive: the next page begins with the item that ended this one.
    seen = end[sortName];
    last = String(seen);
  }
}

const take = async (
  items: AsyncIterable<Item>,
  wanted: (item: Item) => boolean,
  { limit, looks }: { readonly limit: number; readonly looks: number },
): Promise<readonly Item[]> => {
  const taken: Item[] = [];
  let looked = 0;
  for await (const item of items) {
    if (wanted(item)) taken.push(item);
    looked += 1;
    if (taken.length >= limit || looked >= looks) break;
  }
  return taken;
};

/** Months whose ends a run with a slot since then can have, newest first. */
const monthsBack = (fromMs: number, sinceMs: number): readonly string[] => {
  const months = new Set<string>();
  for (let atMs = fromMs; atMs >= sinceMs; atMs -= DAY_MS) months.add(badMonthOf(atMs));
  return [...months.add(badMonthOf(sinceMs))];
};

export interface ListRunsDeps {
  readonly table: Table;
  readonly jobs: JobList;
  readonly clock: Clock;
}

const bySlotNewestFirst = (left: RunView, right: RunView): number => {
  if (left.slot !== right.slot) return left.slot < right.slot ? 1 : -1;
  return left.runId < right.runId ? -1 : 1;
};

/** Runs that ended badly, or are parked: from the sparse index, newest end first. */
const listBadRuns = async (deps: ListRunsDeps, wanted: RunsWanted) => {
  const { table, clock } = deps;
  const { subject, state, sinceMs, limit } = wanted;
  const nowMs = clock.nowMs();
  const sinceKey = sinceMs === undefined ? "" : slotKeyOf(sinceMs);
  const matches = (item: Item): boolean =>
    stateOf(item) === state &&
    slotKeyInSortKey(String(item["sk"])) >= sinceKey &&
    (subject === undefined || subjectInPartitionKey(String(item["pk"])) === subject);
  const found: Item[] = [];
  // A day ahead: the clock that wrote the end may be ahead of ours.
  for (const pk of monthsBack(nowMs + DAY_MS, Math.max(sinceMs ?? 0, nowMs - RETENTION_MS))) {
    // Not from the empty text: DynamoDB refuses that as a value of a key, and the emulators do not.
    const items = newestFirst(table, { index: "bad", pk, first: "0", last: "~" }, "badKey");
    found.push(...(await take(items, matches, { limit: limit - found.length, looks: Infinity })));
    if (found.length >= limit) break;
  }
  const subjects = await subjectsNamed(
    deps,
    found.map((item) => occurrenceOfItem(item).subject),
    undefined,
  );
  return found.map((item) => runViewOf(item, subjects.get(occurrenceOfItem(item).subject)?.job));
};

/** The newest runs of one job, those that only its lock lists among them. */
const listJobRuns = async (deps: ListRunsDeps, subject: string, wanted: RunsWanted) => {
  const { table } = deps;
  const { state, sinceMs, limit } = wanted;
  const job = await jobOfSubject(deps, subject);
  const sinceKey = sinceMs === undefined ? "" : slotKeyOf(sinceMs);
  const matches = (item: Item): boolean => {
    const itsState = stateOf(item);
    return itsState !== undefined && (state === undefined || itsState === state);
  };
  const looks = state === undefined || sinceMs !== undefined ? Infinity : LOOKED_AT;
  const lock = await table.get(lockKey(subject), { consistent: false });
  // After the lock: a run that starts in between is then seen by its record.
  const items = newestFirst(table, runRange(subject, sinceKey), "sk");
  const records = await take(items, matches, { limit, looks });
  const views = new Map(records.map((item) => [slotKeyInSortKey(String(item["sk"])), runViewOf(item, job)]));
  if (state !== undefined && state !== "queued") return [...views.values()];
  const unstarted = [...unstartedRuns(subject, lock, job)].filter(
    ([slotKey]) => slotKey >= sinceKey && !views.has(slotKey),
  );
  const started = await table.getMany(unstarted.map(([slotKey]) => runKey({ subject, slotKey })));
  const recorded = new Set(
    started.filter((item) => stateOf(item) !== undefined).map((item) => occurrenceOfItem(item).slotKey),
  );
  return [
    ...views.values(),
    ...unstarted.filter(([slotKey]) => !recorded.has(slotKey)).map(([, view]) => view),
  ];
};

/**
 * Runs, newest slot first; of a state that people have to look at (dead, parked, missed, expired, cancelled), newest
 * end first. By key only, so the cost follows what is shown, not how much history there is. Values that lie beside a
 * record are null here; `show` has them.
 */
export const makeListRuns =
  (deps: ListRunsDeps) =>
  async (wanted: RunsWanted): Promise<readonly RunView[]> => {
    if (wanted.state !== undefined && LISTED_STATES.has(wanted.state)) return listBadRuns(deps, wanted);
    const subjects =
      wanted.subject === undefined ? deps.jobs.all.map(({ subject }) => subject) : [wanted.subject];
    const lists = await Promise.all(subjects.map((subject) => listJobRuns(deps, subject, wanted)));
    return lists.flat().sort(bySlotNewestFirst).slice(0, wanted.limit);
  };
