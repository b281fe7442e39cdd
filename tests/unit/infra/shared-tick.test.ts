import { expect, test } from "vitest";
import { dispatch } from "../../../lib/app/path/dispatch.ts";
import { schedulerInput } from "../../../lib/core/runs/scheduler-event.ts";
import { definition } from "../../support/definitions.ts";
import { setup } from "../../support/path.ts";

const tick = (scheduledTime: string) => ({
  ...schedulerInput(["hourly", "daily"], { isTick: true }),
  scheduledTime,
});

test("a shared tick starts the jobs whose slot it is, and is nothing to the others: no write, no line", async () => {
  const jobs = [
    definition({ name: "hourly", schedules: ["0 * * * *"] }),
    definition({ name: "daily", schedules: ["0 2 * * *"] }),
  ];
  const env = setup({ now: "2026-10-08T03:00:10Z", jobs });
  expect(await dispatch(env.deps, tick("2026-10-08T03:00:00Z"), "r1")).toEqual(["claimed", "off-schedule"]);
  expect(env.sent.map(({ message }) => message.subject)).toEqual(["hourly"]);
  const writes = env.writes.length;
  expect(await dispatch(env.deps, tick("2026-10-08T03:01:00Z"), "r2")).toEqual([
    "off-schedule",
    "off-schedule",
  ]);
  expect(env.writes).toHaveLength(writes);
  expect(env.codes()).toEqual([]);
});

test("a job that moves between a schedule of its own and the tick keeps its occurrences: the second delivery is a duplicate", async () => {
  const jobs = [definition({ name: "hourly", schedules: ["0 * * * *"] })];
  const env = setup({ now: "2026-10-08T03:00:10Z", jobs });
  const scheduledTime = "2026-10-08T03:00:00Z";
  const own = { ...schedulerInput(["hourly"]), scheduledTime };
  const shared = { ...schedulerInput(["hourly"], { isTick: true }), scheduledTime };
  expect(await dispatch(env.deps, own, "before the deploy")).toEqual(["claimed"]);
  expect(await dispatch(env.deps, shared, "after it")).toEqual(["duplicate"]);
  expect(env.sent).toHaveLength(1);
});
