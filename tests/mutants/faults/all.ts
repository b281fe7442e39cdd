import { near } from "../planted.ts";
import { automationFaults } from "./agenda.ts";
import { alarmFaults } from "./alarms.ts";
import { attemptingFaults } from "./attempts.ts";
import { claimFaults } from "./claims.ts";
import { healthFaults } from "./health.ts";
import { keeperFaults } from "./keeper.ts";
import { keepingFaults } from "./kept.ts";
import { lockFaults } from "./lock.ts";
import { monitorFaults } from "./monitors.ts";
import { notifyingFaults } from "./notify.ts";
import { outsideFaults } from "./outside.ts";
import { recordingFaults } from "./records.ts";
import { repairingFaults } from "./repairs.ts";
import { requestFaults } from "./requests.ts";
import { runFaults } from "./runs.ts";
import { seriesFaults } from "./series.ts";
import { shardingFaults } from "./shards.ts";
import { stoppingFaults } from "./stopping.ts";

const path = (...names: readonly string[]): readonly string[] =>
  names.map((name) => `tests/unit/path/${name}.test.ts`);

const AUTOMATION_TESTS = ["requests", "watchdog"].map((part) => `tests/unit/automations/${part}.test.ts`);

export const FAULTS = [
  ...near(runFaults, ...path("transitions", "clauses")),
  ...near(outsideFaults, ...path("transitions", "clauses")),
  ...near(lockFaults, ...path("lock", "waiters", "clauses")),
  ...near(claimFaults, ...path("claims", "overlap", "waiters", "dispatch")),
  ...near(keeperFaults, ...path("waiters", "overlap", "lock", "claims")),
  ...near(attemptingFaults, ...path("work", "lost-workers", "lease", "ends")),
  ...near(recordingFaults, ...path("ends", "work", "lost-workers", "lease")),
  ...near(keepingFaults, ...path("checkpoint", "once", "continue", "progress")),
  ...near(repairingFaults, ...path("looks", "watch", "catch-up", "dead-letters")),
  ...near(requestFaults, ...path("operator", "run-by-hand", "dispatch", "deploys")),
  ...near(monitorFaults, "tests/unit/monitors"),
  ...near(notifyingFaults, "tests/unit/notify"),
  ...near(alarmFaults, "tests/unit/alarms", "tests/unit/notify"),
  ...near(
    seriesFaults,
    ...path("series-clauses", "backfill", "backfill-crashes", "backfill-steps", "retry-dead"),
  ),
  ...near(healthFaults, "tests/unit/health"),
  ...near(automationFaults, ...AUTOMATION_TESTS),
  ...near(
    shardingFaults,
    ...path("shards-clauses", "shards-attempts", "shards-acts", "shards-stop", "shards-watch"),
  ),
  ...near(stoppingFaults, ...path("shards-stop", "shards-clauses", "shards-attempts", "shards-acts")),
];
