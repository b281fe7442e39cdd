import { expect, test } from "vitest";
import { AlarmBoard, measurement } from "../../../cli/dev/alarm-board.ts";
import { alarmMessage } from "../../../cli/dev/alarm-event.ts";
import { startAlarmWatch } from "../../../cli/dev/alarm-watch.ts";
import { measurementsIn } from "../../../cli/dev/emf-measurements.ts";
import { readAlarmChange } from "../../../lib/core/alarms/alarm-change.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import type { MetricName } from "../../../lib/core/alarms/metrics.ts";
import { handClock } from "../dev/hand-clock.ts";
import { manifestOf } from "../infra/setup.ts";

const MINUTE_MS = 10_000;
const START_MS = Date.parse("2026-10-08T12:00:00Z");
const MANIFEST = manifestOf([]);

const setup = () => {
  const board = new AlarmBoard({ minuteMs: MINUTE_MS, nowMs: START_MS });
  board.use(alarmsOf(MANIFEST, { minuteS: MINUTE_MS / 1_000 }));
  const count = (name: MetricName, atMs: number) => board.add(measurement({ of: "service", name }, atMs));
  /** Judges at each minute up to the given one; answers what changed, and after how many. */
  const judgeUntil = (minutes: number, from = 1) =>
    Array.from({ length: minutes - from + 1 }, (_, i) => from + i).flatMap((minute) =>
      board
        .judge(START_MS + minute * MINUTE_MS)
        .filter(({ from: before, to }) => before !== undefined || to === "alarm")
        .map(({ alarm, to }) => `${minute} ${alarm.key} ${to}`),
    );
  return { board, count, judgeUntil };
};

test("an alarm rings once, and is over once, however often it is judged", () => {
  const { count, judgeUntil } = setup();
  count("RunsDead", START_MS + 1);
  expect(judgeUntil(10)).toEqual(["1 runs-dead alarm", "4 runs-dead ok"]);
});

test("what rings is known with its beginning", () => {
  const { board, count } = setup();
  count("RunsDead", START_MS + 1);
  board.judge(START_MS + MINUTE_MS);
  board.judge(START_MS + 2 * MINUTE_MS);
  expect(board.ringing()).toMatchObject([{ alarm: { key: "runs-dead" }, sinceMs: START_MS + MINUTE_MS }]);
});

test("a watchdog that has never spoken is given a quarter of an hour, one that has spoken is not", () => {
  const silent = setup();
  expect(silent.judgeUntil(20)).toEqual(["15 watchdog-silent alarm", "15 notifier-silent alarm"]);
  const stopped = setup();
  stopped.count("WatchdogPasses", START_MS + 1);
  expect(stopped.judgeUntil(10)).toEqual(["8 watchdog-silent alarm"]);
});

test("a first sign of life in the minute that is not over yet is no silence before it", () => {
  const { board, count } = setup();
  const atMs = START_MS + MINUTE_MS;
  for (const name of ["WatchdogPasses", "NotifierPasses"] as const) count(name, atMs + 500);
  expect(board.judge(atMs + 1_000)).not.toContainEqual(expect.objectContaining({ to: "alarm" }));
  expect(board.judge(atMs + MINUTE_MS + 1_000)).not.toContainEqual(expect.objectContaining({ to: "alarm" }));
});

test("a machine that was asleep is no watchdog that was silent", () => {
  const { board, count, judgeUntil } = setup();
  for (const name of ["WatchdogPasses", "NotifierPasses"] as const) count(name, START_MS + 1);
  expect(judgeUntil(2)).toEqual([]);
  board.wokeUp(START_MS + 1_000 * MINUTE_MS);
  expect(judgeUntil(1_010, 1_001)).toEqual([]);
});

test("measurements that no alarm looks at any more are forgotten", () => {
  const { board, count, judgeUntil } = setup();
  count("RunsDead", START_MS + 1);
  judgeUntil(40);
  // Were it still known, an alarm that is judged in the past would ring.
  expect(board.judge(START_MS + MINUTE_MS).filter(({ to }) => to === "alarm")).toEqual([]);
});

test("a pool that a new build does not have takes its alarms along", () => {
  const { board } = setup();
  board.add(
    measurement(
      { of: "queue", queue: { kind: "dead-letters", pool: "slow" }, name: "NumberOfMessagesReceived" },
      START_MS + 1,
    ),
  );
  board.judge(START_MS + MINUTE_MS);
  expect(board.ringing().map(({ alarm }) => alarm.key)).toEqual(["pool-slow-dead-letters"]);
  board.use(alarmsOf({ jobs: [], pools: { default: { memoryMb: 256, concurrency: 2 } } }));
  expect(board.ringing()).toEqual([]);
});

const LINE = JSON.stringify({
  level: "ERROR",
  message: "run",
  service: "belfry",
  _aws: {
    Timestamp: START_MS,
    CloudWatchMetrics: [
      {
        Namespace: "Belfry",
        Dimensions: [["service", "stage"]],
        Metrics: [{ Name: "RunsDead", Unit: "Count" }],
      },
    ],
  },
  RunsDead: 1,
});

test("a log line's metrics are read as CloudWatch reads them", () => {
  expect(measurementsIn(LINE)).toEqual([{ id: "RunsDead", atMs: START_MS, value: 1 }]);
});

test.each([
  ["a line of a job", "hello"],
  ["a line that only speaks of it", 'the field "_aws" is missing'],
  ["half a line", LINE.slice(0, 100)],
  ["a line without a value", LINE.replace('"RunsDead":1', '"RunsDead":"1"')],
  ["a line without a time", LINE.replace(String(START_MS), '"now"')],
])("%s has no metrics", (_what, line) => {
  expect(measurementsIn(line)).toEqual([]);
});

test("the notifier reads a change of the embedded stack as it reads one of CloudWatch", () => {
  const { board, count } = setup();
  count("RunsDead", START_MS + 1);
  const [change] = board.judge(START_MS + MINUTE_MS).filter(({ to }) => to === "alarm");
  if (change === undefined) throw new Error("nothing rang");
  const { Message } = JSON.parse(alarmMessage(change)) as { readonly Message: string };
  expect(readAlarmChange(Message)).toMatchObject({
    name: "belfry-dev-runs-dead",
    state: "ringing",
    atMs: START_MS + MINUTE_MS,
  });
});

/** A watch over a project, three seconds into a minute; what it says and tells, as short texts. */
const watching = () => {
  const hand = handClock("2026-10-08T12:00:03Z");
  const said: string[] = [];
  const told: string[] = [];
  const watch = startAlarmWatch({
    minuteMs: MINUTE_MS,
    clock: hand,
    timers: hand,
    say: (line) => said.push(line),
    tell: (ringing, changes) => {
      const begun = changes.filter(({ to }) => to === "alarm");
      told.push(`${ringing.map(({ alarm }) => alarm.key).join()} ${begun.length}`);
    },
  });
  watch.use(MANIFEST);
  return { hand, said, told, watch };
};

test("each minute is judged a moment after it is over, said, and told on, until the end", () => {
  const { hand, said, told, watch } = watching();
  watch.line(LINE);
  hand.advance(7_999);
  expect(told).toEqual([]);
  hand.advance(1);
  expect(told).toEqual(["runs-dead 1"]);
  expect(said).toEqual([expect.stringMatching(/^alarm runs-dead rings: A run has used up/)]);
  hand.advance(40_000);
  expect(said.slice(1)).toEqual(["alarm runs-dead is over"]);
  watch.stop();
  hand.advance(40_000);
  expect(told).toHaveLength(5);
});

test("a laptop that was closed for an hour rings for nobody's silence when it is opened", () => {
  const { hand, said, watch } = watching();
  watch.measured([
    measurement({ of: "service", name: "WatchdogPasses" }, hand.nowMs()),
    measurement({ of: "service", name: "NotifierPasses" }, hand.nowMs()),
  ]);
  hand.advance(10_000);
  hand.step(3_600_000);
  hand.advance(60_000);
  expect(said).toEqual([]);
});
