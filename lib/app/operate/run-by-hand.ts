import { manualSlotKey, type Occurrence, runIdOf, slotKeyOf } from "../../core/identity.ts";
import { CONTROL_KEY, lockKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { Json } from "../../core/json.ts";
import { mustRunHere } from "../../core/monitors/monitor.ts";
import { holdersOf, waitersOf } from "../../core/runs/lock.ts";
import { isTerminal } from "../../core/runs/run.ts";
import { claim } from "../../core/runs/transitions.ts";
import type { Deps } from "../deps.ts";
import { claimAndSend } from "../path/claims.ts";
import { isLocked, mustFitInLine } from "../path/lock-keeper.ts";
import { fitsInline, storeAside } from "../path/side.ts";
import { noteAsk } from "../watchdog/looks.ts";
import { reasonNotToClaim } from "./control.ts";

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

/**
 * Asks for a run now. It has its record before its message, so that nothing about it can be lost. Where the job does
 * not allow overlap it waits in line, and never makes a slot skip.
 * @throws Conflict (`queue_full`) when too many wait in that line already, (`runs_elsewhere`) for a monitor
 */
export const makeRunByHand =
  (deps: RunByHandDeps) =>
  async (request: RunByHandRequest): Promise<RunByHandAnswer> => {
    const { job, slotMs } = request;
    mustRunHere(job);
    const nowMs = deps.clock.nowMs();
    const slotKey =
      slotMs === undefined ? manualSlotKey(nowMs, suffixOf(deps.random.token())) : slotKeyOf(slotMs);
    const occurrence = { subject: job.subject, slotKey };
    const runId = runIdOf(occurrence);
    if (isLocked(job) && (await isListed(deps, job, slotKey))) {
      return { kind: "refused", runId, state: "queued", reason: "already in flight" };
    }
    // Noted first: nobody else would look at a run whose message was lost.
    await noteAsk(deps, occurrence, 1);
    const made = await record(deps, request, occurrence);
    if (made !== undefined) return { kind: "refused", runId, ...made };
    const ask = { job, occurrence, epoch: 1, trigger: "manual", queuedAtMs: nowMs, recorded: true } as const;
    const outcome = await claimAndSend(deps, ask, deps.random.token());
    const notice = outcome === "waiting" ? await lineNotice(deps, job) : await pauseNotice(deps, request);
    return { kind: "accepted", runId, ...(notice === undefined ? {} : { notice }) };
  };

/** Six letters and digits that tell two requests of one millisecond apart. */
const suffixOf = (token: string): string =>
  token
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .slice(0, 6)
    .padEnd(6, "0");

/**
 * Is the occurrence claimed, although it may have no record yet?
 * @throws Conflict (`queue_full`)
 */
const isListed = async ({ table }: RunByHandDeps, job: JobDefinition, slotKey: string): Promise<boolean> => {
  const lock = await table.get(lockKey(job.subject), { consistent: true });
  if ([...holdersOf(lock), ...waitersOf(lock)].some((entry) => entry.slotKey === slotKey)) return true;
  mustFitInLine(job, lock);
  return false;
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

const lineNotice = async ({ table }: RunByHandDeps, { subject }: JobDefinition): Promise<string> => {
  const lock = await table.get(lockKey(subject), { consistent: true });
  const [holder] = holdersOf(lock);
  return holder === undefined
    ? "it waits for the run before it"
    : `it waits for ${runIdOf({ subject, slotKey: holder.slotKey })}`;
};

const pauseNotice = async (
  { table, clock }: RunByHandDeps,
  { job, slotMs }: RunByHandRequest,
): Promise<string | undefined> => {
  const control = await table.get(CONTROL_KEY, { consistent: false });
  const paused = reasonNotToClaim(control, job, slotMs ?? clock.nowMs()) === "paused";
  return paused ? "the job is paused; a run by hand goes ahead all the same" : undefined;
};
