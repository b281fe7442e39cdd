import { expect, test } from "vitest";
import { alarmsOf } from "../../../lib/core/alarms/alarms.ts";
import { PRICES } from "../../../lib/core/costs/prices.ts";
import { watchingCost } from "../../../lib/core/costs/watching-cost.ts";
import { definition } from "../../support/definitions.ts";
import { manifestOf, ofType, stackOf } from "../infra/setup.ts";

const { pools } = manifestOf([]);

test("what it costs to watch does not grow with the jobs, but for metrics and alarms of each job", () => {
  const [ten, thousand] = [watchingCost(10, pools), watchingCost(1_000, pools)];
  expect(thousand.total).toEqual(ten.total);
  expect(thousand.perJob.atMostUsd).toBe(100 * ten.perJob.atMostUsd);
});

test("the alarms that are paid for are those of the template", () => {
  const { alarms, alarmMetrics, dashboard, key } = watchingCost(1, pools);
  const stack = stackOf([definition({ name: "daily" })]);
  expect(ofType(stack, "AWS::CloudWatch::Alarm")).toHaveLength(alarms.count);
  expect(ofType(stack, "AWS::CloudWatch::Dashboard")).toHaveLength(dashboard.count);
  expect(ofType(stack, "AWS::KMS::Key")).toHaveLength(key.count);
  const watched = alarmsOf({ jobs: [], pools }).flatMap(({ metrics }) => metrics).length;
  expect(alarmMetrics).toEqual({ count: watched, usd: Math.round(watched * 100 * PRICES.alarmMetric) / 100 });
});

test("a job with alarms of its own adds as many as are estimated", () => {
  const own = definition({ name: "daily", ownAlarms: true });
  const { perJob } = watchingCost(1, pools);
  const more = alarmsOf({ jobs: [own], pools }).length - alarmsOf({ jobs: [], pools }).length;
  expect(more).toBe(perJob.alarmMetrics.count);
});
