/** What tests of jobs may import, as `belfry/testing`. It needs no deployment, no emulator and no network. */
export type { RunView } from "../core/runs/run.ts";
export type { PreviousRun } from "./previous.ts";
export { type LogLine, type TestedJob, type TestJobOptions, testJob } from "./test-job.ts";
export type { KillPoint } from "./trap.ts";
