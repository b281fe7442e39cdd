import { alarmFaults } from "./alarms.ts";
import { attemptingFaults } from "./attempts.ts";
import { claimFaults } from "./claims.ts";
import { healthFaults } from "./health.ts";
import { keeperFaults } from "./keeper.ts";
import { keepingFaults } from "./kept.ts";
import { lockFaults } from "./lock.ts";
import { notifyingFaults } from "./notify.ts";
import { outsideFaults } from "./outside.ts";
import { recordingFaults } from "./records.ts";
import { repairingFaults } from "./repairs.ts";
import { requestFaults } from "./requests.ts";
import { runFaults } from "./runs.ts";
import { seriesFaults } from "./series.ts";
import { shardingFaults } from "./shards.ts";

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
  ...notifyingFaults,
  ...alarmFaults,
  ...seriesFaults,
  ...healthFaults,
  ...shardingFaults,
];
