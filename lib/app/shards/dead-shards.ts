import type { Occurrence } from "../../core/identity.ts";
import { deadShardName, deadShardRange } from "../../core/items.ts";
import type { Json } from "../../core/json.ts";
import type { ErrorFacts } from "../../ports/attempts.ts";
import type { Deps } from "../deps.ts";
import { readAside, storeAside } from "../path/side.ts";
import type { NumberedShard } from "./shard-pages.ts";

/** Why a shard failed, kept beside its run: as a dead run's record is, for whoever has to look at it. */
export interface DeadShard extends NumberedShard {
  readonly error: ErrorFacts;
  /** Attempts of it that failed, or whose worker was lost. */
  readonly attempts: number;
  readonly atMs: number;
}

interface ShardList {
  readonly occurrence: Occurrence;
  readonly plan: number;
}

/** Written before its bucket says that it failed. */
export const storeDeadShard = (
  { table }: Pick<Deps, "table">,
  { occurrence, plan }: ShardList,
  dead: DeadShard,
): Promise<void> => {
  const { index, key, input, error, attempts, atMs } = dead;
  const value: Json = {
    index,
    ...(key === undefined ? {} : { key }),
    ...(input === undefined ? {} : { input }),
    error: { ...error },
    attempts,
    atMs,
  };
  return storeAside(table, occurrence, deadShardName(plan, index), value, atMs);
};

export const readDeadShard = async (
  { table }: Pick<Deps, "table">,
  { occurrence, plan }: ShardList,
  index: number,
): Promise<DeadShard | undefined> => {
  const value = await readAside(table, occurrence, deadShardName(plan, index));
  return value as unknown as DeadShard | undefined;
};

/** In order of their index; also those that were tried again since, and may be done by now. */
export const readDeadShards = async (
  { table }: Pick<Deps, "table">,
  { occurrence, plan }: ShardList,
): Promise<readonly DeadShard[]> => {
  const items = await table.query(deadShardRange(occurrence, plan));
  return items.flatMap((item) =>
    typeof item["value"] === "string" ? [JSON.parse(item["value"]) as DeadShard] : [],
  );
};
