import { expect, test } from "vitest";
import { dismiss, markCancelled, markNeverStarted, nudge, reopen } from "../../../lib/core/runs/marks.ts";
import { start, takeOverAndRun } from "../../../lib/core/runs/transitions.ts";
import { holds, type Item } from "../../../lib/core/write.ts";
import { at, msOf } from "../../support/path.ts";

/**
 * Clauses that other changes keep from mattering, as long as those other changes are made: each is held here by itself,
 * so that no fault needs a second one to be seen.
 */

const occurrence = at("report", "2026-10-25T01:00:00Z");
const NOW = msOf("2026-10-25T01:00:30Z");
const TERMINAL = ["succeeded", "dead", "skipped", "missed", "expired", "cancelled"];

const accepted = (write: { readonly condition?: Parameters<typeof holds>[0] }, item: Item): boolean =>
  holds(write.condition, item);

test("an instant that is left in a record does not make a run due that does not wait", () => {
  const wanted = start({
    occurrence,
    epoch: 1,
    token: "me",
    nowMs: NOW,
    leaseUntilMs: NOW + 60_000,
    locked: false,
    trigger: "schedule",
    queuedAtMs: NOW,
  });
  for (const st of ["running", "parked", ...TERMINAL]) {
    expect([st, accepted(wanted, { st, ep: 1, fence: 1, nextAttemptAtMs: NOW - 1 })]).toEqual([st, false]);
  }
});

test("a lease that is left in a record does not make a run lost that does not run", () => {
  const lost = { occurrence, token: "me", seenFence: 3, nowMs: NOW, clockBoundMs: 0, tries: [] };
  for (const st of ["queued", "waiting", "parked", ...TERMINAL]) {
    const item = { st, ep: 1, fence: 3, leaseUntilMs: NOW - 1 };
    expect([st, accepted(takeOverAndRun(lost, NOW + 1), item)]).toEqual([st, false]);
  }
});

test("a record of what never started is no queued run that may be marked", () => {
  const mark = { occurrence, state: "expired", nowMs: NOW, trigger: "schedule", reason: "late" } as const;
  for (const st of ["waiting", "running", "parked", ...TERMINAL]) {
    expect([st, accepted(markNeverStarted(mark, 1), { st, ep: 1 })]).toEqual([st, false]);
  }
});

const cancelOf = (changes: Partial<Parameters<typeof markCancelled>[0]> = {}) =>
  markCancelled({
    occurrence,
    epoch: 1,
    seenFence: undefined,
    token: "me",
    nowMs: NOW,
    trigger: "schedule",
    reason: "by a person",
    locked: false,
    parkedToo: true,
    ...changes,
  });

test("a cancel ends what nobody carries out at this instant, in the attempt set it means", () => {
  for (const st of ["queued", "waiting", "parked"]) {
    expect([st, accepted(cancelOf(), { st, ep: 1 })]).toEqual([st, true]);
    expect([st, accepted(cancelOf(), { st, ep: 2 })]).toEqual([st, false]);
  }
  for (const st of ["running", ...TERMINAL]) {
    expect([st, accepted(cancelOf(), { st, ep: 1 })]).toEqual([st, false]);
  }
  expect(accepted(cancelOf({ parkedToo: false }), { st: "parked", ep: 1 })).toBe(false);
});

test("a cancel ends the run as it was seen, and no attempt that began since", () => {
  expect(accepted(cancelOf({ seenFence: 3 }), { st: "waiting", ep: 1, fence: 3 })).toBe(true);
  expect(accepted(cancelOf({ seenFence: 3 }), { st: "waiting", ep: 1, fence: 4 })).toBe(false);
  expect(accepted(cancelOf(), { st: "waiting", ep: 1, fence: 1 })).toBe(false);
});

test("a cancel makes a record only of the first attempt set of a job with a lock", () => {
  expect(accepted(cancelOf({ locked: true }), {})).toBe(true);
  expect(accepted(cancelOf({ locked: true, epoch: 2 }), {})).toBe(false);
  expect(accepted(cancelOf(), {})).toBe(false);
});

test("a retry reopens what ended badly or was left to a person, in the attempt set that was seen", () => {
  const again = reopen(occurrence, 2, { token: "me", nowMs: NOW });
  for (const st of ["dead", "parked", "skipped", "missed", "expired", "cancelled"]) {
    expect([st, accepted(again, { st, ep: 2 })]).toEqual([st, true]);
    expect([st, accepted(again, { st, ep: 1 })]).toEqual([st, false]);
    expect([st, accepted(again, { st, ep: 3 })]).toEqual([st, false]);
  }
  for (const st of ["succeeded", "queued", "running", "waiting"]) {
    expect([st, accepted(again, { st, ep: 2 })]).toEqual([st, false]);
  }
});

test("only what is listed, and waits for nobody, can be dismissed", () => {
  expect(accepted(dismiss(occurrence, NOW), { st: "dead", badKey: "k" })).toBe(true);
  expect(accepted(dismiss(occurrence, NOW), { st: "dead" })).toBe(false);
  expect(accepted(dismiss(occurrence, NOW), { st: "parked", badKey: "k" })).toBe(false);
});

test("whoever saw no nudge sends only where nobody has nudged", () => {
  expect(accepted(nudge(occurrence, undefined, { nowMs: NOW, token: "t" }), { st: "queued" })).toBe(true);
  expect(
    accepted(nudge(occurrence, undefined, { nowMs: NOW, token: "t" }), { st: "queued", nudgedAtMs: NOW }),
  ).toBe(false);
});
