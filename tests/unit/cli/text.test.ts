import { expect, test } from "vitest";
import { exitCodeOfError, exitCodeOfState } from "../../../cli/exit-codes.ts";
import { tableLines } from "../../../cli/output.ts";
import { runLines, whyText } from "../../../cli/run-text.ts";
import { bothTexts, localText, spanText } from "../../../cli/times.ts";
import { Conflict, InvalidInput, Unavailable } from "../../../lib/core/errors.ts";
import { RUN_STATES, type RunView } from "../../../lib/core/runs/run.ts";

const RUN: RunView = {
  runId: "report~20261008T020000Z",
  job: "report",
  slot: "2026-10-08T02:00:00Z",
  trigger: "schedule",
  state: "dead",
  reason: "6 attempts failed",
  attempts: [
    {
      n: 1,
      startedAt: "2026-10-08T02:00:02Z",
      endedAt: "2026-10-08T02:00:02.850Z",
      outcome: "failed",
      error: "no such host",
    },
  ],
  queuedAt: "2026-10-08T02:00:01Z",
  startedAt: "2026-10-08T02:00:02Z",
  finishedAt: null,
  durationMs: null,
  latenessMs: 2_000,
  duplicates: 1,
  input: { limit: 3 },
  result: null,
  error: { name: "TypeError", message: "no such host", stack: "TypeError: no such host\n    at fetch" },
};

test("a time is shown in the zone and in UTC, on both sides of a clock change and of midnight", () => {
  expect(bothTexts("2026-10-25T00:30:00Z", "Europe/Berlin")).toBe(
    "2026-10-25 02:30 Europe/Berlin (2026-10-25T00:30:00Z)",
  );
  expect(localText("2026-10-25T01:30:00Z", "Europe/Berlin")).toBe("2026-10-25 02:30");
  expect(localText("2026-12-31T16:00:00Z", "Asia/Shanghai")).toBe("2027-01-01 00:00");
  expect(localText("2026-12-31T16:00:07Z", "Asia/Shanghai")).toBe("2027-01-01 00:00:07");
  expect(bothTexts("2026-10-25T00:30:00Z", "UTC")).toBe("2026-10-25T00:30:00Z");
  expect(bothTexts(null, "Asia/Shanghai")).toBe("-");
});

test("a span is shown in the units a person would use", () => {
  expect([0, 999, 1_000, 59_999, 60_000, 3_599_000, 3_600_000, 90_000_000].map(spanText)).toEqual([
    "0 ms",
    "999 ms",
    "1.0 s",
    "59.9 s",
    "1 min 00 s",
    "59 min 59 s",
    "1 h 00 min",
    "25 h 00 min",
  ]);
});

test("a table's columns line up, wide characters included, without spaces at the end of a line", () => {
  expect(
    tableLines(
      ["JOB", "WHY"],
      [
        ["每日", "x"],
        ["a", ""],
      ],
    ),
  ).toEqual(["JOB   WHY", "每日  x", "a"]);
});

test("a run is told in full, its stack at the end", () => {
  const lines = runLines(RUN, "Asia/Shanghai");
  expect(lines).toContain("state       dead");
  expect(lines).toContain("slot        2026-10-08 10:00 Asia/Shanghai (2026-10-08T02:00:00Z)");
  expect(lines).toContain("attempt     1: failed after 850 ms, started 2026-10-08T02:00:02Z (no such host)");
  expect(lines).toContain('input       {"limit":3}');
  expect(lines.slice(-2)).toEqual(["TypeError: no such host", "    at fetch"]);
});

test("why a run is as it is fits on a line: its result, its reason, or its error", () => {
  expect(whyText(RUN)).toBe("6 attempts failed");
  const { reason: _, ...unexplained } = RUN;
  expect(whyText({ ...unexplained, error: { name: "E", message: "two\nlines" } })).toBe("E: two");
  expect(whyText({ ...RUN, state: "succeeded", result: { deletedCount: 7 } })).toBe('{"deletedCount":7}');
});

test("a run that was waited for exits 0, 1 or 3 by its state", () => {
  expect(Object.fromEntries(RUN_STATES.map((state) => [state, exitCodeOfState(state)]))).toEqual({
    succeeded: 0,
    skipped: 0,
    dead: 1,
    cancelled: 1,
    expired: 1,
    missed: 1,
    parked: 3,
    queued: 3,
    running: 3,
    waiting: 3,
  });
});

test("an error exits by what the caller can do about it", () => {
  expect(exitCodeOfError(new InvalidInput("x", "x"))).toBe(2);
  expect(exitCodeOfError(new Conflict("x", "x"))).toBe(3);
  expect(exitCodeOfError(new Unavailable("x", "x"))).toBe(4);
  expect(exitCodeOfError(new TypeError("x"))).toBe(1);
});

test.each([
  [{ done: 3_000, total: 40_000 }, "progress    3000 of 40000 (7 %)"],
  [{ done: 3_000 }, "progress    3000"],
  [{ done: 0, total: 0 }, "progress    0 of 0"],
])("the progress %j is shown as a share where there is a total", (progress, line) => {
  expect(runLines({ ...RUN, progress }, "UTC")).toContain(line);
});

test("a slot that was skipped for another run says for which", () => {
  const lines = runLines({ ...RUN, state: "skipped", blockedBy: "report~20261008T010000Z" }, "UTC");
  expect(lines).toContain("blocked by  report~20261008T010000Z");
});

test("of a run that is split each attempt says what it was at", () => {
  const attempt = { n: 1, part: "join", startedAt: "2026-10-08T02:00:02Z", outcome: "running" } as const;
  const lines = runLines({ ...RUN, attempts: [attempt] }, "UTC");
  expect(lines).toContain("attempt     1 at the join: running, started 2026-10-08T02:00:02Z");
});

test("a run in pieces shows how many, and which piece an attempt worked on", () => {
  const attempt = { n: 2, piece: 3, startedAt: "2026-10-08T02:00:02Z", outcome: "running" };
  const lines = runLines({ ...RUN, pieces: 3, attempts: [attempt] }, "UTC");
  expect(lines).toContain("pieces      3");
  expect(lines).toContain("attempt     2 of piece 3: running, started 2026-10-08T02:00:02Z");
});

test("an attempt after a retry says which set of attempts it belongs to", () => {
  const before = {
    n: 1,
    startedAt: "2026-10-08T02:00:02Z",
    endedAt: "2026-10-08T02:00:05Z",
    outcome: "threw",
  };
  const now = { n: 1, set: 2, startedAt: "2026-10-08T03:00:00Z", outcome: "running" };
  const lines = runLines({ ...RUN, attempts: [before, now] }, "UTC");
  expect(lines).toContain("attempt     1: threw after 3.0 s, started 2026-10-08T02:00:02Z");
  expect(lines).toContain("attempt     1 of set 2: running, started 2026-10-08T03:00:00Z");
});

test("a run of several schedules is shown with each that names its slot", () => {
  const lines = runLines({ ...RUN, schedules: ["0 2 * * *", "0 2 * * thu"] }, "UTC");
  expect(lines.find((line) => line.startsWith("schedules"))).toMatch(
    /^schedules +0 2 \* \* \* \| 0 2 \* \* thu$/,
  );
  expect(runLines(RUN, "UTC").some((line) => line.startsWith("schedules"))).toBe(false);
});
