import type { Occurrence } from "../../core/identity.ts";
import type { JobDefinition } from "../../core/jobs/job.ts";
import type { Json } from "../../core/json.ts";
import type { RunMessage } from "../../core/runs/message.ts";
import { phaseOf } from "../../core/shards/fan-out.ts";
import type { Item } from "../../core/write.ts";
import type { Attempts } from "../../ports/attempts.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import type { Deps } from "../deps.ts";
import { isLocked, release } from "./lock-keeper.ts";
import { readAside } from "./side.ts";

export type WorkDeps = Deps & { readonly attempts: Attempts };

/** A message on its way through a worker. */
export interface Visit {
  readonly job: JobDefinition;
  readonly occurrence: Occurrence;
  readonly message: RunMessage;
  /** The owner token of this visit. */
  readonly token: string;
}

/** A lease as its holder sees it. */
export interface Lease {
  /** RUN as the start left it. */
  readonly item: Item;
  readonly startedAtMs: number;
  readonly untilMs: number;
}

export const DELETE: Settlement = { kind: "delete" };

/** The run of the message is over, or its attempt set is: its lock is free, and the message has done its work. */
export const leave = async (deps: WorkDeps, { job, occurrence, message }: Visit): Promise<Settlement> => {
  if (isLocked(job)) await release(deps, { job, occurrence, epoch: message.epoch });
  return DELETE;
};

/** Counted from 1 within the attempt set, and within the piece where there are several; crashes included. */
export const attemptNumber = (item: Item): number =>
  Number(item["attempts"] ?? 0) + Number(item["crashes"] ?? 0) + 1;

/** Which attempt it is, and of what: of the first set and the first piece, most often. */
export const attemptPlace = (
  item: Item,
): {
  readonly n: number;
  readonly set?: number;
  readonly piece?: number;
  /** The join of a run that is split has attempts of its own. */
  readonly part?: "join";
} => {
  const set = Number(item["ep"] ?? 1);
  return {
    n: attemptNumber(item),
    ...(set === 1 ? {} : { set }),
    ...pieceNumber(item),
    ...(phaseOf(item) === "join" ? { part: "join" } : {}),
  };
};

/** Which piece of the work it is, counted from 1; nothing, for the first: most runs have no other. */
export const pieceNumber = (item: Item): { readonly piece?: number } => {
  const before = Number(item["cont"] ?? 0);
  return before === 0 ? {} : { piece: before + 1 };
};

/** The input of the run: its own, wherever it lies, or the job's. Undefined = it had its own, and that is gone. */
export const inputOf = async (
  deps: WorkDeps,
  { job, occurrence }: Visit,
  item: Item,
): Promise<Json | undefined> => {
  if (item["sideInput"] === true) return readAside(deps.table, occurrence, "input");
  return (item["input"] as Json | undefined) ?? job.input;
};
