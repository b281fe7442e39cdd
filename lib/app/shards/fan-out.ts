import { runKey } from "../../core/items.ts";
import { stopReason } from "../../core/runs/marks.ts";
import { countsOf, fanOutOf, openShards, phaseOf } from "../../core/shards/fan-out.ts";
import { type ShardCounts, toleratedOf } from "../../core/shards/shards.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import { begun, runAttempt, underLease } from "../path/attempt.ts";
import {
  close,
  type Ended,
  journalEnd,
  record,
  stale,
  tookEffect,
  triesOf,
  wishToStop,
} from "../path/record.ts";
import { repeated } from "../path/repeated.ts";
import { DELETE, type Lease, type Visit, type WorkDeps } from "../path/visit.ts";
import { joinIfFull } from "./join.ts";
import { planning } from "./plan.ts";

/** Is the attempt one of a run that has shards? A deploy may have changed the job since they were listed. */
export const hasShards = ({ job }: Pick<Visit, "job">, { item }: Pick<Lease, "item">): boolean =>
  job.shards !== undefined || item["plan"] !== undefined;

/** One attempt of a run that has shards: it lists and sends them or, when they are over, ends the run. */
export const fanOut = (deps: WorkDeps, visit: Visit, lease: Lease): Promise<Settlement> =>
  phaseOf(lease.item) === "join" ? join(deps, visit, lease) : plan(deps, visit, lease);

const plan = (deps: WorkDeps, visit: Visit, lease: Lease): Promise<Settlement> => {
  const began = begun(deps, visit, lease);
  return underLease(deps, began, {
    start: (services) => planning(deps, began, services),
    recordEnd: recordPlan,
  });
};

/** Everything is sent: the lease ends. Else the attempt ended like any other. */
const recordPlan = async (deps: WorkDeps, ended: Ended): Promise<Settlement> => {
  const { visit, end, holding } = ended;
  if (end.kind !== "returned") return record(deps, { ...ended, inShards: await isListed(deps, visit) });
  const opened = { ...ended, end: { kind: "returned" } } as const;
  const answer = await repeated(() => deps.table.write(openShards(holding, { tries: triesOf(opened) })));
  const wish = wishToStop(ended, answer);
  if (wish !== undefined) {
    const stopped = { ...ended, inShards: true };
    return close(deps, stopped, { state: "cancelled", reason: wish, failed: false });
  }
  if (!tookEffect(ended, answer, "running") || phaseOf(answer.item) !== "shards") return stale(deps, ended);
  journalEnd(deps, ended, { state: "running" });
  await joinIfFull(deps, visit, answer.item);
  return DELETE;
};

/** Without a list nothing can have been sent. */
const isListed = async ({ table }: WorkDeps, { occurrence }: Visit): Promise<boolean> =>
  fanOutOf(occurrence, await table.get(runKey(occurrence), { consistent: true })) !== undefined;

/** The run's end: by its tolerance, then by the job's own hook, if it has one. */
const join = (deps: WorkDeps, visit: Visit, lease: Lease): Promise<Settlement> => {
  const shards = countsOf(lease.item);
  const { tolerance, joins } = visit.job.shards ?? { joins: false };
  if (shards.failed <= toleratedOf(tolerance, shards.total) && joins) {
    return runAttempt(deps, visit, lease, { kind: "join", shards });
  }
  const began = begun(deps, visit, lease);
  const ended = {
    ...began,
    end: { kind: "returned" },
    cancelled: undefined,
    endedAtMs: deps.clock.nowMs(),
  } as const;
  const wish = stopReason(lease.item);
  if (wish !== undefined) {
    return close(deps, ended, { state: "cancelled", reason: wish, failed: false });
  }
  if (shards.failed <= toleratedOf(tolerance, shards.total)) {
    return close(deps, ended, { state: "succeeded", failed: false });
  }
  return close(deps, ended, { state: "dead", failed: true, ...tooManyFailed(shards) });
};

const tooManyFailed = ({ failed, total }: ShardCounts) => {
  const reason = `${failed} of ${total} shards failed`;
  return { reason, error: { name: "ShardsFailed", message: reason } };
};
