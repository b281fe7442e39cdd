import type { Alert } from "../alerts/alert.ts";
import { expiresAtS, flipKey, healthKey, ITEM_VERSION } from "../items.ts";
import { absent, equals, type Item, remove, set, type Write } from "../write.ts";
import type { Flip, Health } from "./health.ts";

/** A job's health as it is stored, with what must still be told of its last flips. */
export interface StoredHealth {
  readonly health: Health;
  /** Of the write; one that was decided by an older one is refused. */
  readonly revision: number;
  readonly untold: readonly Flip[];
}

export const storedHealth = (item: Item | undefined): StoredHealth | undefined => {
  if (typeof item?.["health"] !== "string") return undefined;
  return {
    health: JSON.parse(item["health"]) as Health,
    revision: Number(item["rev"]),
    untold: typeof item["untold"] === "string" ? (JSON.parse(item["untold"]) as Flip[]) : [],
  };
};

/**
 * The flips stand in the same write as the health that they lead to, until they are told: whatever happens in between,
 * none is lost, and none can be made a second time.
 */
export const writeHealth = (
  subject: string,
  {
    seenRevision,
    health,
    flips,
  }: { seenRevision: number | undefined; health: Health; flips: readonly Flip[] },
): Write => ({
  key: healthKey(subject),
  condition: seenRevision === undefined ? absent("rev") : equals("rev", seenRevision),
  changes: [
    set("v", ITEM_VERSION),
    set("rev", (seenRevision ?? 0) + 1),
    set("health", JSON.stringify(health)),
    flips.length === 0 ? remove("untold") : set("untold", JSON.stringify(flips)),
  ],
});

/** Once its flips are recorded, and told. */
export const forgetUntold = (subject: string, revision: number): Write => ({
  key: healthKey(subject),
  condition: equals("rev", revision),
  changes: [set("rev", revision + 1), remove("untold")],
});

/** The record of a flip, for the history; the same again if it is written twice. */
export const writeFlip = (subject: string, flip: Flip): Write => ({
  key: flipKey(subject, flip.n),
  changes: [
    set("v", ITEM_VERSION),
    set("flip", JSON.stringify(flip)),
    set("atMs", flip.atMs),
    set("expiresAtS", expiresAtS(flip.atMs)),
  ],
});

export const flipIn = (item: Item): Flip => JSON.parse(String(item["flip"])) as Flip;

export const alertsIn = (flips: readonly Flip[]): readonly Alert[] =>
  flips.map(({ alert }) => alert).filter((alert) => alert !== undefined);
