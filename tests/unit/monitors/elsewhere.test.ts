import { expect, test } from "vitest";
import { scheduledJobs } from "../../../cli/dev/job-slots.ts";
import { chooseJobs } from "../../../cli/simulate/choice.ts";
import { hourly, manifestOf, ofType, stackOf } from "../infra/setup.ts";

const backup = { ...hourly, name: "backup", subject: "backup", monitor: { endWithinMs: 60_000 } };

test("a deploy makes no schedule for a monitor, nor does it join a shared tick", () => {
  const inputs = ofType(stackOf([hourly, backup]), "AWS::Scheduler::Schedule").map(([, resource]) =>
    JSON.stringify(resource),
  );
  expect(inputs.filter((text) => text.includes("hourly"))).toHaveLength(1);
  expect(inputs.filter((text) => text.includes("backup"))).toEqual([]);
});

test("on a laptop, and on a virtual clock, nothing strikes for a monitor", () => {
  const manifest = manifestOf([hourly, backup]);
  expect(scheduledJobs(manifest).map(({ job }) => job.name)).toEqual(["hourly"]);
  expect(chooseJobs(manifest, [], undefined).map(({ name }) => name)).toEqual(["hourly"]);
  expect(() => chooseJobs(manifest, ["backup"], undefined)).toThrow(/monitor/);
});
