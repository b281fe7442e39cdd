import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bannerLines } from "../../../cli/dev/banner.ts";
import { openChildLog } from "../../../cli/dev/child-log.ts";
import { nodeNote } from "../../../cli/dev/node-version.ts";
import { functionTimeoutMs, queueSpecs } from "../../../cli/dev/resources.ts";
import { lineForPeople } from "../../../cli/dev/run-lines.ts";
import { DEFAULTS, type JobDefinition, type Manifest } from "../../../lib/core/jobs/job.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const job = (name: string, changes: Partial<JobDefinition> = {}): JobDefinition => ({
  name,
  subject: name,
  schedules: ["0 2 * * *"],
  timezone: "Asia/Shanghai",
  dst: { gap: "skip", repeat: "first" },
  input: null,
  overlap: "skip",
  misfire: { policy: "latest", max: 1 },
  startDeadlineMs: DEFAULTS.startDeadlineMs,
  timeoutMs: 300_000,
  retry: DEFAULTS.retry,
  onUnknown: "retry",
  graceMs: 300_000,
  alerts: DEFAULTS.alerts,
  pool: "default",
  ...changes,
});

const manifest = (jobs: readonly JobDefinition[]): Manifest => ({
  version: 1,
  hash: "0",
  stages: ["dev", "prod"],
  pools: { default: { memoryMb: 256, concurrency: 10 }, slow: { memoryMb: 512, concurrency: 2 } },
  jobs,
});

test("the first output names the jobs with their next slots in zone and UTC, and what to try", () => {
  const lines = bannerLines({
    version: "0.1.0",
    manifest: manifest([
      job("clean-sessions"),
      job("report", { timezone: "UTC" }),
      job("import", { schedules: [] }),
      job("bill", { stages: ["prod"] }),
      job("backup", { monitor: { endWithinMs: 3_600_000 } }),
    ]),
    port: 4747,
    pingSecret: "s".repeat(32),
    folder: "/app/.belfry",
    isTemporary: false,
    isStandard: true,
    attached: { sqs: "http://127.0.0.1:9324" },
    nowMs: Date.parse("2026-10-07T12:00:00Z"),
    tookMs: 1_240,
  });
  expect(lines.slice(0, 7)).toEqual([
    "belfry 0.1.0 is ready after 1.2 s: 5 jobs, 2 pools (default, slow)",
    "  clean-sessions  next Thu 2026-10-08 02:00 Asia/Shanghai (2026-10-07T18:00Z)",
    "  report          next Thu 2026-10-08 02:00 UTC",
    "  import          by hand only",
    "  bill            its schedule does not fire in this stage",
    expect.stringMatching(
      /^ {2}backup {10}runs elsewhere; its pings: http:\/\/127\.0\.0\.1:4747\/ping\/backup\/[\w-]{43}$/,
    ),
    "  data /app/.belfry; attached: sqs at http://127.0.0.1:9324",
  ]);
  expect(lines.join("\n")).toContain("npx belfry run clean-sessions --wait");
});

test.each([
  [
    "an attempt that is over",
    { level: "INFO", message: "run", runId: "a~1", state: "succeeded", attempt: 1, durationMs: 12, _aws: {} },
    "a~1  succeeded after 12 ms",
  ],
  [
    "a failed attempt",
    {
      level: "WARN",
      message: "run",
      runId: "a~1",
      state: "waiting",
      attempt: 2,
      durationMs: 12,
      error: { name: "TypeError", message: "no such\nthing" },
    },
    "a~1  waiting (attempt 2) after 12 ms  TypeError: no such",
  ],
  [
    "an attempt of a shard",
    { level: "ERROR", message: "run", runId: "a~1", shard: "eu", state: "dead", attempt: 1, durationMs: 12 },
    "a~1 shard eu  dead after 12 ms",
  ],
  [
    "an alert that a channel did not take",
    { level: "WARN", message: "alert-not-told", alert: "test-1", channel: "slack", why: "HTTP 404" },
    "slack  warn: alert-not-told  HTTP 404",
  ],
  ["a handler's own line", { level: "INFO", message: "3 left", runId: "a~1" }, "a~1  3 left"],
  ["a warning", { level: "WARN", message: "lease-lost", runId: "a~1", _aws: {} }, "a~1  warn: lease-lost"],
  [
    "an error",
    { level: "ERROR", message: "invocation-failed", why: "no table" },
    "error: invocation-failed  no table",
  ],
  [
    "slots missed while nothing ran",
    {
      level: "WARN",
      message: "missed",
      job: "a",
      count: 3,
      from: "2026-10-08T02:00:00Z",
      to: "2026-10-08T04:00:00Z",
      reason: "nothing dispatched it in time",
      _aws: {},
    },
    "a  warn: missed 3 slots, 2026-10-08T02:00:00Z to 2026-10-08T04:00:00Z  nothing dispatched it in time",
  ],
  [
    "a job's health that has changed",
    { level: "WARN", message: "health", job: "a", flip: 1, from: "up", to: "failing", reason: "it threw" },
    "a  warn: health up to failing  it threw",
  ],
  ["what is only counted", { level: "INFO", message: "watchdog-pass", _aws: {} }, undefined],
])("of %s, people see one short line", (_name, event, line) => {
  expect(lineForPeople("worker-default", JSON.stringify(event))).toBe(line);
});

test("what a job's code prints is shown as it is, the beginning of what is very long; what else control and emulators print is not", () => {
  expect(lineForPeople("worker-default", "{ hello")).toBe("{ hello");
  expect(lineForPeople("control", "plain")).toBeUndefined();
  expect(lineForPeople("worker-default", "x".repeat(1_000_000))).toBe(
    `${"x".repeat(2_000)}... (998000 more characters are in the log file)`,
  );
});

test("a log keeps the bytes, and hands on whole lines whatever the pieces", () => {
  const folder = temporaryFolder();
  const lines: string[] = [];
  const log = openChildLog(folder, "control", (line) => lines.push(line));
  const text = Buffer.from("one\ntwo 二\nthree");
  for (const byte of text) log.write(Buffer.from([byte]));
  expect(lines).toEqual(["one", "two 二"]);
  log.close();
  expect(lines).toEqual(["one", "two 二", "three"]);
  expect(readFileSync(join(folder, "control.log"))).toEqual(text);
});

test("on the Lambda's Node nothing is said; on another, one line; a Node too old is refused", () => {
  expect(nodeNote("24.1.0", tmpdir())).toBeUndefined();
  expect(nodeNote("22.13.0", tmpdir())).toContain("Node 24 on Lambda");
  expect(() => nodeNote("22.12.0", tmpdir())).toThrow(expect.objectContaining({ code: "old_node" }));
});

test("a queue's visibility is six times its pool's function time-out, and what comes back more often than its jobs can make it goes over", () => {
  const specs = queueSpecs(
    manifest([job("a", { timeoutMs: 600_000 }), job("b", { pool: "slow", timeoutMs: 1_000 })]),
  );
  expect(functionTimeoutMs(manifest([job("a", { timeoutMs: 3_600_000 })]), "default")).toBe(900_000);
  const attributes = Object.fromEntries(specs.map((spec) => [spec.name, spec.attributes]));
  expect(attributes["belfry-dev-default"]).toEqual({
    VisibilityTimeout: String(6 * 630),
    MessageRetentionPeriod: "1209600",
    RedrivePolicy: JSON.stringify({
      deadLetterTargetArn: "arn:aws:sqs:us-east-1:000000000000:belfry-dev-default_dead",
      maxReceiveCount: 28,
    }),
  });
  expect(specs.map(({ name }) => name)).toEqual([
    "belfry-dev_dispatch-failures",
    "belfry-dev_alarms",
    "belfry-dev-default_dead",
    "belfry-dev-default",
    "belfry-dev-slow_dead",
    "belfry-dev-slow",
  ]);
});
