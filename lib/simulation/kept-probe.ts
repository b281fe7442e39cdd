import type { Item, Key } from "../core/write.ts";

/** What no write may ever do to what the attempts of a run hand on: the handlers save numbers that only rise. */
export const keptViolation = ({ sk }: Key, before: Item | undefined, after: Item): string | undefined => {
  if (before === undefined || after["fence"] === undefined) return undefined;
  if (Number(after["fence"]) < Number(before["fence"])) return `${sk}: written by an older attempt`;
  if (before["done"] === true && after["value"] !== before["value"]) {
    return `${sk}: a recorded effect changed from ${before["value"]} to ${after["value"]}`;
  }
  if (sk.endsWith("#checkpoint") && Number(after["value"] ?? 0) < Number(before["value"] ?? 0)) {
    return `${sk}: went back from ${before["value"]} to ${after["value"]}`;
  }
  return undefined;
};

/** A run that goes on has used no attempt, and is asked for again. */
export const pieceViolation = (before: Item | undefined, after: Item): string | undefined => {
  const [was, is] = [Number(before?.["cont"] ?? 0), Number(after["cont"] ?? 0)];
  if (is <= was) return undefined;
  const goesOn = is === was + 1 && after["st"] === "queued" && before?.["st"] === "running";
  const sameHands = after["fence"] === before?.["fence"] && after["ep"] === before?.["ep"];
  if (goesOn && sameHands && after["attempts"] === 0 && after["crashes"] === 0) return undefined;
  return `${after["sk"]}: went on from ${before?.["st"]} to ${after["st"]} with ${after["attempts"]} attempts used`;
};
