import { expect, test, vi } from "vitest";
import { measurementsIn } from "../../../cli/dev/emf-measurements.ts";
import { emfJournal } from "../../../lib/adapters/log/emf-journal.ts";
import { watchingCost } from "../../../lib/core/costs/watching-cost.ts";
import type { AttemptEvent, NoticeCode } from "../../../lib/ports/journal.ts";
import { definition } from "../../support/definitions.ts";

const AT_MS = Date.parse("2026-10-08T02:00:05Z");

/** The line that the journal prints when it is told something. */
const printed = (tell: (journal: ReturnType<typeof emfJournal>) => void): Record<string, unknown> => {
  const writes = [process.stdout, process.stderr].map((to) => vi.spyOn(to, "write").mockReturnValue(true));
  try {
    tell(
      emfJournal({ nowMs: () => AT_MS }, { service: "notes", stage: "prod", ownMetrics: new Set(["own"]) }),
    );
    return JSON.parse(writes.flatMap(({ mock }) => mock.calls.map(([text]) => String(text))).join(""));
  } finally {
    for (const write of writes) write.mockRestore();
  }
};

const event = (changes: Partial<AttemptEvent>): AttemptEvent => ({
  runId: "daily~20261008T020000Z",
  job: definition({ name: "daily" }).name,
  trigger: "schedule",
  slotMs: AT_MS - 5_000,
  attempt: 1,
  state: "succeeded",
  outcome: "returned",
  startedAtMs: AT_MS - 4_000,
  endedAtMs: AT_MS,
  latenessMs: 1_000,
  ...changes,
});

test("a line names its metrics, under the deployment that they are of", () => {
  const line = printed((journal) => journal.attempt(event({})));
  expect(line).toMatchObject({
    service: "notes",
    stage: "prod",
    RunsSucceeded: 1,
    durationMs: 4_000,
    latenessMs: 1_000,
    _aws: {
      Timestamp: AT_MS,
      CloudWatchMetrics: [
        {
          Namespace: "Belfry",
          Dimensions: [["service", "stage"]],
          Metrics: [{ Name: "RunsSucceeded" }, { Name: "durationMs" }, { Name: "latenessMs" }],
        },
      ],
    },
  });
});

test.each([
  [{ state: "dead", outcome: "threw" }, ["RunsDead"]],
  [{ state: "parked", outcome: "threw" }, ["RunsParked"]],
  [{ state: "waiting", outcome: "threw" }, ["AttemptsFailed"]],
  [{ state: "waiting", outcome: "timed-out" }, ["AttemptsFailed", "AttemptsTimedOut"]],
  [{ state: "dead", outcome: "timed-out" }, ["RunsDead", "AttemptsTimedOut"]],
] as const)("an attempt that ends as %o counts as %o", (changes, names) => {
  const line = printed((journal) => journal.attempt(event(changes)));
  expect(Object.keys(line).filter((key) => /^(?:Runs|Attempts)/.test(key))).toEqual(names);
});

test.each([
  ["dead", "RunsDead"],
  ["parked", "RunsParked"],
  ["missed", "RunsMissed"],
  ["expired", "RunsExpired"],
  ["message-failed", "MessagesFailed"],
  ["poison-message", "PoisonMessages"],
  ["watchdog-pass", "WatchdogPasses"],
] satisfies readonly (readonly [NoticeCode, string])[])("the notice %s counts as %s", (code, name) => {
  expect(printed((journal) => journal.notice("info", code, {}))).toHaveProperty(name, 1);
});

test("a job that has metrics of its own has those of its alarms, beside the service's", () => {
  const dead = event({ job: "own", state: "dead", outcome: "threw" });
  const line = printed((journal) => journal.attempt(dead));
  const [ofService, ofJob] = (line["_aws"] as { readonly CloudWatchMetrics: readonly object[] })
    .CloudWatchMetrics;
  expect(ofService).toMatchObject({ Dimensions: [["service", "stage"]], Metrics: { length: 3 } });
  expect(ofJob).toMatchObject({
    Dimensions: [["service", "stage", "job"]],
    Metrics: [{ Name: "RunsDead" }],
  });
  expect(measurementsIn(JSON.stringify(line)).map(({ id }) => id)).toEqual([
    "RunsDead",
    "durationMs",
    "latenessMs",
    "RunsDead of job own",
  ]);
  const missed = printed((journal) => journal.notice("warn", "missed", { job: "own" }));
  expect(measurementsIn(JSON.stringify(missed)).map(({ id }) => id)).toEqual([
    "RunsMissed",
    "RunsMissed of job own",
  ]);
});

test("a success costs a job with metrics of its own none", () => {
  const line = printed((journal) => journal.attempt(event({ job: "own" })));
  expect(line).toMatchObject({ _aws: { CloudWatchMetrics: { length: 1 } } });
});

test("a service that is well writes the metrics that the estimate counts", () => {
  const lines = [
    printed((journal) => journal.attempt(event({}))),
    printed((journal) => journal.notice("info", "watchdog-pass", {})),
    printed((journal) => journal.notice("info", "notifier-pass", {})),
  ];
  const written = lines.flatMap((line) => measurementsIn(JSON.stringify(line)).map(({ id }) => id));
  expect(watchingCost(10, {}).metrics.count).toBe(new Set(written).size);
});

test("what is only said carries no metric", () => {
  expect(printed((journal) => journal.notice("info", "sent-again", {}))).not.toHaveProperty("_aws");
});

test("the line of a success says each thing once", () => {
  const line = printed((journal) => journal.attempt(event({ result: { deletedCount: 3 } })));
  const { _aws, ...said } = line;
  expect(said).toEqual({
    level: "INFO",
    message: "run",
    timestamp: "2026-10-08T02:00:05.000Z",
    service: "notes",
    stage: "prod",
    runId: "daily~20261008T020000Z",
    job: "daily",
    trigger: "schedule",
    slot: "2026-10-08T02:00:00Z",
    attempt: 1,
    state: "succeeded",
    durationMs: 4_000,
    latenessMs: 1_000,
    result: { deletedCount: 3 },
    RunsSucceeded: 1,
  });
});

test("how an attempt ended is said where its state does not tell", () => {
  const line = printed((journal) => journal.attempt(event({ state: "dead", outcome: "timed-out" })));
  expect(line).toMatchObject({ level: "ERROR", state: "dead", outcome: "timed-out" });
});

test("a handler's fields do not replace what every line has", () => {
  const fields = { level: "loud", service: "theirs", left: 3 };
  expect(printed((journal) => journal.handlerLine("warn", "some are left", fields))).toEqual({
    level: "WARN",
    message: "some are left",
    timestamp: "2026-10-08T02:00:05.000Z",
    service: "notes",
    left: 3,
  });
});

test("a handler's line for debugging is not printed", () => {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  emfJournal({ nowMs: () => AT_MS }, { service: "notes", stage: "prod", ownMetrics: new Set() }).handlerLine(
    "debug",
    "a detail",
    {},
  );
  expect(write).not.toHaveBeenCalled();
  write.mockRestore();
});
