import type { Occurrence } from "../identity.ts";
import { expiresAtS, runKey, strideKey } from "../items.ts";
import {
  absent,
  addMembers,
  all,
  any,
  type Condition,
  equals,
  type Item,
  remove,
  set,
  setOnce,
  type Value,
  type Write,
} from "../write.ts";
import { bucketCount, type ShardCounts, strideCount } from "./shards.ts";

/**
 * A run that has many shards. RUN goes through phases (`ph`): its shards are listed, sent, carried out (`shards`, in
 * which nobody holds a lease on RUN), and joined. A retry begins anew, with the list that is there (`again`); a run that
 * is to end while shards are on their way stops them first (`stop`). Each shard is counted in its BUCKET; a bucket whose shards are all over in its STRIDE; a full stride in RUN.
 */
export type Phase = "list" | "send" | "again" | "shards" | "join" | "stop";

export const phaseOf = (run: Item | undefined): Phase => {
  const phase = run?.["ph"];
  if (phase === "send" || phase === "shards" || phase === "join" || phase === "stop") return phase;
  return run?.["plan"] === undefined ? "list" : "again";
};

/** Running, and nobody holds it: its shards are on their way, or being stopped. */
export const isUnheld = (run: Item | undefined): boolean =>
  run?.["st"] === "running" && ["shards", "stop"].includes(phaseOf(run));

/** May shards of the run be at work, or on their way? Not of one that is queued: its attempt set has sent none, or all are over. */
export const mayHaveShards = ({ shards }: { readonly shards?: unknown }, run: Item | undefined): boolean =>
  run?.["fence"] !== undefined &&
  run["st"] !== "queued" &&
  (shards !== undefined || run["plan"] !== undefined) &&
  phaseOf(run) !== "join";

/** The shards of one run, as one list of them. `plan` is the fence of the attempt that made the list. */
export interface FanOut {
  readonly occurrence: Occurrence;
  readonly plan: number;
  readonly total: number;
  /** The job's code named them, so their keys and inputs are stored; else they go by number. */
  readonly listed: boolean;
}

/** Undefined: the run's shards are not listed yet. */
export const fanOutOf = (occurrence: Occurrence, run: Item | undefined): FanOut | undefined =>
  run?.["plan"] === undefined
    ? undefined
    : {
        occurrence,
        plan: Number(run["plan"]),
        total: Number(run["total"]),
        listed: run["listed"] === true,
      };

interface Held {
  readonly occurrence: Occurrence;
  readonly fence: number;
}

const heldBy = (fence: number): Condition => all(equals("st", "running"), equals("fence", fence));

/** The list is complete, and from now on this one: nothing was sent before. */
export const keepList = (
  { occurrence, fence }: Held,
  { total, listed }: Pick<FanOut, "total" | "listed">,
): Write => ({
  key: runKey(occurrence),
  condition: all(heldBy(fence), absent("plan")),
  changes: [
    set("ph", "send"),
    set("plan", fence),
    set("total", total),
    set("sent", 0),
    ...(listed ? [set("listed", true)] : []),
  ],
});

/** All shards before that one are sent. */
export const sentUpTo = ({ occurrence, fence }: Held, count: number): Write => ({
  key: runKey(occurrence),
  condition: heldBy(fence),
  changes: [set("sent", count)],
});

/** Everything is sent: the lease ends, and the shards are left to themselves. Refused when asked to stop. */
export const openShards = ({ occurrence, fence }: Held, { tries }: { readonly tries: Value }): Write => ({
  key: runKey(occurrence),
  condition: all(heldBy(fence), any(absent("ph"), equals("ph", "send")), absent("cancelAtMs")),
  changes: [
    set("ph", "shards"),
    set("attempts", 0),
    set("crashes", 0),
    set("tries", tries),
    ...["leaseUntilMs", "error", "sideError", "nudges", "sent", "chosen", "seen", "seenAtMs"].map((name) =>
      remove(name),
    ),
  ],
});

/** A bucket or stride that is complete: its number, and how many shards of it failed. */
const fullText = (number: number, failed: number): string =>
  failed === 0 ? String(number) : `${number}!${failed}`;

const fullIn = (item: Item | undefined): readonly { readonly number: number; readonly failed: number }[] => {
  const texts = item?.["full"];
  if (!(texts instanceof Set)) return [];
  return [...texts].map((text: string) => {
    const [number, failed = "0"] = text.split("!");
    return { number: Number(number), failed: Number(failed) };
  });
};

const failedIn = (item: Item | undefined): number =>
  fullIn(item).reduce((sum, { failed }) => sum + failed, 0);

/** Numbers of the strides that are complete, in RUN; of the buckets, in STRIDE. */
export const fullNumbers = (item: Item | undefined): ReadonlySet<number> =>
  new Set(fullIn(item).map(({ number }) => number));

/** Strides that may have failed shards: those that are complete say so, the others are not counted yet. */
export const failedStrides = (run: Item | undefined, { total }: FanOut): readonly number[] => {
  const failed = new Map(fullIn(run).map((stride) => [stride.number, stride.failed]));
  return Array.from({ length: strideCount(total) }, (_, stride) => stride).filter(
    (stride) => failed.get(stride) !== 0,
  );
};

/** Buckets of the stride that are complete. The same every time, within one attempt set. */
export const countBuckets = (
  { occurrence, plan }: FanOut,
  { epoch, stride, nowMs }: { readonly epoch: number; readonly stride: number; readonly nowMs: number },
  buckets: readonly { readonly bucket: number; readonly failed: number }[],
): Write => ({
  key: strideKey({ occurrence, plan, stride }, epoch),
  changes: [
    addMembers("full", ...buckets.map(({ bucket, failed }) => fullText(bucket, failed))),
    setOnce("expiresAtS", expiresAtS(nowMs)),
  ],
});

export const isStrideFull = (item: Item | undefined, stride: number, { total }: FanOut): boolean =>
  fullIn(item).length === bucketCount(stride, total);

/** A stride is complete: told to RUN, unless that is in another attempt set by now. */
export const countStride = (
  { occurrence, plan }: FanOut,
  {
    epoch,
    stride,
    strideItem,
  }: { readonly epoch: number; readonly stride: number; readonly strideItem: Item },
): Write => ({
  key: runKey(occurrence),
  condition: all(equals("ep", epoch), equals("plan", plan)),
  changes: [addMembers("full", fullText(stride, failedIn(strideItem)))],
});

export const isRunFull = (run: Item | undefined): boolean =>
  run?.["total"] !== undefined && fullIn(run).length === strideCount(Number(run["total"]));

/** Of a run whose shards are all over. */
export const countsOf = (run: Item): ShardCounts => {
  const [total, failed] = [Number(run["total"]), failedIn(run)];
  return { total, done: total - failed, failed };
};

/** Every shard is over: the run is queued once more, for its end. */
export const queueJoin = (occurrence: Occurrence, epoch: number, nowMs: number): Write => ({
  key: runKey(occurrence),
  condition: all(equals("ep", epoch), equals("st", "running"), equals("ph", "shards")),
  changes: [set("ph", "join"), set("st", "queued"), set("joinAtMs", nowMs)],
});

/** The retry of a run that is for some of its failed shards only, by number. */
export const forSomeShards = (retry: Write, chosen: readonly number[]): Write => ({
  ...retry,
  changes: [
    ...retry.changes.filter(({ path }) => path !== "chosen"),
    set("chosen", new Set(chosen.map(String))),
  ],
});

/** The watchdog's look at a run in its shards: so many were over then. Refused when somebody else has just looked. */
export const noteSeen = (
  occurrence: Occurrence,
  lastAtMs: number | undefined,
  { seen, nowMs, nudges }: { readonly seen: number; readonly nowMs: number; readonly nudges: number },
): Write => ({
  key: runKey(occurrence),
  condition: all(
    equals("ph", "shards"),
    lastAtMs === undefined ? absent("seenAtMs") : equals("seenAtMs", lastAtMs),
  ),
  changes: [set("seen", seen), set("seenAtMs", nowMs), set("nudges", nudges)],
});
