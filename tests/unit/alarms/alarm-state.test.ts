import { expect, test } from "vitest";
import type { AlarmDefinition, AlarmRule, Measured } from "../../../lib/core/alarms/alarm.ts";
import { judge, metricId, type Point, stateOf } from "../../../lib/core/alarms/alarm-state.ts";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { definition } from "../../support/definitions.ts";

const RULE: AlarmRule = {
  statistic: "Sum",
  periodS: 300,
  datapointsToAlarm: 3,
  evaluationPeriods: 3,
  comparison: "at-least",
  threshold: 1,
  missing: "notBreaching",
};

/** As the documentation of CloudWatch writes them: 0 = within the threshold, X = over it, - = missing, newest last. */
const judged = (text: string, changes: Partial<AlarmRule>) =>
  judge(
    { ...RULE, ...changes },
    text.split(" ").map((sign) => (sign === "-" ? undefined : sign === "X" ? 1 : 0)),
  );

// The tables of "Configuring how CloudWatch alarms treat missing data".
test.each([
  ["0 - X - X", "ok", "ok"],
  ["0 - - - -", "ok", "ok"],
  ["- - - - -", "alarm", "ok"],
  ["0 X X - X", "alarm", "alarm"],
  ["- - X - -", "alarm", "ok"],
])(
  "three of three: %s is %s where missing data is breaching, %s where it is not",
  (values, breaching, not) => {
    expect(judged(values, { missing: "breaching" })).toBe(breaching);
    expect(judged(values, { missing: "notBreaching" })).toBe(not);
  },
);

test.each([
  ["0 - X - X", "alarm", "alarm"],
  ["0 0 X 0 X", "alarm", "alarm"],
  ["0 - X - -", "alarm", "ok"],
  ["- - - - 0", "alarm", "ok"],
  ["- - - X -", "alarm", "ok"],
])("two of three: %s is %s where missing data is breaching, %s where it is not", (values, breaching, not) => {
  const changes = { datapointsToAlarm: 2 } as const;
  expect(judged(values, { ...changes, missing: "breaching" })).toBe(breaching);
  expect(judged(values, { ...changes, missing: "notBreaching" })).toBe(not);
});

test("a threshold is met by the value itself, and below it by no less", () => {
  expect(judge({ ...RULE, datapointsToAlarm: 1, threshold: 2 }, [2])).toBe("alarm");
  expect(judge({ ...RULE, datapointsToAlarm: 1, threshold: 2 }, [1])).toBe("ok");
  expect(judge({ ...RULE, datapointsToAlarm: 1, comparison: "below" }, [1])).toBe("ok");
  expect(judge({ ...RULE, datapointsToAlarm: 1, comparison: "below" }, [0])).toBe("alarm");
});

const MINUTE_MS = 60_000;
const NOON_MS = Date.parse("2026-10-08T12:00:00Z");
const POOL = { memoryMb: 256, concurrency: 2 };
const ALARMS = alarmsOf({ jobs: [definition({ name: "daily" })], pools: { default: POOL, slow: POOL } });
const alarm = (key: string): AlarmDefinition => {
  const found = ALARMS.find((each) => each.key === key);
  if (found === undefined) throw new Error(`there is no alarm ${key}`);
  return found;
};

/** Points at minutes before noon. */
const at = (...minutesBefore: readonly number[]): readonly Point[] =>
  minutesBefore.map((minutes) => ({ atMs: NOON_MS - minutes * MINUTE_MS, value: 1 }));

const stateAt = (key: string, points: readonly Point[], nowMs = NOON_MS) =>
  stateOf(alarm(key), () => points, { nowMs });

test("one dead run rings as soon as its minute is over, and the ringing ends by itself", () => {
  const points = [{ atMs: NOON_MS + 5_000, value: 1 }];
  expect(stateAt("runs-dead", points, NOON_MS + 59_999)).toBe("ok");
  expect(stateAt("runs-dead", points, NOON_MS + 60_000)).toBe("alarm");
  expect(stateAt("runs-dead", points, NOON_MS + 3 * 60_000)).toBe("alarm");
  expect(stateAt("runs-dead", points, NOON_MS + 4 * 60_000)).toBe("ok");
});

test("the dead run of another job rings again after that, whatever is still left lying of the first", () => {
  const points = at(30, 5);
  const ringing = Array.from({ length: 35 }, (_, n) =>
    stateAt("runs-dead", points, NOON_MS + (n - 32) * MINUTE_MS),
  );
  const rises = ringing.filter((state, i) => state === "alarm" && ringing[i - 1] !== "alarm");
  expect(rises).toHaveLength(2);
});

test("a watchdog that stops is silent after five minutes and CloudWatch's own two, and well with its next pass", () => {
  const lastPass = at(20, 19, 18, 17, 16);
  const ringsAt = [0, 1, 2, 3, 4, 5, 6, 7, 8].find(
    (minutes) => stateAt("watchdog-silent", lastPass, NOON_MS + (minutes - 15) * MINUTE_MS) === "alarm",
  );
  expect(ringsAt).toBe(7);
  expect(stateAt("watchdog-silent", [...lastPass, ...at(1)])).toBe("ok");
  // A pass now and then is not silence: what is missing between is delivery, or a slow pass.
  expect(stateAt("watchdog-silent", at(1, 4))).toBe("ok");
});

test("failing attempts ring when it goes on for a quarter of an hour, not for one bad run", () => {
  expect(stateAt("attempts-failing", at(1))).toBe("ok");
  expect(stateAt("attempts-failing", at(1, 2, 3, 4, 5))).toBe("ok");
  expect(stateAt("attempts-failing", at(2, 7, 12))).toBe("alarm");
});

test("throttles of any function count together", () => {
  const throttled = (each: Measured): readonly Point[] =>
    metricId(each) === "Throttles worker slow"
      ? at(2)
      : metricId(each) === "Throttles dispatcher"
        ? at(7)
        : [];
  expect(stateOf(alarm("throttles"), throttled, { nowMs: NOON_MS })).toBe("alarm");
  expect(stateOf(alarm("throttles"), (each) => throttled(each).slice(0, 0), { nowMs: NOON_MS })).toBe("ok");
});

test("dead letters that come and go are not waiting; those that never go are", () => {
  const depth = (values: readonly number[]): readonly Point[] =>
    values.map((value, i) => ({ atMs: NOON_MS - (values.length - i) * MINUTE_MS, value }));
  expect(stateAt("dead-letters-waiting", depth([3, 2, 1, 0, 4, 3, 2, 1, 0, 4, 3, 2, 1, 0, 4]))).toBe("ok");
  expect(stateAt("dead-letters-waiting", depth(Array(15).fill(2)))).toBe("alarm");
});

test("metrics of different queues, functions and groups have different ids", () => {
  const ids = ALARMS.flatMap(({ metrics }) => metrics.map(metricId));
  const perAlarm = new Set(ALARMS.flatMap(({ metrics }) => metrics.map((each) => JSON.stringify(each))));
  expect(new Set(ids).size).toBe(perAlarm.size);
});
