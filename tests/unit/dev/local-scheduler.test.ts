import { expect, test } from "vitest";
import type { SlotSource } from "../../../cli/dev/due-slots.ts";
import { schedulerEvent, startLocalScheduler } from "../../../cli/dev/local-scheduler.ts";
import { parseSchedulerEvent } from "../../../lib/core/runs/scheduler-event.ts";
import { isoOf, readInstant } from "../../../lib/core/time.ts";
import { handClock } from "./hand-clock.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const every = (name: string, periodMs: number): SlotSource => ({
  name,
  next: (afterMs) => (Math.floor(afterMs / periodMs) + 1) * periodMs,
});

const once = (name: string, iso: string): SlotSource => {
  const slotMs = Date.parse(iso);
  return { name, next: (afterMs) => (afterMs < slotMs ? slotMs : undefined) };
};

const setup = (now: string, sources: readonly SlotSource[]) => {
  const clock = handClock(now);
  const struck: string[] = [];
  const early: string[] = [];
  const scheduler = startLocalScheduler({
    sources,
    clock,
    timers: clock,
    send: (event) => {
      const { subjects, slotMs } = parseSchedulerEvent(event);
      struck.push(`${subjects.join()} ${isoOf(slotMs).slice(11, 16)}`);
      if (slotMs > clock.nowMs()) early.push(isoOf(slotMs));
    },
  });
  return { clock, struck, early, scheduler };
};

test("each slot is struck once, at its instant and not a millisecond before", () => {
  const { clock, struck } = setup("2026-10-08T01:58:59.999Z", [every("a", MINUTE), every("b", HOUR)]);
  clock.advance(0);
  expect(struck).toEqual([]);
  clock.advance(1);
  expect(struck).toEqual(["a 01:59"]);
  clock.advance(MINUTE);
  expect(struck).toEqual(["a 01:59", "a 02:00", "b 02:00"]);
});

test("a slot that is the very instant of the start is not struck", () => {
  const { clock, struck } = setup("2026-10-08T02:00:00Z", [every("a", HOUR)]);
  clock.advance(MINUTE);
  expect(struck).toEqual([]);
});

test("a wait of two months ends at its slot, in pieces that a timer can hold", () => {
  const { clock, struck } = setup("2026-01-01T00:00:00Z", [once("a", "2026-03-01T12:00:00Z")]);
  expect(Math.max(...clock.waits())).toBeLessThan(2 ** 31);
  clock.advance(Date.parse("2026-03-01T12:00:00Z") - Date.parse("2026-01-01T00:00:00Z") - 1);
  expect(struck).toEqual([]);
  clock.advance(1);
  expect(struck).toEqual(["a 12:00"]);
});

test("a timer that calls back early is armed again for the rest", () => {
  const { clock, struck, early } = setup("2026-10-08T01:59:55Z", [every("a", HOUR)]);
  clock.step(-2);
  clock.advance(5_000);
  expect(struck).toEqual([]);
  clock.advance(2);
  expect(struck).toEqual(["a 02:00"]);
  expect(early).toEqual([]);
});

test("of the slots slept through, only those of the last minute are struck; the rest are the watchdog's", () => {
  const { clock, struck } = setup("2026-10-08T02:00:30Z", [every("a", MINUTE)]);
  clock.step(8 * HOUR);
  clock.advance(10_000);
  expect(struck).toEqual(["a 10:00"]);
});

test("a slot that passed half a minute ago, while the machine slept, is still struck", () => {
  const { clock, struck } = setup("2026-10-08T01:59:50Z", [every("a", HOUR)]);
  clock.step(30_000);
  clock.advance(10_000);
  expect(struck).toEqual(["a 02:00"]);
});

test("a clock put back does not strike a struck slot again, and goes on with the next", () => {
  const { clock, struck } = setup("2026-10-08T01:59:30Z", [every("a", MINUTE)]);
  clock.advance(2 * MINUTE);
  expect(struck).toEqual(["a 02:00", "a 02:01"]);
  clock.step(-90_000);
  clock.advance(2 * MINUTE);
  expect(struck).toEqual(["a 02:00", "a 02:01", "a 02:02"]);
});

test("a clock that was a year ahead, put right, strikes today's slots", () => {
  const { clock, struck } = setup("2027-10-08T01:59:30Z", [every("a", HOUR)]);
  clock.step(-365 * DAY);
  clock.advance(MINUTE);
  expect(struck).toEqual(["a 02:00"]);
});

test("after a stop nothing is struck, and what was due by then has been", () => {
  const { clock, struck, scheduler } = setup("2026-10-08T01:59:59Z", [every("a", HOUR)]);
  clock.step(2_000);
  expect(scheduler.stop()).toBe(readInstant("2026-10-08T02:00:01Z"));
  clock.advance(DAY);
  expect(struck).toEqual(["a 02:00"]);
});

test("a successor begins where the one before it has stopped", () => {
  const { clock, scheduler } = setup("2026-10-08T01:59:59Z", []);
  const sinceMs = scheduler.stop();
  clock.step(1_500);
  const struck: unknown[] = [];
  startLocalScheduler({
    sources: [every("a", HOUR)],
    sinceMs,
    clock,
    timers: clock,
    send: (event) => struck.push(event),
  });
  clock.advance(1);
  expect(struck).toHaveLength(1);
});

test("the event is the schedule's Input with every context attribute filled in, as text", () => {
  expect(schedulerEvent("clean-sessions", Date.parse("2026-10-08T02:00:00Z"))).toEqual({
    version: 1,
    subjects: ["clean-sessions"],
    scheduledTime: "2026-10-08T02:00:00Z",
    scheduleArn: "arn:aws:scheduler:us-east-1:000000000000:schedule/belfry-dev/clean-sessions",
    executionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    attempt: "1",
  });
});
