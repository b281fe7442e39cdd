import { expect, test } from "vitest";
import { NO_ALERTS } from "../../../lib/core/alerts/alert-channels.ts";
import { markConfig } from "../../../lib/core/jobs/authoring.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { checkJob } from "../../../lib/core/jobs/job-options.ts";
import { checkConfig } from "../../../lib/core/jobs/project-config.ts";

const handler = () => undefined;
const definitionOf = (options: object): JobDefinition => {
  const checked = checkJob({ handler, ...options }, "digest");
  if (!checked.ok) throw new Error(JSON.stringify(checked.faults));
  return checked.value;
};
/** `field: message (hint)`, one for each fault. */
const faultsOf = (options: unknown, fallback = "digest"): readonly string[] => {
  const checked = checkJob(options, fallback);
  return checked.ok
    ? []
    : checked.faults.map(
        ({ field, message, hint }) => `${field ?? ""}: ${message}${hint ? ` (${hint})` : ""}`,
      );
};

test("a job with nothing but a handler has every default", () => {
  expect(definitionOf({})).toEqual({
    name: "digest",
    subject: "digest",
    schedules: [],
    timezone: "UTC",
    dst: { gap: "skip", repeat: "first" },
    input: {},
    overlap: "skip",
    misfire: { policy: "latest", max: 1 },
    startDeadlineMs: 86_400_000,
    timeoutMs: 300_000,
    retry: { retries: 5, firstWaitMs: 60_000, factor: 2, maxWaitMs: 900_000, jitter: 0.1, crashes: 3 },
    onUnknown: "retry",
    graceMs: 300_000,
    alerts: { notifyAfter: 1, pageAfter: 3, remindEveryMs: 86_400_000, recovery: true },
    pool: "default",
  });
});

test("every option that is given stands in the definition", () => {
  const options = {
    name: "mail",
    description: "Mails the digest",
    owner: "team-a",
    runbook: "https://example.com/mail",
    schedule: ["0 9 * * 1-5", "every(6 hours)"],
    timezone: "Europe/Paris",
    dst: { gap: "run-after", repeat: "both" },
    startsAt: "2027-01-01",
    endsAt: "2027-06-30T12:00",
    input: { to: ["a@example.com"] },
    overlap: "allow",
    misfire: { policy: "all", max: 10, within: "3 hours" },
    startDeadline: "3 hours",
    timeout: "15 minutes",
    retry: { retries: 2, ladder: ["1 minute", "5 minutes"], jitter: 0, crashes: 1 },
    onUnknown: "park",
    grace: "10 minutes",
    alerts: {
      notifyAfter: 2,
      pageAfter: "never",
      pauseAfter: 10,
      finishWithin: "1 hour",
      slowAfter: "20 minutes",
      remindEvery: "6 hours",
      recovery: false,
    },
    stages: ["prod"],
    pool: "slow",
    renamedFrom: ["oldest", "older"],
  };
  expect(definitionOf(options)).toEqual({
    name: "mail",
    subject: "oldest",
    description: "Mails the digest",
    owner: "team-a",
    runbook: "https://example.com/mail",
    schedules: ["0 9 * * 1-5", "every(6 hours)"],
    timezone: "Europe/Paris",
    dst: { gap: "run-after", repeat: "both" },
    startsAtMs: Date.parse("2026-12-31T23:00:00Z"),
    endsAtMs: Date.parse("2027-06-30T10:00:00Z"),
    input: { to: ["a@example.com"] },
    overlap: "allow",
    misfire: { policy: "all", max: 10, withinMs: 10_800_000 },
    startDeadlineMs: 10_800_000,
    timeoutMs: 900_000,
    retry: {
      retries: 2,
      ladderMs: [60_000, 300_000],
      firstWaitMs: 60_000,
      factor: 2,
      maxWaitMs: 900_000,
      jitter: 0,
      crashes: 1,
    },
    onUnknown: "park",
    graceMs: 600_000,
    alerts: {
      notifyAfter: 2,
      pauseAfter: 10,
      finishWithinMs: 3_600_000,
      slowAfterMs: 1_200_000,
      remindEveryMs: 21_600_000,
      recovery: false,
    },
    stages: ["prod"],
    pool: "slow",
  });
});

test.each([
  ["2027-01-01T09:00:00Z", "2027-01-01T09:00:00Z"],
  ["2027-01-01T09:00:00+02:00", "2027-01-01T07:00:00Z"],
  ["2027-01-01T09:00", "2027-01-01T01:00:00Z"],
  ["2027-01-01", "2026-12-31T16:00:00Z"],
])("startsAt %s in Shanghai is %s", (startsAt, instant) => {
  expect(definitionOf({ timezone: "Asia/Shanghai", startsAt }).startsAtMs).toBe(Date.parse(instant));
});

test.each([
  ["0 8 * * *", 60_000, 900_000],
  ["every(30 minutes)", 60_000, 900_000],
  ["every(15 minutes)", 30_000, 450_000],
  ["* * * * *", 2_000, 30_000],
])("default retry waits of %s fit into one period together", (schedule, firstWaitMs, maxWaitMs) => {
  const { retry } = definitionOf({ schedule });
  expect(retry).toMatchObject({ retries: 5, firstWaitMs, maxWaitMs });
});

test("the period is the shortest gap of all schedules together", () => {
  const { retry } = definitionOf({ schedule: ["0 9 * * *", "10 9 * * *"] });
  let total = 0;
  for (let n = 0; n < retry.retries; n++)
    total += Math.min(retry.firstWaitMs * retry.factor ** n, retry.maxWaitMs);
  expect(total).toBeLessThanOrEqual(600_000);
  expect(total).toBeGreaterThan(540_000);
});

test("waits that the job names are taken as they are", () => {
  expect(definitionOf({ schedule: "* * * * *", retry: { firstWait: "2 minutes" } }).retry).toMatchObject({
    firstWaitMs: 120_000,
    maxWaitMs: 900_000,
  });
  expect(definitionOf({ retry: { firstWait: "1 hour" } }).retry).toMatchObject({ maxWaitMs: 3_600_000 });
  expect(definitionOf({ retry: { ladder: ["1 minute", "5 minutes", "15 minutes"] } }).retry.retries).toBe(3);
});

test.each([
  ["of one slot, as only so late a run is of use", { schedule: "0 9 * * *", misfire: { within: "2 hours" } }],
  ["as long as a period", { schedule: "0 * * * *", misfire: { policy: "all", within: "1 hour" } }],
  ["of a job without a schedule", { misfire: { policy: "all", within: "1 hour" } }],
  [
    "of a job with one slot",
    { schedule: "at(2027-01-01T00:00)", misfire: { policy: "all", within: "1 hour" } },
  ],
])("a misfire within %s is taken as it is", (_, options) => {
  expect(definitionOf(options).misfire).toHaveProperty("withinMs");
});

test("misfire all reaches as far back as a run may start", () => {
  expect(definitionOf({ misfire: "all", startDeadline: "6 hours" }).misfire).toEqual({
    policy: "all",
    max: 100,
    withinMs: 21_600_000,
  });
  expect(definitionOf({ misfire: "skip" }).misfire).toEqual({ policy: "skip", max: 1 });
});

test.each([
  ["queue", "queue"],
  ["replace", "replace"],
  [{ max: 2 }, { max: 2, whenFull: "skip" }],
  [
    { max: 3, whenFull: "queue" },
    { max: 3, whenFull: "queue" },
  ],
])("overlap %j is kept with what it leaves open filled in", (given, kept) => {
  expect(definitionOf({ overlap: given }).overlap).toEqual(kept);
});

test.each<[string, object, string]>([
  [
    "an option nobody knows",
    { timout: "1 minute" },
    'timout: there is no such option (did you mean "timeout"?)',
  ],
  ["an option of a later version", { except: [] }, "except: this option is not available yet (leave it out)"],
  ["no shards", { shards: 0 }, "shards: this is neither a whole number from 1 on nor a function that lists"],
  [
    "a million shards",
    { shards: 1_000_000 },
    "shards: 1000000 shards are too many; at most 262144 (let each",
  ],
  [
    "shards as a list",
    { shards: ["eu", "us"] },
    "shards: this is neither a whole number from 1 on nor a function that lists the shards (shards: 100, or",
  ],
  ["none in flight", { shards: 4, maxInFlight: 0 }, "maxInFlight: 0 is not a whole number from 1 to 262144"],
  [
    "a share of failures without a percent sign",
    { shards: 4, toleratedFailures: "some" },
    "toleratedFailures: this is neither a number nor a share (toleratedFailures: 10, or '2 %')",
  ],
  ["more failures than there are", { shards: 4, toleratedFailures: "101 %" }, "toleratedFailures: this is"],
  ["a hook without shards", { join: handler }, "join: the job has no shards (set shards too)"],
  ["a hook that is no function", { shards: 4, join: "sum" }, "join: this is not a function (join: async"],
  ["an overlap limit of none", { overlap: { max: 0 } }, "overlap.max: 0 is not a whole number from 1 to 50"],
  [
    "an overlap limit without a number",
    { overlap: { whenFull: "queue" } },
    "overlap.max: how many may run at once is missing (overlap: { max: 2 })",
  ],
  [
    "an overlap policy nobody knows",
    { overlap: "wait" },
    'overlap: "wait" is not accepted (write one of "skip", "queue", "replace", "allow")',
  ],
  [
    "a wrong word",
    { misfire: "none" },
    'misfire: "none" is not accepted (write one of "skip", "latest", "all")',
  ],
  ["a name with capitals", { name: "Mail" }, 'name: "Mail" is no name'],
  ["a long timeout", { timeout: "1 hour" }, 'timeout: "1 hour" is too long; at most 15 minutes'],
  ["a number as duration", { grace: 5 }, "grace: 5 is not a duration (write a whole number and a unit"],
  ["no failures at all", { alerts: { notifyAfter: 0 } }, "alerts.notifyAfter: 0 is not a whole number"],
  ["a page for nobody", { alerts: { pageAfter: false } }, "alerts.pageAfter: false is not a whole number"],
  [
    "a page before the first notice",
    { alerts: { notifyAfter: 5 } },
    "alerts.notifyAfter: it is more than pageAfter (3), which wakes somebody (lower it, or raise pageAfter)",
  ],
  [
    "a pause that nobody would hear of",
    { alerts: { notifyAfter: 3, pauseAfter: 2 } },
    "alerts.pauseAfter: it is less than notifyAfter (3)",
  ],
  ["a recovery that is no flag", { alerts: { recovery: "yes" } }, "alerts.recovery: this is neither"],
  ["a time zone that does not exist", { timezone: "Mars/Base" }, "timezone: no such time zone"],
  ["the second of two schedules", { schedule: ["0 9 * * *", "0 25 * * *"] }, "schedule[1]: "],
  ["an empty list", { stages: [] }, "stages: the list is empty (leave the option out instead)"],
  ["a date as input", { input: { at: new Date(0) } }, "input: JSON cannot carry this value unchanged"],
  ["a BigInt as input", { input: 1n }, "input: JSON cannot carry this value unchanged"],
  ["a schema that is none", { schema: {} }, "schema: this is no Standard Schema"],
  [
    "an end before the start",
    { startsAt: "2027-02-01", endsAt: "2027-01-01" },
    "endsAt: the end is not after startsAt",
  ],
  ["an instant that is none", { startsAt: "next week" }, 'startsAt: "next week" is no instant'],
  [
    "ladder and waits",
    { retry: { ladder: ["1 minute"], factor: 3 } },
    "retry.ladder: a ladder takes the place of",
  ],
  [
    "a cap below the first wait",
    { retry: { firstWait: "1 hour", maxWait: "1 minute" } },
    "retry.maxWait: it is shorter",
  ],
  [
    "a wait no queue can hold",
    { retry: { maxWait: "12 hours" } },
    'retry.maxWait: "12 hours" is too long; at most 11 hours',
  ],
  [
    "misfire beyond the start deadline",
    { misfire: { within: "2 days" } },
    "misfire.within: it is longer than startDeadline",
  ],
  [
    "misfire all within less than a period",
    { schedule: "0 * * * *", misfire: { policy: "all", within: "30 minutes" } },
    "misfire.within: it is shorter than the 1 hour between two slots, so there would never be more than one to run (raise it",
  ],
  [
    "misfire of several within less than a period",
    { schedule: ["0 6 * * *", "0 18 * * *"], misfire: { policy: "latest", max: 2, within: "11 hours" } },
    "misfire.within: it is shorter than the 12 hours between two slots",
  ],
  [
    "misfire of several within one period",
    { schedule: "0 * * * *", misfire: { policy: "latest", max: 3 } },
    "misfire.max: without within, only the last slot of an outage is caught up (set within too, or leave max out)",
  ],
  [
    "misfire within less than it takes to find a slot",
    { schedule: "* * * * *", misfire: { policy: "all", within: "119 seconds" } },
    "misfire.within: a slot that nothing dispatched is found 2 minutes after it at the earliest",
  ],
  ["a handler that is no function", { handler: "run" }, "handler: this is not a function"],
])("%s is one fault with the option's name", (_, options, start) => {
  const faults = faultsOf({ handler, ...options });
  expect(faults).toHaveLength(1);
  expect(faults[0]).toContain(start);
});

test("shards are data: how many, or that the job lists them, and what may become of them", () => {
  const definitionOf = (options: object) => checkJob({ handler, ...options }, "wide");
  expect(definitionOf({ shards: 16 })).toMatchObject({ value: { shards: { count: 16, joins: false } } });
  expect(
    definitionOf({ shards: () => [], join: () => 1, maxInFlight: 5, toleratedFailures: "2.5 %" }),
  ).toMatchObject({ value: { shards: { joins: true, maxInFlight: 5, tolerance: { percent: 2.5 } } } });
  expect(definitionOf({ shards: 1, toleratedFailures: 0 })).toMatchObject({
    value: { shards: { tolerance: { count: 0 } } },
  });
  expect(definitionOf({})).not.toHaveProperty("value.shards");
});

test("all faults are found in one pass", () => {
  expect(faultsOf({ timeout: "x", pool: 1, retry: { retries: -1, jitter: 2 } }, "No_Name")).toEqual([
    expect.stringMatching(/^timeout: /),
    expect.stringMatching(/^pool: /),
    "retry.retries: -1 is not a whole number from 0 to 100",
    "retry.jitter: 2 is not a number from 0 to 1",
    "handler: the job has no handler (handler: async (ctx) => { ... })",
    expect.stringMatching(/^name: "No_Name" is no name/),
  ]);
});

test.each([undefined, null, 5, "text", []])("options that are no object (%s) are a fault", (options) => {
  expect(faultsOf(options)).toEqual(expect.arrayContaining([expect.stringContaining("is not an object")]));
});

test("without a config there are the stages dev and prod and the pool default", () => {
  expect(checkConfig(undefined)).toEqual({
    ok: true,
    value: {
      stages: ["dev", "prod"],
      pools: { default: { memoryMb: 256, concurrency: 10 } },
      alerts: NO_ALERTS,
    },
  });
});

test("the pool default is always there, and can be changed", () => {
  const pools = { default: { memory: 1024 }, slow: { concurrency: 2 } };
  expect(checkConfig(markConfig({ pools }))).toMatchObject({
    value: {
      pools: { default: { memoryMb: 1024, concurrency: 10 }, slow: { memoryMb: 256, concurrency: 2 } },
    },
  });
});

test("a concurrency below what Lambda can be told is a fault", () => {
  expect(checkConfig(markConfig({ pools: { slow: { concurrency: 1 } } }))).toMatchObject({
    faults: [{ field: "pools.slow.concurrency", message: "1 is not a whole number from 2 to 1000" }],
  });
});
