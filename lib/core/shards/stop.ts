import type { Occurrence } from "../identity.ts";
import { bucketKey, expiresAtS, runKey } from "../items.ts";
import { isTerminal } from "../runs/run.ts";
import { listedAsBad } from "../runs/run-attributes.ts";
import {
  absent,
  all,
  any,
  atMost,
  type Change,
  equals,
  type Item,
  increment,
  not,
  remove,
  set,
  setOnce,
  type Write,
} from "../write.ts";
import { seatIn } from "./seats.ts";

/**
 * A run whose shards may be at work ends in two steps, so that nothing of it is at work after its end: first it comes
 * into phase `stop`, in which no shard starts or keeps its lease, then it ends when none has one any more.
 */

/** Written by that end alone. */
const OF_THE_END: ReadonlySet<string> = new Set(["endedAtMs", "badMonth", "badKey"]);

const putOff = (change: Change): readonly Change[] => {
  if (change.kind !== "set") return [change];
  if (typeof change.path === "string" && OF_THE_END.has(change.path)) return [];
  return change.path === "st" ? [set("st", "running"), set("endsAs", change.value)] : [change];
};

/**
 * The same write as the first of the two steps: of the end that it would have been, state and reason are noted. The run is
 * `running` still, so that a late copy of the write is refused by the phase.
 */
export const putOffEnd = (end: Write): Write => ({
  ...end,
  condition: all(...(end.condition === undefined ? [] : [end.condition]), not(equals("ph", "stop"))),
  changes: [...end.changes.flatMap(putOff), set("ph", "stop")],
});

/** How a run in phase `stop` will end. */
export const endsAs = (run: Item | undefined): string | undefined => {
  const state = run?.["endsAs"];
  return typeof state === "string" && isTerminal(state) ? state : undefined;
};

/** The second step, when no shard is at work. */
export const endStopped = (
  occurrence: Occurrence,
  epoch: number,
  { state, nowMs }: { readonly state: string; readonly nowMs: number },
): Write => ({
  key: runKey(occurrence),
  condition: all(equals("ep", epoch), equals("st", "running"), equals("ph", "stop"), equals("endsAs", state)),
  changes: [
    set("st", state),
    set("endedAtMs", nowMs),
    remove("endsAs"),
    ...listedAsBad({ occurrence, atMs: nowMs }),
  ],
});

/** A run in its shards, which nobody holds, is to end: nothing will join it. */
export const cancelShards = (
  occurrence: Occurrence,
  epoch: number,
  by: { readonly token: string; readonly reason: string },
): Write =>
  putOffEnd({
    key: runKey(occurrence),
    condition: all(equals("ep", epoch), equals("st", "running"), equals("ph", "shards")),
    changes: [set("st", "cancelled"), set("own", by.token), increment("fence", 1), set("reason", by.reason)],
  });

interface BucketAt {
  readonly occurrence: Occurrence;
  readonly plan: number;
  readonly stride: number;
  readonly bucket: number;
}

/** No shard of this attempt set, or an earlier one, starts or keeps its lease. */
export const stopBucket = (at: BucketAt, epoch: number, nowMs: number): Write => ({
  key: bucketKey(at),
  condition: any(absent("least"), atMost("least", epoch)),
  changes: [set("least", epoch + 1), setOnce("expiresAtS", expiresAtS(nowMs))],
});

/** Was the attempt set of this epoch stopped? */
export const isStopped = (bucket: Item | undefined, epoch: number): boolean =>
  Number(bucket?.["least"] ?? 0) > epoch;

const SEATS = 64;

/** When the last lease of the bucket's shards ends; undefined = none has one. */
export const lastLeaseMs = (bucket: Item | undefined): number | undefined => {
  const leases = Array.from({ length: SEATS }, (_, seat) => seatIn(bucket, seat)?.leaseUntilMs);
  return leases.reduce((last, lease) => {
    if (lease === undefined) return last;
    return Math.max(last ?? lease, lease);
  }, undefined);
};
