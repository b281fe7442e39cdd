import { Conflict, Unavailable } from "../../core/errors.ts";
import { runIdOf, slotKeyOf, slotMsOf } from "../../core/identity.ts";
import { runKey, runRange, slotKeyInSortKey } from "../../core/items.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import { type MonitorDefinition, mustBeMonitor, pingDueMs, slotOfPing } from "../../core/monitors/monitor.ts";
import { type Ping, type Signal, takePing } from "../../core/monitors/ping.ts";
import { countDuplicate, hasRoomForDuplicate } from "../../core/runs/transitions.ts";
import type { Slots } from "../../core/schedule/schedule.ts";
import { shortIsoOf } from "../../core/time.ts";
import type { Item } from "../../core/write.ts";
import type { Deps } from "../deps.ts";
import { slotRefusal } from "../watchdog/check-slot.ts";
import { lookAt } from "../watchdog/looks.ts";

type PingDeps = Pick<Deps, "table" | "clock" | "random" | "journal" | "jobs">;

export interface PingRequest {
  readonly job: JobDefinition;
  /** A number is the exit code of the job's process: 0 = ok. */
  readonly signal: Signal | number;
  /** Shown with the run; of what is longer, the first 200 characters. */
  readonly message?: string;
  /** Absent = the ping finds its slot by the instant at which it comes. */
  readonly slotMs?: number;
  /** Of an end whose start was not told. */
  readonly durationMs?: number;
}

export interface PingAnswer {
  readonly runId: string;
  readonly slotMs: number;
  /** It was known already. */
  readonly duplicate: boolean;
}

/** As often as others may change a run between our reading and our writing it. */
const MAX_TRIES = 5;

const MESSAGE_LENGTH = 200;

/**
 * Takes a ping of a job that runs elsewhere. It may be repeated: what the record says already is counted as a
 * duplicate. The watchdog is asked to look at the run, so that what it says is told within two minutes.
 * @throws InvalidInput for a job that runs here, and for a slot that the schedule does not name; Conflict where no slot
 *   is expected
 */
export const makePing =
  (deps: PingDeps) =>
  async (request: PingRequest): Promise<PingAnswer> => {
    const job = mustBeMonitor(request.job);
    const signal =
      typeof request.signal === "number" ? (request.signal === 0 ? "ok" : "fail") : request.signal;
    const slotMs = await slotFor(deps, job, { ...request, signal });
    const occurrence = { subject: job.subject, slotKey: slotKeyOf(slotMs) };
    const nowMs = deps.clock.nowMs();
    const said = request.message?.slice(0, MESSAGE_LENGTH).toWellFormed();
    const { durationMs } = request;
    const taken = await take(deps, job, {
      occurrence,
      signal,
      token: deps.random.token(),
      nowMs,
      endsByMs: nowMs + job.monitor.endWithinMs,
      ...(durationMs === undefined ? {} : { durationMs }),
      ...(signal === "ok" && said !== undefined ? { result: said } : {}),
      ...(signal === "fail" ? { error: failureOf(request.signal, said) } : {}),
    });
    // Also of a duplicate: whoever sent the first one may have had no answer, because we ended before this.
    await lookAt(deps, occurrence, { atMs: nowMs });
    return { runId: runIdOf(occurrence), slotMs, duplicate: !taken };
  };

const failureOf = (signal: Signal | number, said: string | undefined) =>
  typeof signal === "number"
    ? {
        name: "ExitCode",
        message: `it ended with exit code ${signal}${said === undefined ? "" : `: ${said}`}`,
      }
    : { name: "Failed", message: said ?? "its ping says that it failed" };

/** False = the record says so already. */
const take = async (deps: PingDeps, job: MonitorDefinition, ping: Ping): Promise<boolean> => {
  let seen: Item | undefined = await deps.table.get(runKey(ping.occurrence), { consistent: true });
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    // An SDK that repeats our write after a lost answer meets our own success.
    if (seen?.["own"] === ping.token) return said(deps, job, ping);
    const write = takePing(seen, ping);
    if (write === undefined) {
      await count(deps, ping, seen);
      return false;
    }
    const answer = await deps.table.write(write);
    if (answer.written) return said(deps, job, ping);
    seen = answer.item;
  }
  throw new Unavailable("contended", `the run ${runIdOf(ping.occurrence)} is written by too many at once`);
};

const said = ({ journal }: PingDeps, { name }: JobDefinition, { occurrence, signal, error }: Ping): true => {
  const fields = { runId: runIdOf(occurrence), job: name, signal };
  if (signal === "fail") journal.notice("error", "dead", { ...fields, reason: error?.message ?? "" });
  else journal.notice("info", "ping", fields);
  return true;
};

const count = async ({ table, journal }: PingDeps, ping: Ping, seen: Item | undefined): Promise<void> => {
  const { occurrence, token, nowMs, signal } = ping;
  journal.notice("info", "duplicate-delivery", { runId: runIdOf(occurrence), signal });
  if (hasRoomForDuplicate(seen?.["dup"])) await table.write(countDuplicate(occurrence, token, nowMs));
};

type Wanted = Pick<PingRequest, "slotMs"> & { readonly signal: Signal };

/** The slot that is named; else, of an end, the run that has started; else the nearest. */
const slotFor = async (deps: PingDeps, job: MonitorDefinition, wanted: Wanted): Promise<number> => {
  const { jobs, clock } = deps;
  const schedule = jobs.scheduleOf(job);
  if (schedule === undefined || !jobs.firesHere(job)) {
    throw new Conflict("not_expected", `no ping of ${job.name} is expected in stage ${jobs.stage}`);
  }
  const nowMs = clock.nowMs();
  const nearMs = slotOfPing(job, schedule, nowMs);
  if (wanted.slotMs !== undefined) {
    const refusal =
      wanted.slotMs === nearMs ? undefined : slotRefusal(job, schedule, { slotMs: wanted.slotMs, nowMs });
    if (refusal !== undefined) throw refusal;
    return wanted.slotMs;
  }
  const runningMs = wanted.signal === "start" ? undefined : await runningSlot(deps, job);
  const slotMs = runningMs ?? (await awaitedSlot(deps, job, schedule)) ?? nearMs;
  if (slotMs !== undefined) return slotMs;
  const firstMs = schedule.next(nowMs);
  const first = firstMs === undefined ? "it has none" : `its first is ${shortIsoOf(firstMs)}`;
  throw new Conflict("no_slot", `no slot of ${job.name} is near enough to count this ping for: ${first}`);
};

/** The slot before, while its grace lasts and no ping has come for it: an early one for the next slot it is not then. */
const awaitedSlot = async (
  { table, clock }: PingDeps,
  job: MonitorDefinition,
  schedule: Pick<Slots, "previous">,
): Promise<number | undefined> => {
  const nowMs = clock.nowMs();
  const slotMs = schedule.previous(nowMs + 1);
  if (slotMs === undefined || nowMs >= pingDueMs(job, slotMs)) return undefined;
  const run = await table.get(runKey({ subject: job.subject, slotKey: slotKeyOf(slotMs) }), {
    consistent: true,
  });
  return run?.["st"] === undefined ? slotMs : undefined;
};

/** Runs of one monitor that may overlap; older ones are found by `slot` only. */
const NEWEST = 10;

const runningSlot = async (
  { table }: PingDeps,
  { subject }: MonitorDefinition,
): Promise<number | undefined> => {
  const newest = await table.query({ ...runRange(subject), descending: true, limit: NEWEST });
  const running = newest.find((run) => run["st"] === "running");
  return running === undefined ? undefined : slotMsOf(slotKeyInSortKey(String(running["sk"])));
};

export type SendPing = ReturnType<typeof makePing>;
