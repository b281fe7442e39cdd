import { runIdOf, slotMsOf } from "../core/identity.ts";
import type { Json } from "../core/json.ts";
import { waitBeforeRetryMs } from "../core/retry.ts";
import {
  countStaleResult,
  type Finish,
  failAttempt,
  finish,
  type Holding,
  type ShortError,
  snooze,
  triesWith,
} from "../core/transitions.ts";
import type { Value } from "../core/write.ts";
import type { AttemptEnd, ErrorFacts } from "../ports/attempts.ts";
import type { Settlement } from "../ports/run-queue.ts";
import type { WriteAnswer } from "../ports/table.ts";
import { fitsInline, storeAside } from "./side.ts";
import { attemptNumber, type Lease, leave, type Visit, type WorkDeps } from "./visit.ts";

/** An attempt that is over, with what is needed to write it down. */
interface Ended {
  readonly visit: Visit;
  readonly lease: Lease;
  readonly holding: Holding;
  readonly end: AttemptEnd;
  /** Somebody asked the run to stop, and its handler was told. */
  readonly cancelled: boolean;
  readonly endedAtMs: number;
}

/** Writes the end of the attempt, then says what becomes of the message. */
export const record = async (deps: WorkDeps, ended: Ended): Promise<Settlement> => {
  const { end, lease, cancelled } = ended;
  if (lease.item["cancelAtMs"] !== undefined || (end.kind === "stopped" && cancelled)) {
    return close(deps, ended, { state: "cancelled", reason: "cancelled", failed: false });
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
  const failed = Number(lease.item["attempts"] ?? 0) + 1;
  if (failure.permanent || failed > retry.retries) {
    const reason = failure.permanent
      ? "the handler said that no retry can help"
      : `${failed} attempts failed`;
    return close(deps, ended, { state: "dead", reason, error, failed: true });
  }
  const waitMs = failure.retryAfterMs ?? waitBeforeRetryMs(retry, failed, deps.random.fraction());
  const nextAttemptAtMs = endedAtMs + waitMs;
  const tries = triesOf(ended, error.message);
  const answer = await repeated(() =>
    deps.table.write(failAttempt(holding, { nextAttemptAtMs, tries, error })),
  );
  return afterWaiting(deps, ended, { answer, nextAttemptAtMs, error });
};

const putOff = async (deps: WorkDeps, ended: Ended, waitMs: number): Promise<Settlement> => {
  const nextAttemptAtMs = ended.endedAtMs + waitMs;
  const answer = await repeated(() =>
    deps.table.write(snooze(ended.holding, { nextAttemptAtMs, tries: triesOf(ended) })),
  );
  return afterWaiting(deps, ended, { answer, nextAttemptAtMs });
};

interface Waiting {
  readonly answer: WriteAnswer;
  readonly nextAttemptAtMs: number;
  readonly error?: ShortError;
}

/** The run waits, and so does its message; unless somebody asked it to stop meanwhile. */
const afterWaiting = async (deps: WorkDeps, ended: Ended, waiting: Waiting): Promise<Settlement> => {
  const { holding, visit } = ended;
  const { answer, nextAttemptAtMs, error } = waiting;
  const { token } = visit;
  const mine = answer.item?.["own"] === token && answer.item["fence"] === holding.fence;
  if (
    !answer.written &&
    mine &&
    answer.item?.["cancelAtMs"] !== undefined &&
    answer.item["st"] === "running"
  ) {
    return close(deps, ended, {
      state: "cancelled",
      reason: "cancelled",
      failed: error !== undefined,
      ...(error === undefined ? {} : { error }),
    });
  }
  if (!answer.written && !(mine && answer.item?.["st"] === "waiting")) return stale(deps, ended);
  journalEnd(deps, ended, { state: "waiting", ...(error === undefined ? {} : { error }) });
  return { kind: "return", afterMs: Math.max(0, nextAttemptAtMs - deps.clock.nowMs()) };
};

/** T5, then the lock. */
const close = async (
  deps: WorkDeps,
  ended: Ended,
  end: Omit<Finish, "nowMs" | "tries">,
): Promise<Settlement> => {
  const { visit, holding, endedAtMs } = ended;
  const tries = triesOf(ended, end.error?.message);
  const answer = await repeated(() => deps.table.write(finish(holding, { ...end, nowMs: endedAtMs, tries })));
  const before = answer.item;
  const mine =
    before?.["own"] === visit.token && before["fence"] === holding.fence && before["st"] === end.state;
  if (!answer.written && !mine) return stale(deps, ended);
  journalEnd(deps, ended, end);
  return leave(deps, visit);
};

/** Another attempt has the run by now: this result is refused, and said. */
const stale = async (deps: WorkDeps, { visit, holding }: Ended): Promise<Settlement> => {
  deps.journal.notice("warn", "stale-result", { runId: runIdOf(visit.occurrence), fence: holding.fence });
  await deps.table.write(countStaleResult(holding.occurrence));
  return { kind: "return" };
};

/** The handler has done its work: it is worth asking more than once before its result is given up. */
const RECORD_TRIES = 3;

/** Safe for these writes: a value aside is the same again, a transition is refused and shows who wrote it. */
const repeated = async <Answer>(write: () => Promise<Answer>): Promise<Answer> => {
  for (let left = RECORD_TRIES - 1; left > 0; left--) {
    const tried = await write().then(
      (answer) => ({ answer }),
      () => undefined,
    );
    if (tried !== undefined) return tried.answer;
  }
  return write();
};

const triesOf = ({ lease, end, endedAtMs }: Ended, error?: string): Value =>
  triesWith(lease.item["tries"], {
    n: attemptNumber(lease.item),
    startedAtMs: lease.startedAtMs,
    endedAtMs,
    outcome: end.kind,
    ...(error === undefined ? {} : { error: error.slice(0, 60) }),
  });

const SHORT_MESSAGE = 120;

const shortError = ({ name, message }: ErrorFacts): ShortError => ({
  name: name.slice(0, 60),
  message: message.length > SHORT_MESSAGE ? `${message.slice(0, SHORT_MESSAGE)}...` : message,
});

const journalEnd = (
  deps: WorkDeps,
  { visit, lease, holding, end, endedAtMs }: Ended,
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
    pool: job.pool,
    trigger: String(lease.item["trigger"]),
    slotMs,
    attempt: attemptNumber(lease.item),
    fence: holding.fence,
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
