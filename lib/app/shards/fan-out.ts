import { durationText } from "../../core/duration.ts";
import { Conflict, InvalidInput } from "../../core/errors.ts";
import { runKey } from "../../core/items.ts";
import { errorFacts } from "../../core/json-safe.ts";
import {
  countsOf,
  type FanOut,
  failedSeatsIn,
  fanOutOf,
  forgiveShards,
  keepList,
  openShards,
  phaseOf,
  sentUpTo,
} from "../../core/shards/fan-out.ts";
import {
  indexOfShard,
  type ListedShard,
  PER_STRIDE,
  type ShardCounts,
  toleratedOf,
} from "../../core/shards/shards.ts";
import type { Item } from "../../core/write.ts";
import type { AttemptEnd, AttemptServices, RunningAttempt } from "../../ports/attempts.ts";
import type { Settlement } from "../../ports/run-queue.ts";
import { eachAtOnce } from "../at-once.ts";
import { type Began, begun, INPUT_GONE, requestOf, runAttempt, underLease } from "../path/attempt.ts";
import {
  askedToStop,
  close,
  type Ended,
  journalEnd,
  record,
  stale,
  tookEffect,
  triesOf,
} from "../path/record.ts";
import { repeated } from "../path/repeated.ts";
import { DELETE, type Lease, type Visit, type WorkDeps } from "../path/visit.ts";
import { joinIfFull, repeatSteps, type SeenBucket } from "./join.ts";
import { type Sender, sendChosen, sendShards } from "./send-shards.ts";
import { type NumberedShard, readStride, storeStride } from "./shard-pages.ts";
import { openStrides, readBuckets, type SeenShard, shardsIn, shardsToSend } from "./shard-state.ts";

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

/** Another attempt has the run: whatever this one would still do, it must not. */
const leaseLost = () => new Conflict("lease_lost", "another attempt has this run by now");

/** Listing, then sending; it can be stopped between any two calls. */
const planning = (deps: WorkDeps, began: Began, services: AttemptServices): RunningAttempt => {
  const { job } = began.visit;
  let halted: AttemptEnd | undefined;
  let listing: RunningAttempt | undefined;
  const goOn = (): void => {
    if (halted !== undefined) throw new Error("the planning was stopped");
  };
  const halt = (kind: "stopped" | "timed-out", name: string, message: string): void => {
    halted ??= { kind, error: { name, message } };
  };
  const stop = (reason: string): void => {
    halt("stopped", "AbortError", reason);
    listing?.stop(reason);
  };
  const limit = `the shards were not all sent within the timeout of ${durationText(job.timeoutMs)}`;
  const timeout = deps.timers.after(job.timeoutMs, () => halt("timed-out", "TimeoutError", limit));
  const act = async (): Promise<AttemptEnd> => {
    const list = await listOf(deps, began, { services, goOn, began: (running) => (listing = running) });
    if ("end" in list) return list.end;
    await sendAll(deps, began, { ...list, goOn });
    return { kind: "returned" };
  };
  const ended = act()
    .catch((error: unknown): AttemptEnd => {
      const permanent = error instanceof InvalidInput;
      return { kind: "threw", error: errorFacts(error), permanent };
    })
    .then((end) => {
      timeout.cancel();
      return halted ?? end;
    });
  return { ended, stop };
};

interface Listing {
  readonly services: AttemptServices;
  goOn(): void;
  /** The job's code is at it; undefined = not any more. */
  began(running: RunningAttempt | undefined): void;
}

/** Shards by their stride, as far as this attempt has them in its memory. */
type Remembered = ReadonlyMap<number, readonly NumberedShard[]>;

/** RUN with its list; or how the listing ended instead. */
type Listed = { readonly run: Item; readonly remembered?: Remembered } | { readonly end: AttemptEnd };

const listOf = async (deps: WorkDeps, began: Began, listing: Listing): Promise<Listed> => {
  const { visit, lease } = began;
  if (phaseOf(lease.item) !== "list") return { run: lease.item };
  const count = visit.job.shards?.count;
  if (count !== undefined) return { run: await keep(deps, began, { total: count, listed: false }) };
  const request = await requestOf(deps, began, { kind: "list" });
  if (request === undefined) return { end: INPUT_GONE };
  const book = bookOf(deps, began, listing);
  const running = deps.attempts.start(request, { ...listing.services, addShards: book.add });
  listing.began(running);
  const end = await running.ended;
  listing.began(undefined);
  if (end.kind !== "returned") return { end };
  const total = await book.close();
  return { run: await keep(deps, began, { total, listed: true }), remembered: book.remembered };
};

/** So many characters of JSON need not be read again to be sent; what is more would weigh on a small worker. */
const MOST_REMEMBERED = 16 * 1024 * 1024;

/**
 * Stores what the job lists, stride by stride, under this attempt's fence: nothing of it counts before the list is
 * complete, so an attempt that fails has left nothing behind, and the next one makes a list of its own.
 */
const bookOf = (deps: WorkDeps, { holding }: Began, { goOn }: Listing) => {
  const list = { occurrence: holding.occurrence, plan: holding.fence };
  const remembered = new Map<number, readonly NumberedShard[]>();
  let memory = MOST_REMEMBERED;
  let stride = 0;
  let held: ListedShard[] = [];
  const store = async (shards: readonly ListedShard[]): Promise<void> => {
    goOn();
    const first = stride * PER_STRIDE;
    memory -= JSON.stringify(shards).length;
    if (memory >= 0) {
      remembered.set(
        stride,
        shards.map((shard, within) => ({ index: first + within, ...shard })),
      );
    }
    await storeStride(deps, list, { stride: stride++, shards });
  };
  return {
    remembered,
    add: async (shards: readonly ListedShard[]): Promise<void> => {
      held.push(...shards);
      while (held.length >= PER_STRIDE) {
        const full = held.slice(0, PER_STRIDE);
        held = held.slice(PER_STRIDE);
        await store(full);
      }
    },
    /** Answers how many there are. */
    close: async (): Promise<number> => {
      const total = stride * PER_STRIDE + held.length;
      if (held.length > 0) await store(held);
      return total;
    },
  };
};

const keep = async (
  deps: WorkDeps,
  { holding, visit }: Began,
  list: Pick<FanOut, "total" | "listed">,
): Promise<Item> => {
  const { written, item } = await repeated(() => deps.table.write(keepList(holding, list)));
  const mine = written || (item?.["own"] === visit.token && item["plan"] === holding.fence);
  if (mine && item !== undefined) return item;
  throw leaseLost();
};

interface Sending {
  readonly run: Item;
  readonly remembered?: Remembered;
  goOn(): void;
}

const sendAll = async (deps: WorkDeps, began: Began, { run, remembered, goOn }: Sending): Promise<void> => {
  const { visit } = began;
  const fan = fanOutOf(visit.occurrence, run);
  if (fan === undefined) throw new Error("the run has a phase, and no list");
  const sender = { job: visit.job, occurrence: visit.occurrence, fan, run, checkpoint: goOn };
  return phaseOf(run) === "again" ? sendAgain(deps, sender) : sendFirst(deps, began, sender, remembered);
};

/**
 * Stride by stride, from where the attempt before came to. Of what that one may have sent, only what nobody has begun is
 * sent again; what was sent twice all the same is absorbed by the shard's start.
 */
const sendFirst = async (
  deps: WorkDeps,
  { holding, lease }: Began,
  sender: Sender,
  remembered: Remembered = new Map(),
): Promise<void> => {
  const { fan, run, job } = sender;
  const resumedAt = phaseOf(lease.item) === "send" ? Number(run["sent"] ?? 0) : undefined;
  const wanted = Math.min(fan.total, job.shards?.maxInFlight ?? fan.total);
  for (let sent = Number(run["sent"] ?? 0); sent < wanted; ) {
    const stride = Math.floor(sent / PER_STRIDE);
    const shards = remembered.get(stride) ?? (await readStride(deps, fan, stride));
    const isOpen = sent === resumedAt ? await openIn(deps, fan, stride) : () => true;
    await sendShards(
      deps,
      sender,
      shards.filter(({ index }) => index < wanted && isOpen(index)),
    );
    sent = Math.min(wanted, (stride + 1) * PER_STRIDE);
    // The last of them is noted by what opens the shards.
    if (sent === wanted) return;
    const { written } = await deps.table.write(sentUpTo(holding, sent));
    if (!written) throw leaseLost();
  }
};

/** Of a stride: whether nobody has begun the shard. */
const openIn = async (deps: WorkDeps, fan: FanOut, stride: number): Promise<(index: number) => boolean> => {
  const now = { nowMs: deps.clock.nowMs(), clockBoundMs: deps.timings.clockBoundMs };
  const seen = shardsIn(await readBuckets(deps, fan, [stride]), fan.total, now);
  const open = new Set(seen.filter(({ state }) => state.kind === "idle").map(({ index }) => index));
  return (index) => open.has(index);
};

/** After a retry: the failed shards may start again, and all that are not over are sent. */
const sendAgain = async (deps: WorkDeps, sender: Sender): Promise<void> => {
  const { fan, run, job, occurrence } = sender;
  const seen = await readBuckets(deps, fan, openStrides(fan, undefined));
  const epoch = Number(run["ep"]);
  const chosen = run["chosen"] instanceof Set ? run["chosen"] : undefined;
  const forgiven = await forgive(deps, seen, {
    fan,
    epoch,
    isChosen: (index) => chosen === undefined || chosen.has(String(index)),
  });
  await repeatSteps(deps, { job, occurrence, fan, epoch }, forgiven);
  const now = { nowMs: deps.clock.nowMs(), clockBoundMs: deps.timings.clockBoundMs };
  const open = shardsIn(forgiven, fan.total, now);
  const isFree = ({ state }: SeenShard): boolean => state.kind !== "running";
  await sendChosen(deps, sender, shardsToSend(open, job.shards?.maxInFlight, isFree));
};

/** The buckets as they are afterwards. */
const forgive = async (
  deps: WorkDeps,
  seen: readonly SeenBucket[],
  {
    fan,
    epoch,
    isChosen,
  }: { readonly fan: FanOut; readonly epoch: number; isChosen(index: number): boolean },
): Promise<readonly SeenBucket[]> => {
  const after = [...seen];
  await eachAtOnce(seen.entries(), 16, async ([place, bucket]) => {
    const seats = [...failedSeatsIn(bucket.item)].filter((seat) =>
      isChosen(indexOfShard({ ...bucket, seat }, fan.total)),
    );
    if (seats.length === 0) return;
    const at = { occurrence: fan.occurrence, plan: fan.plan, ...bucket };
    const { item } = await repeated(() => deps.table.write(forgiveShards(at, seats, epoch)));
    after[place] = { ...bucket, item };
  });
  return after;
};

/** Everything is sent: the lease ends. Else the attempt ended like any other. */
const recordPlan = async (deps: WorkDeps, ended: Ended): Promise<Settlement> => {
  const { visit, end, holding } = ended;
  if (end.kind !== "returned") return record(deps, { ...ended, inShards: await isListed(deps, visit) });
  const opened = { ...ended, end: { kind: "returned" } } as const;
  const answer = await repeated(() => deps.table.write(openShards(holding, { tries: triesOf(opened) })));
  if (askedToStop(ended, answer)) {
    const stopped = { ...ended, inShards: true };
    return close(deps, stopped, { state: "cancelled", reason: "cancelled", failed: false });
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
    cancelled: false,
    endedAtMs: deps.clock.nowMs(),
  } as const;
  if (lease.item["cancelAtMs"] !== undefined) {
    return close(deps, ended, { state: "cancelled", reason: "cancelled", failed: false });
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
