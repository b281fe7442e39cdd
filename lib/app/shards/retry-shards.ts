import { InvalidInput } from "../../core/errors.ts";
import { bucketKey } from "../../core/items.ts";
import type { FanOut } from "../../core/shards/fan-out.ts";
import { failedSeatsIn } from "../../core/shards/seats.ts";
import { placeOfShard } from "../../core/shards/shards.ts";
import type { Deps } from "../deps.ts";
import { readDeadShards } from "./dead-shards.ts";

/** They are noted in the run's record, which must stay small. */
const MOST = 20;

const refused = (message: string, hint: string): InvalidInput =>
  new InvalidInput("no_such_shard", message, { field: "shard", hint });

/**
 * The numbers of failed shards, by their keys.
 * @throws InvalidInput when one of them has not failed, or when they are more than 20
 */
export const chosenShards = async (
  deps: Pick<Deps, "table">,
  fan: FanOut,
  keys: readonly string[],
): Promise<readonly number[]> => {
  if (keys.length > MOST) {
    throw refused(
      `${keys.length} shards are too many to name`,
      `name at most ${MOST}, or none for all that failed`,
    );
  }
  const dead = await readDeadShards(deps, fan);
  return Promise.all(
    keys.map(async (wanted) => {
      const found = dead.find(({ index, key }) => (key ?? String(index)) === wanted);
      if (found !== undefined && (await hasFailed(deps, fan, found.index))) return found.index;
      throw refused(`no shard "${wanted}" has failed`, "`belfry show <run>` names those that did");
    }),
  );
};

/** One that was tried again since, and is done by now, has left its error behind. */
const hasFailed = async ({ table }: Pick<Deps, "table">, fan: FanOut, index: number): Promise<boolean> => {
  const place = placeOfShard(index, fan.total);
  const bucket = await table.get(bucketKey({ ...fan, ...place }), { consistent: true });
  return failedSeatsIn(bucket).has(place.seat);
};
