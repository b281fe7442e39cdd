import { type Item, isMap, type Value } from "../write.ts";
import { bucketSize } from "./shards.ts";

/** A shard that somebody has, has had, or that waits. */
export interface Seat {
  readonly seat: number;
  readonly owner: string | undefined;
  /** Undefined: nobody has it. */
  readonly leaseUntilMs: number | undefined;
  /** Starts so far; the number of the last one is its fence. */
  readonly starts: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly snoozes: number;
  /** Ends of invocations with `continueLater`. */
  readonly pieces: number;
  /** When its next attempt is due; undefined = it does not wait. */
  readonly dueAtMs: number | undefined;
}

export const seatAttribute = (seat: number): string => `l#${seat}`;

export const seatIn = (bucket: Item | undefined, seat: number): Seat | undefined => {
  const value = bucket?.[seatAttribute(seat)];
  if (!isMap(value)) return undefined;
  const number = (name: string): number | undefined =>
    value[name] === undefined ? undefined : Number(value[name]);
  return {
    seat,
    owner: value["owner"] === undefined ? undefined : String(value["owner"]),
    leaseUntilMs: number("leaseUntilMs"),
    starts: number("starts") ?? 0,
    attempts: number("attempts") ?? 0,
    crashes: number("crashes") ?? 0,
    snoozes: number("snoozes") ?? 0,
    pieces: number("pieces") ?? 0,
    dueAtMs: number("dueAtMs"),
  };
};

const seatNumbers = (value: Value | undefined): ReadonlySet<number> =>
  new Set(value instanceof Set ? [...value].map(Number) : []);

export const doneIn = (bucket: Item | undefined): ReadonlySet<number> => seatNumbers(bucket?.["done"]);
export const failedSeatsIn = (bucket: Item | undefined): ReadonlySet<number> =>
  seatNumbers(bucket?.["failed"]);

/** How many of the bucket's shards are over, and whether that is all of them. */
export const bucketCounts = (
  bucket: Item | undefined,
  {
    stride,
    bucket: number,
    total,
  }: { readonly stride: number; readonly bucket: number; readonly total: number },
): { readonly done: number; readonly failed: number; readonly full: boolean } => {
  const [done, failed] = [doneIn(bucket).size, failedSeatsIn(bucket).size];
  return { done, failed, full: done + failed === bucketSize(stride, number, total) };
};
