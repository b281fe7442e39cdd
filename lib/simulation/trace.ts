import { type Item, isMap, type Write } from "../core/write.ts";
import type { WriteAnswer } from "../ports/table.ts";

/** Something that happened in a story. */
export interface Step {
  readonly atMs: number;
  /** Of the simulated deployment. */
  readonly process: string;
  readonly what: string;
  /** The item, the run or the message that it is about. */
  readonly about: string;
}

const SHOWN = ["st", "ph", "ep", "fence", "own", "attempts", "crashes", "reason", "held", "w"] as const;

const shown = (value: unknown): string => {
  if (value instanceof Set) return `{${[...value].join(" ")}}`;
  return isMap(value as never) ? JSON.stringify(value) : String(value);
};

const itemText = (item: Item | undefined): string =>
  SHOWN.flatMap((name) => (item?.[name] === undefined ? [] : [`${name}=${shown(item[name])}`])).join(" ");

/** The item, and which entries of it the write is about: a lock and a bucket have one for each run or shard. */
export const aboutOf = ({ key, changes }: Write): string => {
  const entries = changes.flatMap(({ path }) => {
    const [name = ""] = typeof path === "string" ? [path] : path;
    return name.includes("#") ? [name] : [];
  });
  return [`${key.pk} ${key.sk}`, ...new Set(entries)].join(" ");
};

/** What a write did, or what refused it. */
export const answerText = ({ written, item }: WriteAnswer): string =>
  `${written ? "writes" : "is refused by"} ${itemText(item)}`;
