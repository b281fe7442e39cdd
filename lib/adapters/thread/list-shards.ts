import { InvalidInput } from "../../core/errors.ts";
import { type ListedShard, shardReader } from "../../core/shards/shards.ts";
import type { AttemptServices } from "../../ports/attempts.ts";

/** So many go to the process around the thread at a time: enough to make the crossing cheap. */
const CHUNK = 512;

const isIterable = (value: object): value is Iterable<unknown> => Symbol.iterator in value;
const isAsyncIterable = (value: object): value is AsyncIterable<unknown> => Symbol.asyncIterator in value;

const entriesOf = (source: unknown): AsyncIterable<unknown> | Iterable<unknown> => {
  if (typeof source === "object" && source !== null && (isAsyncIterable(source) || isIterable(source))) {
    return source;
  }
  const instead =
    "return an array, or write it as a generator: shards: async function* (ctx) { yield 'one'; }";
  throw new InvalidInput("bad_list", `shards: what the function returns is no list; ${instead}`, {
    field: "shards",
  });
};

/**
 * Hands on what the job's code lists, as it comes; answers how many there are. The list is never held as a whole.
 * @throws InvalidInput for an entry that is no shard; the signal's reason when the attempt must end
 */
export const listShards = async (
  source: unknown,
  {
    services,
    signal,
  }: { readonly services: Pick<AttemptServices, "addShards">; readonly signal: AbortSignal },
): Promise<number> => {
  const read = shardReader();
  let chunk: ListedShard[] = [];
  let count = 0;
  const handOn = async (): Promise<void> => {
    if (chunk.length > 0) await services.addShards(chunk);
    chunk = [];
  };
  for await (const entry of entriesOf(source)) {
    signal.throwIfAborted();
    chunk.push(read(entry));
    count += 1;
    if (chunk.length === CHUNK) await handOn();
  }
  await handOn();
  return count;
};
