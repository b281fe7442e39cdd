import {
  type AutomationChange,
  type AutomationPointer,
  type AutomationRequest,
  createFor,
  deleteAutomationOf,
  editAutomationOf,
} from "../app/automations/automations.ts";
import type { Deps } from "../app/deps.ts";
import { cancelRun, type Pointed, pauseJob, resumeJob, retryRun } from "../app/operate/operator.ts";
import { makeRunByHand } from "../app/operate/run-by-hand.ts";
import { type BackfillRequest, startBackfill } from "../app/series/backfill.ts";
import { stopSeriesByHand } from "../app/series/begin-series.ts";
import { retryDead } from "../app/series/retry-dead.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import type { SeriesKind } from "../core/runs/series.ts";
import type { Spawn } from "./processes.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Somebody at the command line: what is refused, or fails, is told to him and no more. */
export const makePeople = (time: VirtualTime, spawn: Spawn) => {
  /** Ids of runs that were asked for by hand. */
  const byHand: string[] = [];

  const operate = (atMs: number, act: (deps: Deps) => Promise<unknown>): void =>
    void time.at(atMs, () => {
      act(spawn("operator").deps).catch(() => undefined);
    });

  return {
    byHand,
    runByHand: (job: JobDefinition, atMs: number): void =>
      operate(atMs, async (deps) => {
        const answer = await makeRunByHand(deps)({ job, input: { by: "hand" } });
        if (answer.kind === "accepted") byHand.push(answer.runId);
      }),
    retry: (pointed: Pointed, atMs: number): void => operate(atMs, (deps) => retryRun(deps, pointed)),
    cancel: (pointed: Pointed, atMs: number): void =>
      operate(atMs, (deps) => cancelRun(deps, pointed, "by the operator")),
    backfill: (request: BackfillRequest, atMs: number): void =>
      operate(atMs, (deps) => startBackfill(deps, request)),
    retryDead: (job: JobDefinition, atMs: number): void => operate(atMs, (deps) => retryDead(deps, job)),
    stopSeries: (job: JobDefinition, kind: SeriesKind, atMs: number): void =>
      operate(atMs, (deps) => stopSeriesByHand(deps, job, kind)),
    create: (request: AutomationRequest, atMs: number): void =>
      operate(atMs, (deps) => createFor(deps, request)),
    edit: (pointer: AutomationPointer, change: AutomationChange, atMs: number): void =>
      operate(atMs, (deps) => editAutomationOf(deps, pointer, change)),
    remove: (pointer: AutomationPointer, atMs: number): void =>
      operate(atMs, (deps) => deleteAutomationOf(deps, pointer)),
    pause: (job: JobDefinition, atMs: number, forMs: number): void => {
      operate(atMs, (deps) => pauseJob(deps, job, { reason: "maintenance" }));
      operate(atMs + forMs, (deps) => resumeJob(deps, job));
    },
  };
};
