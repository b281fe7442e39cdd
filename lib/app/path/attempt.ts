import { runIdOf, slotMsOf } from "../../core/identity.ts";
import { runRange, slotKeyInSortKey } from "../../core/items.ts";
import type { Json } from "../../core/json.ts";
import type { Progress } from "../../core/runs/kept.ts";
import { stopReason } from "../../core/runs/marks.ts";
import { renew } from "../../core/runs/transitions.ts";
import type {
  AttemptEnd,
  AttemptRequest,
  AttemptServices,
  Part,
  PreviousSuccess,
  RunningAttempt,
} from "../../ports/attempts.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import { makeKept } from "./kept.ts";
import { keepLease } from "./lease.ts";
import { type Ended, record } from "./record.ts";
import { readAside } from "./side.ts";
import { attemptNumber, inputOf, type Lease, type Visit, type WorkDeps } from "./visit.ts";

/** An attempt that has its lease. */
export type Began = Pick<Ended, "visit" | "lease" | "holding"> & {
  readonly kept: ReturnType<typeof makeKept>;
};

export const begun = (deps: WorkDeps, visit: Visit, lease: Lease): Began => {
  const { occurrence } = visit;
  const holding = { occurrence, fence: Number(lease.item["fence"]) };
  return { visit, lease, holding, kept: makeKept(deps, holding) };
};

/** Runs the handler, or another part of the job, under the lease, and records how it ended. */
export const runAttempt = async (
  deps: WorkDeps,
  visit: Visit,
  lease: Lease,
  part?: Part,
): Promise<Settlement> => {
  const began = begun(deps, visit, lease);
  const request = await requestOf(deps, began, part);
  if (request === undefined) return record(deps, inputGone(deps, began));
  return underLease(deps, began, { start: (services) => deps.attempts.start(request, services) });
};

/** What is asked of the job's code; undefined = the run's own input is gone. */
export const requestOf = async (
  deps: WorkDeps,
  { visit, lease }: Began,
  part: Part | undefined,
): Promise<AttemptRequest | undefined> => {
  const { job, occurrence } = visit;
  const input = await inputOf(deps, visit, lease.item);
  if (input === undefined) return undefined;
  return {
    job: job.name,
    runId: runIdOf(occurrence),
    slotMs: slotMsOf(occurrence.slotKey),
    attempt: attemptNumber(lease.item),
    trigger: String(lease.item["trigger"]),
    input,
    timeoutMs: job.timeoutMs,
    ...(part === undefined ? {} : { part }),
  };
};

interface LeasedWork {
  start(services: AttemptServices): RunningAttempt;
  /** Default: as the end of the run's handler. */
  recordEnd?(deps: WorkDeps, ended: Ended): Promise<Settlement>;
}

/** Keeps the lease while the work runs, and records how it ended. */
export const underLease = async (
  deps: WorkDeps,
  began: Began,
  { start, recordEnd = record }: LeasedWork,
): Promise<Settlement> => {
  const { visit, lease, holding, kept } = began;
  let progress: Progress | undefined;
  const running = start({
    ...servicesFor(deps, visit),
    ...kept,
    progress: (said) => {
      progress = said;
    },
  });
  const keeper = keepLease(deps, {
    renew: (leaseUntilMs, said) => renew(holding, leaseUntilMs, said),
    running,
    untilMs: lease.untilMs,
    askedToStop: stopReason(lease.item),
    progress: () => progress,
  });
  const end = await running.ended;
  keeper.stop();
  if (keeper.lost()) return afterLostLease(deps, visit, keeper.why());
  const cancelled = keeper.cancelled();
  const ended = { visit, lease, holding, end, cancelled, endedAtMs: deps.clock.nowMs(), kept };
  return recordEnd(deps, progress === undefined ? ended : { ...ended, progress });
};

/** What any attempt of the run may ask for. */
export const servicesFor = (
  deps: WorkDeps,
  visit: Visit,
  of: { readonly [name: string]: Json } = {},
): Pick<AttemptServices, "previous" | "log" | "addShards"> => ({
  previous: () => previousSuccess(deps, visit),
  log: (level, message, fields) =>
    deps.journal.handlerLine(level, message, { runId: runIdOf(visit.occurrence), ...of, ...fields }),
  addShards: () => Promise.reject(new Error("only the attempt that lists the shards adds any")),
});

/** A run must never run with another input than its own. */
export const INPUT_GONE: AttemptEnd = {
  kind: "threw",
  permanent: true,
  error: { name: "InputGone", message: "the run's own input is not stored any more" },
};

const inputGone = ({ clock }: WorkDeps, began: Began): Ended => ({
  ...began,
  end: INPUT_GONE,
  cancelled: undefined,
  endedAtMs: clock.nowMs(),
});

export const afterLostLease = (deps: WorkDeps, { occurrence }: Visit, why: string): Settlement => {
  deps.journal.notice("warn", "lease-lost", { runId: runIdOf(occurrence), why });
  return { kind: "return", afterMs: deps.timings.leaseMs + deps.timings.clockBoundMs };
};

/** How far back a handler may ask for the last success. */
const PREVIOUS_RUNS = 100;

const previousSuccess = async (
  { table }: WorkDeps,
  { occurrence }: Visit,
): Promise<PreviousSuccess | undefined> => {
  const range = runRange(occurrence.subject, "", occurrence.slotKey);
  const runs = await table.query({ ...range, descending: true, limit: PREVIOUS_RUNS });
  const last = runs.find((run) => run["st"] === "succeeded");
  if (last === undefined) return undefined;
  const slotKey = slotKeyInSortKey(String(last["sk"]));
  const aside = last["sideResult"];
  const result =
    aside === undefined
      ? last["result"]
      : await readAside(table, { ...occurrence, slotKey }, `result-${String(aside)}`);
  return {
    slotMs: slotMsOf(slotKey),
    finishedAtMs: Number(last["endedAtMs"]),
    ...(result === undefined ? {} : { result: result as Json }),
  };
};
