import { describe, expect, test } from "vitest";
import { askToStop, markAbsent, markDead, markNeverStarted, nudge } from "../../../lib/core/runs/marks.ts";
import {
  claim,
  countDuplicate,
  countStaleResult,
  failAttempt,
  finish,
  hasRoomForDuplicate,
  parkAttempt,
  renew,
  snooze,
  start,
  takeOverAndEnd,
  takeOverAndRun,
  triesWith,
} from "../../../lib/core/runs/transitions.ts";
import { applied, holds, type Item, type Write } from "../../../lib/core/write.ts";
import { at, msOf } from "../../support/path.ts";

const occurrence = at("report", "2026-03-29T01:00:00Z");
const NOW = msOf("2026-03-29T01:00:30Z");
const BOUND = 30_000;
const holding = { occurrence, fence: 3 };

const claimed = claim({ occurrence, token: "me", nowMs: NOW, trigger: "schedule" });
const startOf = (locked: boolean, epoch = 1): Write =>
  start({
    occurrence,
    epoch,
    token: "me",
    nowMs: NOW,
    leaseUntilMs: NOW + 60_000,
    locked,
    trigger: "schedule",
    queuedAtMs: NOW - 5_000,
  });
const lost = { occurrence, token: "me", seenFence: 3, nowMs: NOW, clockBoundMs: BOUND, tries: [] };
const error = { name: "Error", message: "no" };
const mark = {
  occurrence,
  state: "skipped",
  nowMs: NOW,
  trigger: "schedule",
  reason: "paused",
} as const;
const dead = markDead({
  occurrence,
  epoch: 1,
  token: "me",
  nowMs: NOW,
  clockBoundMs: BOUND,
  state: "dead",
  reason: "came back too often",
  error,
});

const TERMINAL = ["succeeded", "dead", "skipped", "missed", "expired", "cancelled"];
const over = TERMINAL.map((st): Item => ({ st, ep: 1, fence: 3 }));
const running = { st: "running", ep: 1, fence: 3, leaseUntilMs: NOW + 1 };
const lastMsOfBound = { ...running, leaseUntilMs: NOW - BOUND };
const endedLease = { ...running, leaseUntilMs: NOW - BOUND - 1 };
const waitingTill = (nextAttemptAtMs: number, ep = 1) => ({ st: "waiting", ep, fence: 3, nextAttemptAtMs });
const queued = { st: "queued", ep: 1 };
const parked = { st: "parked", ep: 1, fence: 3 };
const onlyDuplicates = { dup: new Set(["a"]) };

type Row = readonly [
  what: string,
  write: Write,
  accepted: readonly (Item | undefined)[],
  refused: readonly (Item | undefined)[],
];

const finishing = finish(holding, { state: "succeeded", nowMs: NOW, tries: [], failed: false });
const failing = failAttempt(holding, { nextAttemptAtMs: NOW + 60_000, tries: [], error });
const parking = parkAttempt(holding, { nowMs: NOW, tries: [], reason: "cut off", error });
const snoozing = snooze(holding, { nextAttemptAtMs: NOW + 60_000, tries: [] });
const stopping = askToStop(occurrence, 1, { nowMs: NOW, reason: "no" });

const rows: readonly Row[] = [
  [
    "a claim wins where there is no record",
    claimed,
    [undefined, onlyDuplicates],
    [queued, running, parked, ...over],
  ],
  [
    "a start takes what is queued or due, in its own attempt set",
    startOf(false),
    [queued, { ...queued, fence: 2 }, waitingTill(NOW), waitingTill(NOW - 1)],
    [
      undefined,
      onlyDuplicates,
      waitingTill(NOW + 1),
      waitingTill(NOW, 2),
      { ...queued, ep: 2 },
      running,
      endedLease,
      parked,
      ...over,
    ],
  ],
  [
    "the start of a locked job also makes its record",
    startOf(true),
    [undefined, onlyDuplicates, queued],
    [running, parked, ...over],
  ],
  [
    "a later attempt set never makes a record",
    startOf(true, 2),
    [{ ...queued, ep: 2 }],
    [undefined, queued, ...over],
  ],
  [
    "a lost attempt is taken over when its lease ended longer ago than clocks differ",
    takeOverAndRun(lost, NOW + 60_000),
    [endedLease],
    [
      undefined,
      queued,
      running,
      lastMsOfBound,
      { ...endedLease, fence: 4 },
      { ...endedLease, st: "waiting" },
      parked,
      ...over,
    ],
  ],
  [
    "a lost attempt is ended when its lease ended longer ago than clocks differ",
    takeOverAndEnd(lost, { state: "dead", reason: "lost", error }),
    [endedLease],
    [undefined, running, lastMsOfBound, { ...endedLease, fence: 2 }, parked, ...over],
  ],
  [
    "a lease is renewed by its own fence only",
    renew(holding, NOW + 60_000),
    [running, endedLease, { ...running, cancelAtMs: NOW }],
    [
      undefined,
      { ...running, fence: 2 },
      { ...running, fence: 4 },
      { ...running, st: "waiting" },
      parked,
      ...over,
    ],
  ],
  [
    "an attempt that was cut off is parked by the fence that runs, unless it was asked to stop",
    parking,
    [running, endedLease],
    [
      undefined,
      { ...running, fence: 2 },
      { ...running, fence: 4 },
      { ...running, cancelAtMs: NOW },
      { ...running, st: "waiting" },
      parked,
      ...over,
    ],
  ],
  [
    "a result is written by the fence that runs",
    finishing,
    [running, endedLease, { ...running, cancelAtMs: NOW }],
    [
      undefined,
      { ...running, fence: 2 },
      { ...running, fence: 4 },
      queued,
      waitingTill(NOW),
      parked,
      ...over,
    ],
  ],
  [
    "a failed attempt waits by the fence that runs, unless a stop was asked for",
    failing,
    [running, endedLease],
    [undefined, { ...running, fence: 4 }, { ...running, cancelAtMs: NOW }, queued, parked, ...over],
  ],
  [
    "a snooze waits by the fence that runs, unless a stop was asked for",
    snoozing,
    [running, endedLease],
    [undefined, { ...running, fence: 4 }, { ...running, cancelAtMs: NOW }, queued, parked, ...over],
  ],
  [
    "a mark by overlap never goes over a record",
    markAbsent(mark),
    [undefined, onlyDuplicates],
    [queued, running, parked, ...over],
  ],
  [
    "a mark goes over a queued run that was never started",
    markNeverStarted(mark, 1),
    [undefined, onlyDuplicates, queued],
    [{ ...queued, fence: 1 }, { ...queued, ep: 2 }, running, waitingTill(NOW), parked, ...over],
  ],
  [
    "dead letters end what nobody holds",
    dead,
    [queued, waitingTill(NOW + 1), endedLease],
    [
      undefined,
      running,
      lastMsOfBound,
      { ...queued, ep: 2 },
      waitingTill(NOW, 2),
      { ...endedLease, ep: 2 },
      parked,
      ...over,
    ],
  ],
  [
    "a stop is asked for once, of a running attempt set",
    stopping,
    [running, endedLease],
    [
      undefined,
      queued,
      { ...running, ep: 2 },
      { ...running, cancelAtMs: NOW },
      waitingTill(NOW),
      parked,
      ...over,
    ],
  ],
  [
    "a first nudge needs that nobody has nudged",
    nudge(occurrence, undefined, { nowMs: NOW, token: "t" }),
    [queued],
    [{ ...queued, nudgedAtMs: 1 }],
  ],
  [
    "a further nudge needs that nobody has nudged since",
    nudge(occurrence, NOW - 5, { nowMs: NOW, token: "t" }),
    [{ ...queued, nudgedAtMs: NOW - 5 }],
    [queued, { ...queued, nudgedAtMs: NOW - 4 }],
  ],
];

describe.each(rows)("%s", (_what, write, accepted, refused) => {
  test.each(accepted.map((item) => [item]))("accepted by %o", (item) => {
    expect(holds(write.condition, item)).toBe(true);
  });
  test.each(refused.map((item) => [item]))("refused by %o", (item) => {
    expect(holds(write.condition, item)).toBe(false);
  });
});

test("no transition of a run takes its fence back", () => {
  for (const [what, write, accepted] of rows) {
    for (const before of accepted) {
      const fence = Number(applied(write, before)["fence"] ?? 0);
      expect({ what, back: fence < Number(before?.["fence"] ?? 0) }).toEqual({ what, back: false });
    }
  }
});

test("whoever starts, takes over or ends a run from outside gets a fence of their own", () => {
  const takers: readonly (readonly [Write, Item])[] = [
    [startOf(false), waitingTill(NOW)],
    [takeOverAndRun(lost, NOW), endedLease],
    [takeOverAndEnd(lost, { state: "cancelled", reason: "", error }), endedLease],
    [dead, endedLease],
  ];
  for (const [write, before] of takers) {
    expect(applied(write, before)).toMatchObject({ fence: 4, own: "me" });
  }
});

test("a claim stores who claimed, when, why, and until when the record is kept", () => {
  expect(applied(claimed, undefined)).toEqual({
    pk: "J#report",
    sk: "R#2026-03-29T01:00:00.000Z",
    v: 1,
    st: "queued",
    ep: 1,
    own: "me",
    trigger: "schedule",
    claimedAtMs: NOW,
    expiresAtS: msOf("2026-06-27T01:00:30Z") / 1_000,
  });
});

test("the first start stores its instant, which later starts leave alone", () => {
  const first = applied(startOf(true), undefined);
  expect(first).toMatchObject({
    fence: 1,
    startedAtMs: NOW,
    claimedAtMs: NOW - 5_000,
    leaseUntilMs: NOW + 60_000,
  });
  const again = applied(startOf(true), { ...waitingTill(NOW), startedAtMs: NOW - 9_000, trigger: "manual" });
  expect(again).toMatchObject({ startedAtMs: NOW - 9_000, attemptAtMs: NOW, trigger: "manual" });
  expect(again).not.toHaveProperty("nextAttemptAtMs");
});

test("a take-over counts a crash, not a failed attempt", () => {
  const after = applied(takeOverAndRun(lost, NOW + 60_000), { ...endedLease, attempts: 2, crashes: 1 });
  expect(after).toMatchObject({ st: "running", attempts: 2, crashes: 2, leaseUntilMs: NOW + 60_000 });
});

test.each([
  ["an end by take-over", takeOverAndEnd(lost, { state: "parked", reason: "", error })],
  ["a finish", finishing],
  ["a failed attempt", failing],
  ["a snooze", snoozing],
  ["an end by dead letters", dead],
])("%s gives the lease up", (_what, write) => {
  expect(applied(write, endedLease)).not.toHaveProperty("leaseUntilMs");
});

test("a failed attempt is counted, a snooze is not", () => {
  expect(applied(failing, running)).toMatchObject({ st: "waiting", attempts: 1, error, sideError: 3 });
  expect(applied(snoozing, running)).toMatchObject({ st: "waiting", nextAttemptAtMs: NOW + 60_000 });
  expect(applied(snoozing, running)).not.toHaveProperty("attempts");
});

test("a success forgets the error of an earlier attempt", () => {
  const after = applied(finishing, { ...running, error, sideError: 2 });
  expect(after).toMatchObject({ st: "succeeded", endedAtMs: NOW });
  expect(after).not.toHaveProperty("error");
  expect(after).not.toHaveProperty("sideError");
});

test("only what a person may have to look at is listed as bad", () => {
  const ends = ["succeeded", "skipped", "cancelled", "dead"] as const;
  const listed = ends.map((state) => {
    const after = applied(finish(holding, { state, nowMs: NOW, tries: [], failed: false }), running);
    return [state, after["badMonth"]];
  });
  expect(listed).toEqual([
    ["succeeded", undefined],
    ["skipped", undefined],
    ["cancelled", "2026-03"],
    ["dead", "2026-03"],
  ]);
  expect(applied(markAbsent(mark), undefined)).not.toHaveProperty("badMonth");
  expect(applied(markAbsent({ ...mark, state: "missed" }), undefined)).toMatchObject({
    badMonth: "2026-03",
    badKey: "2026-03-29T01:00:30.000Z~report~2026-03-29T01:00:00.000Z",
  });
});

test("a mark over a queued run keeps who asked for it", () => {
  const after = applied(markNeverStarted({ ...mark, state: "expired" }, 1), {
    ...queued,
    trigger: "manual",
    claimedAtMs: 7,
  });
  expect(after).toMatchObject({ st: "expired", trigger: "manual", claimedAtMs: 7, ep: 1, endedAtMs: NOW });
});

test("a mark may stand for many slots in a row", () => {
  const range = { count: 1_440, fromMs: NOW };
  expect(applied(markAbsent({ ...mark, state: "missed", range }), undefined)).toMatchObject({
    rangeCount: 1_440,
    rangeFromMs: NOW,
  });
});

test("a stale result and a duplicate are counted, and change nothing else", () => {
  const done = { pk: "J#report", sk: "R#2026-03-29T01:00:00.000Z", st: "succeeded", expiresAtS: 5 };
  expect(applied(countStaleResult(occurrence), done)).toEqual({ ...done, staleResults: 1 });
  const twice = applied(
    countDuplicate(occurrence, "a", NOW),
    applied(countDuplicate(occurrence, "a", NOW), done),
  );
  expect(twice).toEqual({ ...done, dup: new Set(["a"]) });
});

test("sixteen duplicates are kept at most", () => {
  const tokens = (count: number) => new Set(Array.from({ length: count }, (_, n) => `t${n}`));
  expect(hasRoomForDuplicate(undefined)).toBe(true);
  expect(hasRoomForDuplicate(tokens(15))).toBe(true);
  expect(hasRoomForDuplicate(tokens(16))).toBe(false);
});

test("the last five attempts are kept, oldest first", () => {
  let tries = triesWith(undefined, { n: 1, startedAtMs: 1, endedAtMs: 2, outcome: "threw", error: "no" });
  expect(tries).toEqual([{ n: 1, startMs: 1, tookMs: 1, outcome: "threw", error: "no" }]);
  for (let n = 2; n <= 7; n++)
    tries = triesWith(tries, { n, startedAtMs: n, endedAtMs: n, outcome: "returned" });
  expect(tries).toEqual([3, 4, 5, 6, 7].map((n) => ({ n, startMs: n, tookMs: 0, outcome: "returned" })));
});
