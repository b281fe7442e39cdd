import type { Occurrence } from "../identity.ts";
import { badKeyOf, badMonthOf, expiresAtS, ITEM_VERSION } from "../items.ts";
import { type Change, type Item, set, setOnce, type Value } from "../write.ts";
import type { Trigger } from "./message.ts";

/** A run that ends, and when. */
interface Ending {
  readonly occurrence: Occurrence;
  readonly atMs: number;
}

/** Listed in the sparse index: everything that a person may have to look at. */
export const listedAsBad = ({ occurrence, atMs }: Ending): readonly Change[] => [
  set("badMonth", badMonthOf(atMs)),
  set("badKey", badKeyOf(atMs, occurrence)),
];

/** What every record carries from its first write on; a later writer leaves it as it is. */
export const born = (nowMs: number, trigger: Trigger): readonly Change[] => [
  setOnce("v", ITEM_VERSION),
  setOnce("trigger", trigger),
  setOnce("claimedAtMs", nowMs),
  setOnce("expiresAtS", expiresAtS(nowMs)),
];

export const optional = (name: string, value: Value | undefined): readonly Change[] =>
  value === undefined ? [] : [set(name, value)];

/** Of the last attempt that began; undefined = none did. */
export const fenceOf = (run: Item | undefined): number | undefined =>
  run?.["fence"] === undefined ? undefined : Number(run["fence"]);
