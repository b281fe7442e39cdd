import { runIdOf, slotMsOf } from "../core/identity.ts";
import { runRange, slotKeyInSortKey } from "../core/items.ts";
import type { Json } from "../core/json.ts";
import type { Progress } from "../core/kept.ts";
import type { PreviousSuccess } from "../ports/attempts.ts";
import type { Settlement } from "../ports/run-queue.ts";
import { makeKept } from "./kept.ts";
import { keepLease } from "./lease.ts";
import { type Ended, record } from "./record.ts";
import { readAside } from "./side.ts";
import { attemptNumber, inputOf, type Lease, type Visit, type WorkDeps } from "./visit.ts";

/** Runs the handler under the lease, and records how it ended. */
export const runAttempt = async (deps: WorkDeps, visit: Visit, lease: Lease): Promise<Settlement> => {
  const { job, occurrence } = visit;
  const holding = { occurrence, fence: Number(lease.item["fence"]) };
  const input = await inputOf(deps, visit, lease.item);
  const kept = makeKept(deps, holding);
  if (input === undefined) return record(deps, inputGone(deps, { visit, lease, holding, kept }));
  let progress: Progress | undefined;
  const running = deps.attempts.start(
    {
      job: job.name,
      runId: runIdOf(occurrence),
      slotMs: slotMsOf(occurrence.slotKey),
      attempt: attemptNumber(lease.item),
      trigger: String(lease.item["trigger"]),
      input,
      timeoutMs: job.timeoutMs,
    },
    {
      previous: () => previousSuccess(deps, visit),
      log: (level, message, fields) =>
        deps.journal.handlerLine(level, message, { runId: runIdOf(occurrence), ...fields }),
      ...kept,
      progress: (said) => {
        progress = said;
      },
    },
  );
  const keeper = keepLease(deps, holding, {
    running,
    untilMs: lease.untilMs,
    askedToStop: lease.item["cancelAtMs"] !== undefined,
    progress: () => progress,
  });
  const end = await running.ended;
  keeper.stop();
  if (keeper.lost()) return afterLostLease(deps, visit, keeper.why());
  const cancelled = keeper.cancelled();
  const ended = { visit, lease, holding, end, cancelled, endedAtMs: deps.clock.nowMs(), kept };
  return record(deps, progress === undefined ? ended : { ...ended, progress });
};

/** A run must never run with another input than its own. */
const inputGone = (
  { clock }: WorkDeps,
  began: Pick<Ended, "visit" | "lease" | "holding" | "kept">,
): Ended => {
  const error = { name: "InputGone", message: "the run's own input is not stored any more" };
  const end = { kind: "threw", error, permanent: true } as const;
  return { ...began, end, cancelled: false, endedAtMs: clock.nowMs() };
};

const afterLostLease = (deps: WorkDeps, { occurrence }: Visit, why: string): Settlement => {
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
