import { expect, test } from "vitest";
import { dispatch } from "../../../lib/app/dispatch.ts";
import { schedulerInput } from "../../../lib/core/scheduler-event.ts";
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
