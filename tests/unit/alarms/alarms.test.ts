import { expect, test } from "vitest";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { definition } from "../../support/definitions.ts";

const pool = { memoryMb: 256, concurrency: 10 };
const alarmsFor = (...pools: readonly string[]) =>
  alarmsOf({ jobs: [], pools: Object.fromEntries(pools.map((name) => [name, pool])) });

test("no two alarms have one key, whatever the pools are called", () => {
  const keys = alarmsFor("default", "queue-age", "a", "a-dead-letters", "dead-letters").map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  for (const key of keys) expect(key).toMatch(/^[a-z][a-z0-9-]+$/);
});

test("only what has to be mended at once wakes somebody", () => {
  const paging = alarmsFor("default").filter(({ topic }) => topic === "page");
  expect(paging.map(({ key }) => key)).toEqual([
    "failures-in-a-row",
    "watchdog-silent",
    "notifier-silent",
    "alerts-undelivered",
    "alarms-waiting",
    "schedules-dropped",
    "dispatch-failures",
  ]);
});

test("silence is an alarm where something must speak each minute, and nowhere else", () => {
  const alarms = alarmsFor("default");
  const silent = alarms.filter(({ missing }) => missing === "breaching").map(({ key }) => key);
  expect(silent).toEqual(["watchdog-silent", "notifier-silent"]);
  // What cannot tell, or has not, is told of without it.
  expect(alarms.filter(({ pastNotifier }) => pastNotifier).map(({ key }) => key)).toEqual([
    "notifier-silent",
    "alerts-undelivered",
    "alarms-waiting",
  ]);
});

test("no alarm waits for what is left lying to be cleared before it can ring for another job", () => {
  for (const { about, metrics } of alarmsFor("default")) {
    if (about === "jobs") expect(metrics.map(({ of }) => of)).toEqual(["service"]);
  }
  const letters = alarmsFor("default").find(({ key }) => key === "pool-default-dead-letters");
  expect(letters).toMatchObject({ statistic: "Sum", metrics: [{ name: "NumberOfMessagesReceived" }] });
});

test("a window fits CloudWatch: a day at most, and a whole number of minutes", () => {
  for (const { periodS, evaluationPeriods, datapointsToAlarm } of alarmsFor("default", "slow")) {
    expect(periodS % 60).toBe(0);
    expect(periodS * evaluationPeriods).toBeLessThanOrEqual(86_400);
    expect(datapointsToAlarm).toBeLessThanOrEqual(evaluationPeriods);
  }
});

test("a queue's age rings only past what its longest job, failing and waiting, explains", () => {
  const slow = definition({ name: "slow", pool: "slow", timeoutMs: 600_000 });
  const alarms = alarmsOf({ jobs: [slow], pools: { default: pool, slow: pool } });
  const thresholds = alarms.flatMap(({ key, threshold }) => (key.endsWith("queue-age") ? [threshold] : []));
  // Three times the function's time-out, the first two waits, five minutes.
  expect(thresholds).toEqual([3 * 90 + 300, 3 * 630 + 60 + 120 + 300]);
});

test("the embedded stack's alarms differ from the deployed ones in the length of a minute only", () => {
  const facts = { jobs: [], pools: { default: pool } };
  const slow = alarmsOf(facts);
  const fast = alarmsOf(facts, { minuteS: 10 });
  expect(fast.map(({ periodS }) => periodS * 6)).toEqual(slow.map(({ periodS }) => periodS));
  const rest = (alarms: ReturnType<typeof alarmsOf>) => alarms.map(({ periodS: _, ...other }) => other);
  expect(rest(fast)).toEqual(rest(slow));
});
