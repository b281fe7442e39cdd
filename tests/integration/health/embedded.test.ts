import { afterAll, beforeAll, expect, test } from "vitest";
import { dynamoTable } from "../../../lib/adapters/dynamo/dynamo-table.ts";
import { makeInspect } from "../../../lib/app/inspect/inspect.ts";
import { muteJob, resumeJob } from "../../../lib/app/operate/operator.ts";
import { readAlert } from "../../../lib/core/alerts/outbox.ts";
import { WAITING_ALERTS } from "../../../lib/core/items.ts";
import { DEFAULTS } from "../../../lib/core/jobs/job.ts";
import { definition } from "../../support/definitions.ts";
import { embeddedTable } from "../../support/embedded-table.ts";
import { liveStack } from "../../support/live-stack.ts";
import { failure, msOf } from "../../support/path.ts";

let embedded: Awaited<ReturnType<typeof embeddedTable>>;
beforeAll(async () => {
  embedded = await embeddedTable();
});
afterAll(() => embedded.close());

const job = definition({
  name: "report",
  schedules: ["*/5 * * * *"],
  timezone: "Asia/Shanghai",
  retry: { ...DEFAULTS.retry, retries: 0 },
  alerts: { ...DEFAULTS.alerts, pauseAfter: 3 },
});

test("over the wire protocol of DynamoDB, health is judged, stored, told and shown the same", async () => {
  const table = dynamoTable(embedded.db, embedded.tableName);
  const memoryOnly = { items: () => [], expire: () => undefined };
  const stack = await liveStack({
    now: "2027-03-01T00:31:00Z",
    jobs: [job],
    table: { ...table, ...memoryOnly },
  });
  const inspect = makeInspect(stack.deps);
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T00:49:00Z");
  expect(await inspect.listJobs()).toMatchObject([
    { health: "paused", failuresInARow: 3, healthSince: "2027-03-01T00:35:00Z" },
  ]);
  await resumeJob(stack.deps, job);
  stack.handle(() => ({ kind: "returned" }));
  await stack.playUntil("2027-03-01T00:54:00Z");
  await muteJob(stack.deps, job, { untilMs: msOf("2027-03-02T00:00:00Z") });
  stack.handle(() => failure());
  await stack.playUntil("2027-03-01T00:59:00Z");

  const waiting = await table.query({ index: "bad", pk: WAITING_ALERTS, first: "0", last: "~" });
  expect(waiting.map((item) => readAlert(item)?.kind)).toEqual(["failed", "paused", "recovered"]);
  expect(await inspect.listFlips(job, 10)).toMatchObject([
    { n: 4, from: "up", to: "failing" },
    { n: 3, to: "up", alert: { topic: "page", kind: "recovered" } },
    { n: 2, from: "failing", to: "paused", alert: { topic: "page", kind: "paused" } },
    { n: 1, from: "up", to: "failing", alert: { topic: "notify", kind: "failed" } },
  ]);
  expect(await inspect.listJobs()).toMatchObject([
    { health: "failing", failuresInARow: 1, muted: { until: "2027-03-02T00:00:00Z" } },
  ]);
}, 60_000);
