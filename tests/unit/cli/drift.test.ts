import { expect, test } from "vitest";
import { findingsOf, scheduleDrift, schedulesIn, shortVisibility } from "../../../cli/stage/drift.ts";
import { daily, hourly, stackOf, twice } from "../infra/setup.ts";

const DISPATCHER = "notes-prod-belfry-dispatcher";
const WANTED = schedulesIn(stackOf([daily, hourly, twice]).resources, DISPATCHER);

const changed = (name: string, change: object) =>
  new Map([...WANTED].map(([key, facts]) => [key, key === name ? { ...facts, ...change } : facts]));

test("the schedules of the stack's jobs are known, and no others", () => {
  expect([...WANTED.keys()].filter((name) => !name.startsWith("twice"))).toEqual(["daily", "hourly"]);
  expect([...WANTED.keys()].filter((name) => name.startsWith("twice."))).toHaveLength(2);
  expect(WANTED.get("daily")).toEqual({
    expression: "cron(0 2 * * ? *)",
    timezone: "Asia/Shanghai",
    isEnabled: true,
    target: DISPATCHER,
  });
});

test("what is as it should be is no drift", () => {
  expect(scheduleDrift(WANTED, WANTED)).toEqual([]);
});

test.each([
  [{ expression: "cron(0 3 * * ? *)" }, "it is cron(0 3 * * ? *) instead of cron(0 2 * * ? *)"],
  [{ timezone: "UTC" }, "its zone is UTC instead of Asia/Shanghai"],
  [{ isEnabled: false }, "it is off instead of on"],
  [{ target: "gone" }, `it invokes gone instead of ${DISPATCHER}`],
])("a schedule that somebody changed (%j) is told", (change, words) => {
  expect(scheduleDrift(WANTED, changed("daily", change))).toEqual([`the schedule daily: ${words}`]);
});

test("a schedule that is gone, and one of nobody, are told; one-time ones that are over are not", () => {
  const facts = { expression: "cron(0 2 * * ? *)", timezone: "UTC", isEnabled: true, target: DISPATCHER };
  const found = new Map([...WANTED].filter(([name]) => name !== "hourly"));
  found.set("stranger", facts);
  found.set("once", { ...facts, expression: "at(2026-01-01T00:00:00)" });
  expect(scheduleDrift(WANTED, found)).toEqual([
    "the schedule hourly is missing",
    "the schedule stranger belongs to no job of the stage",
  ]);
});

test("a job that shares the minute tick has no schedule of its own", () => {
  const facts = { expression: "cron(* * * * ? *)", timezone: "UTC", isEnabled: true, target: DISPATCHER };
  expect(scheduleDrift(WANTED, new Map([["TICK", facts]]))).toEqual([]);
});

test("a queue that hides its messages for less than six times its function's time is told", () => {
  const pool = { pool: "slow", functionS: 90, visibilityS: 540 };
  expect(shortVisibility([pool])).toEqual([]);
  expect(shortVisibility([{ ...pool, visibilityS: 539 }])).toEqual([
    "the queue of the pool slow hides a message for 539 s; with a function of 90 s it should be 540 s",
  ]);
});

test("nothing found is said too", () => {
  const about = { level: "fault", well: "all is well", advice: "deploy again" } as const;
  expect(findingsOf("queues", [], about)).toEqual([{ about: "queues", level: "ok", message: "all is well" }]);
  expect(findingsOf("queues", ["bad"], about)).toEqual([
    { about: "queues", level: "fault", message: "bad", advice: "deploy again" },
  ]);
});
