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

const SHARD_TESTS = ["clauses", "attempts", "acts", "watch"].map(
  (part) => `tests/unit/path/shards-${part}.test.ts`,
);

const AUTOMATION_TESTS = ["requests", "watchdog"].map((part) => `tests/unit/automations/${part}.test.ts`);

export const FAULTS = [
  ...runFaults,
  ...outsideFaults,
  ...lockFaults,
  ...claimFaults,
  ...keeperFaults,
  ...attemptingFaults,
  ...recordingFaults,
  ...keepingFaults,
  ...repairingFaults,
  ...requestFaults,
  ...near(monitorFaults, "tests/unit/monitors"),
  ...near(notifyingFaults, "tests/unit/notify"),
  ...near(alarmFaults, "tests/unit/alarms", "tests/unit/notify"),
  ...near(seriesFaults, "tests/unit/path/series-clauses.test.ts", "tests/unit/path/backfill.test.ts"),
  ...near(healthFaults, "tests/unit/health"),
  ...near(automationFaults, ...AUTOMATION_TESTS),
  ...near(shardingFaults, ...SHARD_TESTS),
];
