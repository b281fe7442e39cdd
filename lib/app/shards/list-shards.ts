import { type FanOut, keepList, phaseOf } from "../../core/shards/fan-out.ts";
import { type ListedShard, PER_STRIDE } from "../../core/shards/shards.ts";
import type { Item } from "../../core/write.ts";
import type { AttemptEnd, AttemptServices, RunningAttempt } from "../../ports/attempts.ts";
import { type Began, INPUT_GONE, requestOf } from "../path/attempt.ts";
import { repeated } from "../path/repeated.ts";
import type { WorkDeps } from "../path/visit.ts";
import { leaseLost } from "./lease-lost.ts";
import { type NumberedShard, storeStride } from "./shard-pages.ts";

interface Listing {
  readonly services: AttemptServices;
  goOn(): void;
  /** The job's code is at it; undefined = not any more. */
  began(running: RunningAttempt | undefined): void;
}

/** Shards by their stride, as far as this attempt has them in its memory. */
export type Remembered = ReadonlyMap<number, readonly NumberedShard[]>;

/** RUN with its list; or how the listing ended instead. */
type Listed = { readonly run: Item; readonly remembered?: Remembered } | { readonly end: AttemptEnd };

export const listOf = async (deps: WorkDeps, began: Began, listing: Listing): Promise<Listed> => {
  const { visit, lease } = began;
  if (phaseOf(lease.item) !== "list") return { run: lease.item };
  const count = visit.job.shards?.count;
  if (count !== undefined) return { run: await keep(deps, began, { total: count, listed: false }) };
  const request = await requestOf(deps, began, { kind: "list" });
  if (request === undefined) return { end: INPUT_GONE };
  const book = bookOf(deps, began, listing);
  const running = deps.attempts.start(request, { ...listing.services, addShards: book.add });
  listing.began(running);
  const end = await running.ended;
  listing.began(undefined);
  if (end.kind !== "returned") return { end };
  const total = await book.close();
  return { run: await keep(deps, began, { total, listed: true }), remembered: book.remembered };
};

/** So many characters of JSON need not be read again to be sent; what is more would weigh on a small worker. */
const MOST_REMEMBERED = 16 * 1024 * 1024;

/**
 * Stores what the job lists, stride by stride, under this attempt's fence: nothing of it counts before the list is
 * complete, so an attempt that fails has left nothing behind, and the next one makes a list of its own.
 */
const bookOf = (deps: WorkDeps, { holding }: Began, { goOn }: Listing) => {
  const list = { occurrence: holding.occurrence, plan: holding.fence };
  const remembered = new Map<number, readonly NumberedShard[]>();
  let memory = MOST_REMEMBERED;
  let stride = 0;
  let held: ListedShard[] = [];
  const store = async (shards: readonly ListedShard[]): Promise<void> => {
    goOn();
    const first = stride * PER_STRIDE;
    memory -= JSON.stringify(shards).length;
    if (memory >= 0) {
      remembered.set(
        stride,
        shards.map((shard, within) => ({ index: first + within, ...shard })),
      );
    }
    await storeStride(deps, list, { stride: stride++, shards });
  };
  return {
    remembered,
    add: async (shards: readonly ListedShard[]): Promise<void> => {
      held.push(...shards);
      while (held.length >= PER_STRIDE) {
        const full = held.slice(0, PER_STRIDE);
        held = held.slice(PER_STRIDE);
        await store(full);
      }
    },
    /** Answers how many there are. */
    close: async (): Promise<number> => {
      const total = stride * PER_STRIDE + held.length;
      if (held.length > 0) await store(held);
      return total;
    },
  };
};

const keep = async (
  deps: WorkDeps,
  { holding, visit }: Began,
  list: Pick<FanOut, "total" | "listed">,
): Promise<Item> => {
  const { written, item } = await repeated(() => deps.table.write(keepList(holding, list)));
  const mine = written || (item?.["own"] === visit.token && item["plan"] === holding.fence);
  if (mine && item !== undefined) return item;
  throw leaseLost();
};
