import { expect, test } from "vitest";
import type { Alert, AlertKind } from "../../../lib/core/alerts/alert.ts";
import { alertText, bothClocks, linkOf } from "../../../lib/core/alerts/alert-text.ts";
import { msOf } from "../../support/path.ts";

const atMs = msOf("2026-10-08T02:00:00Z");
const titleOf = (alert: Partial<Alert>): string =>
  alertText({ id: "a", topic: "notify", kind: "failed", atMs, reason: "r", ...alert }, { stage: "prod" })
    .title;

test.each<[AlertKind, Partial<Alert>, string]>([
  ["failed", {}, "[prod] report failed"],
  ["failing", { count: 3 }, "[prod] report failed 3 times in a row"],
  ["failing", {}, "[prod] report keeps failing"],
  ["late", {}, "[prod] report is late"],
  ["missed", {}, "[prod] report was missed"],
  ["missed", { count: 12 }, "[prod] report missed 12 slots"],
  ["stuck", {}, "[prod] report is stuck: its worker gives no sign of life"],
  ["overrun", {}, "[prod] report runs longer than it should"],
  ["slow", {}, "[prod] report was slow"],
  ["parked", {}, "[prod] report waits for a person to decide"],
  ["paused", {}, "[prod] report is paused"],
  ["flapping", {}, "[prod] report fails and recovers again and again"],
  ["reminder", {}, "[prod] report is still not well"],
  ["recovered", {}, "[prod] report is well again"],
  ["removed", {}, "[prod] report is removed, and with it what was wrong"],
])("%s %j of a job is titled: %s", (kind, more, title) => {
  expect(titleOf({ kind, job: "report", ...more })).toBe(title);
});

test.each<[AlertKind, Partial<Alert>, string]>([
  ["alarm", { alarm: "notes-prod-throttles" }, "[prod] alarm notes-prod-throttles"],
  ["alarm", {}, "[prod] alarm"],
  ["alarm-over", { alarm: "notes-prod-throttles" }, "[prod] alarm is over: notes-prod-throttles"],
  ["watchdog-back", {}, "[prod] the watchdog is back"],
  ["test", {}, "[prod] test alert"],
])("%s %j is titled: %s", (kind, more, title) => {
  expect(titleOf({ kind, ...more })).toBe(title);
});

test("a kind of a later version is told by its name", () => {
  expect(titleOf({ kind: "haunted" as AlertKind, job: "report" })).toBe("[prod] report haunted");
});

test.each([
  ["Asia/Shanghai", "2026-10-08 10:00 Asia/Shanghai (2026-10-08T02:00:00Z)"],
  ["America/New_York", "2026-10-07 22:00 America/New_York (2026-10-08T02:00:00Z)"],
  ["UTC", "2026-10-08T02:00:00Z"],
  ["Mars/Olympus", "2026-10-08T02:00:00Z"],
])("an instant is shown on the clock of %s: %s", (zone, text) => {
  expect(bothClocks(atMs, zone)).toBe(text);
});

test.each([
  [{ job: "report", runId: "report~1" }, "https://x.example/prod/report~1"],
  [{ job: "report" }, undefined],
])("a link is there where the alert has all that it names: %j", (alert, link) => {
  expect(linkOf(alert, { stage: "prod", link: "https://x.example/{stage}/{runId}" })).toBe(link);
});
