import { Conflict, Unavailable } from "../../core/errors.ts";
import { runIdOf, slotMsOf } from "../../core/identity.ts";
import { waitBeforeRetryMs } from "../../core/jobs/retry.ts";
import type { Json } from "../../core/json.ts";
import { MAX_PIECES, type Progress } from "../../core/runs/kept.ts";
import { stopReason } from "../../core/runs/marks.ts";
import {
  countStaleResult,
  type Finish,
  failAttempt,
  finish,
  goOn,
  type Holding,
  parkAttempt,
  type ShortError,
  snooze,
  triesWith,
} from "../../core/runs/transitions.ts";
import { putOffEnd } from "../../core/shards/stop.ts";
import { SECOND_MS } from "../../core/time.ts";
import type { Item, Value } from "../../core/write.ts";
import type { AttemptEnd, ErrorFacts } from "../../ports/attempts.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import type { WriteAnswer } from "../../ports/table.ts";
import { runOfSeriesEnded } from "../series/series.ts";
import { leaveStopping } from "../shards/leave-stopping.ts";
import type { Kept } from "./kept.ts";
import { repeated } from "./repeated.ts";
import { fitsInline, storeAside } from "./side.ts";
import {
  attemptNumber,
  attemptPlace,
  DELETE,
  type Lease,
  leave,
  type Visit,
  type WorkDeps,
} from "./visit.ts";

/** An attempt that is over, with what is needed to write it down. */
export interface Ended {
  readonly visit: Visit;
  readonly lease: Lease;
  readonly holding: Holding;
  readonly end: AttemptEnd;
  /** Why somebody asked the run to stop, where its handler was told. */
  readonly cancelled: string | undefined;
  readonly endedAtMs: number;
  readonly kept: Pick<Kept, "saveState">;
  /** What the handler said last. */
  readonly progress?: Progress;
  /** Shards of the run may be at work: it must not end before they have. */
  readonly inShards?: boolean;
}

/** Writes the end of the attempt, then says what becomes of the message. */
export const record = async (deps: WorkDeps, ended: Ended): Promise<Settlement> => {
  const { end, cancelled } = ended;
  if (end.kind === "stopped" && cancelled !== undefined) {
    return close(deps, ended, { state: "cancelled", reason: cancelled, failed: false });
  }
  switch (end.kind) {
    case "returned":
      return succeed(deps, ended, end.result);
    case "skip":
      return close(deps, ended, { state: "skipped", reason: end.reason, failed: false });
    case "cancel":
      return close(deps, ended, { state: "cancelled", reason: end.reason, failed: false });
    case "snooze":
      return putOff(deps, ended, end.waitMs);
    case "continue":
      return continueLater(deps, ended, end);
    case "threw":
      return fail(deps, ended, end);
    default:
      return fail(deps, ended, { error: end.error, permanent: false });
  }
};

const succeed = async (deps: WorkDeps, ended: Ended, result: Json | undefined): Promise<Settlement> => {
  const { holding, endedAtMs } = ended;
  const inline = fitsInline(result);
  if (result !== undefined && !inline) {
    await repeated(() =>
      storeAside(deps.table, holding.occurrence, `result-${holding.fence}`, result, endedAtMs),
    );
  }
  return close(deps, ended, {
    state: "succeeded",
    failed: false,
    ...(result === undefined ? {} : inline ? { result } : { sideResult: true }),
  });
};

interface Failure {
  readonly error: ErrorFacts;
  readonly permanent: boolean;
  readonly retryAfterMs?: number;
}

const fail = async (deps: WorkDeps, ended: Ended, failure: Failure): Promise<Settlement> => {
  const { visit, lease, holding, endedAtMs } = ended;
  const { retry } = visit.job;
  await repeated(() =>
    storeAside(deps.table, holding.occurrence, `error-${holding.fence}`, { ...failure.error }, endedAtMs),
  );
  const error = shortError(failure.error);
  if (isLeftToPerson(visit, ended.end)) return park(deps, ended, error);
  const failed = Number(lease.item["attempts"] ?? 0) + 1;
  if (failure.permanent || failed > retry.retries) {
    const reason = failure.permanent
      ? "the handler said that no retry can help"
      : `${failed} ${failed === 1 ? "attempt" : "attempts"} failed`;
    return close(deps, ended, { state: "dead", reason, error, failed: true });
  }
  const waitMs = failure.retryAfterMs ?? waitBeforeRetryMs(retry, failed, deps.random.fraction());
  const nextAttemptAtMs = endedAtMs + waitMs;
  const tries = triesOf(ended, error.message);
  const answer = await repeated(() =>
    deps.table.write(failAttempt(holding, { nextAttemptAtMs, tries, error, ...progressOf(ended) })),
  );
  return afterWaiting(deps, ended, { answer, nextAttemptAtMs, error });
};

/**
 * The handler did not end, its thread did: nobody knows how far it came. So it is when a worker is killed, and a job may
 * say that a person decides then.
 */
export const isLeftToPerson = ({ job }: Pick<Visit, "job">, { kind }: AttemptEnd): boolean =>
  job.onUnknown === "park" && (kind === "exited" || kind === "out-of-memory");

const park = async (deps: WorkDeps, ended: Ended, error: ShortError): Promise<Settlement> => {
  const reason = "the handler was cut off: nobody knows how far the attempt came";
  const cutOff = { nowMs: ended.endedAtMs, tries: triesOf(ended, error.message), reason, error };
  const answer = await repeated(() =>
    deps.table.write(parkAttempt(ended.holding, { ...cutOff, ...progressOf(ended) })),
  );
  const wish = wishToStop(ended, answer);
  if (wish !== undefined)
    return close(deps, ended, { state: "cancelled", reason: wish, failed: true, error });
  if (!tookEffect(ended, answer, "parked")) return stale(deps, ended);
  journalEnd(deps, ended, { state: "parked", reason, error });
  // The lock stays with the run.
  return DELETE;
};

/** Nothing loops for ever: a handler that puts its work off more often than that does not see its end. */
export const MAX_SNOOZES = 1_000;

const putOff = async (deps: WorkDeps, ended: Ended, waitMs: number): Promise<Settlement> => {
  if (Number(ended.lease.item["snoozes"] ?? 0) >= MAX_SNOOZES) {
    const reason = `it was put off ${MAX_SNOOZES} times without an end`;
    return close(deps, ended, { state: "dead", reason, failed: true, error: endless("snooze", MAX_SNOOZES) });
  }
  const nextAttemptAtMs = ended.endedAtMs + waitMs;
  const answer = await repeated(() =>
    deps.table.write(snooze(ended.holding, { nextAttemptAtMs, tries: triesOf(ended), ...progressOf(ended) })),
  );
  return afterWaiting(deps, ended, { answer, nextAttemptAtMs });
};

interface Waiting {
  readonly answer: WriteAnswer;
  readonly nextAttemptAtMs: number;
  readonly error?: ShortError;
}

/** Of an answer to one of our own writes: the attempt still has the run. */
const isMine = ({ visit, holding }: Ended, item: Item | undefined): boolean =>
  item?.["own"] === visit.token && item["fence"] === holding.fence;

/** Refused for no other reason than that somebody asked the run to stop: why. Undefined = written, or refused otherwise. */
export const wishToStop = (ended: Ended, { written, item }: WriteAnswer): string | undefined =>
  !written && isMine(ended, item) && item?.["st"] === "running" ? stopReason(item) : undefined;

/** Written, or refused by an earlier copy of the same write. */
export const tookEffect = (ended: Ended, { written, item }: WriteAnswer, state: string): boolean =>
  written || (isMine(ended, item) && item?.["st"] === state);

/** The run waits, and so does its message; unless somebody asked it to stop meanwhile. */
const afterWaiting = async (deps: WorkDeps, ended: Ended, waiting: Waiting): Promise<Settlement> => {
  const { answer, nextAttemptAtMs, error } = waiting;
  const wish = wishToStop(ended, answer);
  if (wish !== undefined) {
    return close(deps, ended, {
      state: "cancelled",
      reason: wish,
      failed: error !== undefined,
      ...(error === undefined ? {} : { error }),
    });
  }
  if (!tookEffect(ended, answer, "waiting")) return stale(deps, ended);
  journalEnd(deps, ended, { state: "waiting", ...(error === undefined ? {} : { error }) });
  return { kind: "return", afterMs: Math.max(0, nextAttemptAtMs - deps.clock.nowMs()) };
};

/**
 * T7, to the next piece: its state is stored, then the run is queued again, then a new message asks for it. A crash in
 * between leaves the old message, which asks for the same; the lock stays with the run.
 */
const continueLater = async (
  deps: WorkDeps,
  ended: Ended,
  { state }: { readonly state?: Json },
): Promise<Settlement> => {
  const { holding, endedAtMs, lease } = ended;
  if (Number(lease.item["cont"] ?? 0) >= MAX_PIECES) {
    const reason = `it went on ${MAX_PIECES} times without an end`;
    return close(deps, ended, {
      state: "dead",
      reason,
      failed: true,
      error: endless("continueLater", MAX_PIECES),
    });
  }
  if (state !== undefined && !(await saved(ended, state))) return stale(deps, ended);
  const piece = { nowMs: endedAtMs, tries: triesOf(ended), ...progressOf(ended) };
  const answer = await repeated(() => deps.table.write(goOn(holding, piece)));
  const wish = wishToStop(ended, answer);
  if (wish !== undefined) {
    return close(deps, ended, { state: "cancelled", reason: wish, failed: false });
  }
  if (!tookEffect(ended, answer, "queued")) return stale(deps, ended);
  journalEnd(deps, ended, { state: "queued" });
  return askForNext(deps, ended.visit);
};

const endless = (outcome: "snooze" | "continueLater", times: number): ShortError => ({
  name: "EndlessRun",
  message: `${outcome} was returned ${times} times; does the handler see that it is done?`,
});

/** False: another attempt has the run. */
const saved = async ({ kept }: Ended, state: Json): Promise<boolean> => {
  try {
    await kept.saveState(state);
    return true;
  } catch (error) {
    if (error instanceof Conflict) return false;
    throw error;
  }
};

/** Where no message can be sent the old one comes back, and does as well. */
const askForNext = async (deps: WorkDeps, { job, message }: Visit): Promise<Settlement> => {
  try {
    await deps.queue.send(job.pool, message);
    return DELETE;
  } catch (error) {
    if (error instanceof Unavailable) return { kind: "return", afterMs: SECOND_MS };
    throw error;
  }
};

/** T5, then the lock, then the next of the series that it belongs to. */
export const close = async (
  deps: WorkDeps,
  ended: Ended,
  end: Omit<Finish, "nowMs" | "tries">,
): Promise<Settlement> => {
  const { visit, holding, endedAtMs, inShards = false } = ended;
  const tries = triesOf(ended, end.error?.message);
  const last = { ...end, ...progressOf(ended), nowMs: endedAtMs, tries };
  const ending = finish(holding, last);
  const [write, after] = inShards ? [putOffEnd(ending), "running"] : [ending, end.state];
  const answer = await repeated(() => deps.table.write(write));
  if (!tookEffect(ended, answer, after)) return stale(deps, ended);
  journalEnd(deps, ended, end);
  if (inShards) return leaveStopping(deps, visit, answer.item);
  const settlement = await leave(deps, visit);
  if (answer.item?.["series"] !== undefined) await runOfSeriesEnded(deps, visit.job, answer.item);
  return settlement;
};

/** Another attempt has the run by now: this result is refused, and said. */
export const stale = async (deps: WorkDeps, { visit, holding }: Ended): Promise<Settlement> => {
  deps.journal.notice("warn", "stale-result", { runId: runIdOf(visit.occurrence), fence: holding.fence });
  await deps.table.write(countStaleResult(holding.occurrence));
  return { kind: "return" };
};

const progressOf = ({ progress }: Ended) => (progress === undefined ? {} : { progress });

export const triesOf = ({ lease, end, endedAtMs }: Ended, error?: string): Value =>
  triesWith(lease.item["tries"], {
    ...attemptPlace(lease.item),
    startedAtMs: lease.startedAtMs,
    endedAtMs,
    outcome: end.kind,
    ...(error === undefined ? {} : { error: shortened(error, SHORTEST_MESSAGE) }),
  });

const SHORT_MESSAGE = 120;
/** Of each attempt in the record of its run. */
const SHORTEST_MESSAGE = 40;

export const shortError = ({ name, message }: ErrorFacts): ShortError => ({
  name: cut(name, 60),
  message: shortened(message, SHORT_MESSAGE),
});

const shortened = (text: string, length: number): string =>
  text.length > length ? `${cut(text, length)}...` : text;

/** No half of a character at the end: the table takes none. */
const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();

export const journalEnd = (
  deps: WorkDeps,
  { visit, lease, end, endedAtMs }: Ended,
  after: {
    readonly state: string;
    readonly reason?: string;
    readonly error?: ShortError;
    readonly result?: Json;
  },
): void => {
  const { occurrence, job } = visit;
  const slotMs = slotMsOf(occurrence.slotKey);
  deps.journal.attempt({
    runId: runIdOf(occurrence),
    job: job.name,
    trigger: String(lease.item["trigger"]),
    slotMs,
    attempt: attemptNumber(lease.item),
    state: after.state,
    outcome: end.kind,
    startedAtMs: lease.startedAtMs,
    endedAtMs,
    latenessMs: Number(lease.item["startedAtMs"]) - slotMs,
    ...(after.reason === undefined ? {} : { reason: after.reason }),
    ...(after.error === undefined ? {} : { error: after.error }),
    ...(after.result === undefined ? {} : { result: after.result }),
  });
};
