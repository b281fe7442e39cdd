import { manualSlotKey, type Occurrence, runIdOf, slotKeyOf } from "../core/identity.ts";
import { CONTROL_KEY, lockKey } from "../core/items.ts";
import type { JobDefinition } from "../core/job.ts";
import type { Json } from "../core/json.ts";
import { hasRoom, holdersOf, waitersOf } from "../core/lock.ts";
import { isTerminal } from "../core/run.ts";
import { claim } from "../core/transitions.ts";
import { claimAndSend } from "./claims.ts";
import { reasonNotToClaim } from "./control.ts";
import type { Deps } from "./deps.ts";
import { isLocked, maxHolders, releaseEnded } from "./lock-keeper.ts";
import { noteAsk } from "./looks.ts";
import { fitsInline, storeAside } from "./side.ts";

type RunByHandDeps = Omit<Deps, "timers" | "jobs">;

export interface RunByHandRequest {
  readonly job: JobDefinition;
  /** Run as this occurrence; the caller has checked that the schedule names it. Absent = a run of its own. */
  readonly slotMs?: number;
  readonly input?: Json;
  readonly reason?: string;
}

export type RunByHandAnswer =
  | { readonly kind: "accepted"; readonly runId: string; readonly notice?: string }
  | { readonly kind: "refused"; readonly runId: string; readonly state: string; readonly reason: string };

/** Asks for a run now. It has its record before its message, so that nothing about it can be lost. */
export const makeRunByHand =
  (deps: RunByHandDeps) =>
  async (request: RunByHandRequest): Promise<RunByHandAnswer> => {
    const { job, slotMs } = request;
    const nowMs = deps.clock.nowMs();
    const slotKey =
      slotMs === undefined ? manualSlotKey(nowMs, suffixOf(deps.random.token())) : slotKeyOf(slotMs);
    const occurrence = { subject: job.subject, slotKey };
    const runId = runIdOf(occurrence);
    const blocker = isLocked(job) ? await blockerOf(deps, job, slotKey) : undefined;
    if (blocker !== undefined) return refusedByLock(runId, occurrence, blocker);
    // Noted first: nobody else would look at a run whose message was lost.
    await noteAsk(deps, occurrence, 1);
    const made = await record(deps, request, occurrence);
    if (made !== undefined) return { kind: "refused", runId, ...made };
    const ask = { job, occurrence, epoch: 1, trigger: "manual", queuedAtMs: nowMs, recorded: true } as const;
    const outcome = await claimAndSend(deps, ask, deps.random.token());
    const notice = await noticeOf(deps, request, outcome === "waiting");
    return { kind: "accepted", runId, ...(notice === undefined ? {} : { notice }) };
  };

/** Six letters and digits that tell two requests of one millisecond apart. */
const suffixOf = (token: string): string =>
  token
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .slice(0, 6)
    .padEnd(6, "0");

/** The slot key that the run would have to wait for; undefined = there is room. */
const blockerOf = async (
  deps: RunByHandDeps,
  job: JobDefinition,
  own: string,
): Promise<string | undefined> => {
  const read = () => deps.table.get(lockKey(job.subject), { consistent: true });
  let lock = await read();
  if (holdersOf(lock).length > 0 && (await releaseEnded(deps, job, lock))) lock = await read();
  const listed = [...holdersOf(lock), ...waitersOf(lock)].map(({ slotKey }) => slotKey);
  if (listed.includes(own)) return own;
  const free = hasRoom(lock, maxHolders(job)) && waitersOf(lock).length === 0;
  return free ? undefined : listed[0];
};

const refusedByLock = (runId: string, occurrence: Occurrence, blocker: string): RunByHandAnswer => {
  if (blocker === occurrence.slotKey) {
    return { kind: "refused", runId, state: "queued", reason: "already in flight" };
  }
  const blockedBy = runIdOf({ ...occurrence, slotKey: blocker });
  return { kind: "refused", runId, state: "blocked", reason: `${blockedBy} is not over` };
};

/** T1; undefined = recorded, else the state of the record that is there already. */
const record = async (deps: RunByHandDeps, request: RunByHandRequest, occurrence: Occurrence) => {
  const { input, reason } = request;
  const token = deps.random.token();
  const nowMs = deps.clock.nowMs();
  const inline = fitsInline(input);
  if (input !== undefined && !inline) await storeAside(deps.table, occurrence, "input", input, nowMs);
  const answer = await deps.table.write(
    claim({
      occurrence,
      token,
      nowMs,
      trigger: "manual",
      ...(input === undefined ? {} : inline ? { input } : { sideInput: true }),
      ...(reason === undefined ? {} : { reason }),
    }),
  );
  if (answer.written || answer.item?.["own"] === token) return undefined;
  const state = String(answer.item?.["st"]);
  if (!isTerminal(state)) return { state, reason: "already in flight" };
  return { state, reason: state === "succeeded" ? "already done" : `it ended ${state}` };
};

const noticeOf = async (
  { table, clock }: RunByHandDeps,
  { job, slotMs }: RunByHandRequest,
  waiting: boolean,
): Promise<string | undefined> => {
  if (waiting) return "it waits for the run before it";
  const control = await table.get(CONTROL_KEY, { consistent: false });
  const paused = reasonNotToClaim(control, job, slotMs ?? clock.nowMs()) === "paused";
  return paused ? "the job is paused; a run by hand goes ahead all the same" : undefined;
};
