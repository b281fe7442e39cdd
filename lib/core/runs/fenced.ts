import type { Occurrence } from "../identity.ts";
import { expiresAtS, sideKey } from "../items.ts";
import { absent, all, any, type Change, equals, lessThan, set, type Write } from "../write.ts";

/**
 * What the attempts of a run hand on to one another beside its record: the checkpoint, and the effects of `once`.
 * Each is an item that keeps the fence of the attempt that wrote it last, and refuses an older one.
 */

/** Which write of which attempt: a later attempt has a higher fence, a later write of the same one a higher `n`. */
export interface Turn {
  readonly fence: number;
  /** From 1. */
  readonly n: number;
}

/**
 * Takes the item over for this attempt and, with changes, writes it. From then on nothing older can write it: neither
 * an attempt whose lease is over, nor a late copy of an earlier call. Without changes it is a read that nobody can
 * falsify afterwards.
 */
export const takeFenced = (
  kept: { readonly occurrence: Occurrence; readonly name: string; readonly nowMs: number },
  { fence, n }: Turn,
  changes: readonly Change[] = [],
): Write => ({
  key: sideKey(kept.occurrence, kept.name),
  condition: any(absent("fence"), lessThan("fence", fence), all(equals("fence", fence), lessThan("n", n))),
  changes: [set("fence", fence), set("n", n), set("expiresAtS", expiresAtS(kept.nowMs)), ...changes],
});
