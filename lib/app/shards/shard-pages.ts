import { expiresAtS, pageKey } from "../../core/items.ts";
import type { Json } from "../../core/json.ts";
import type { FanOut } from "../../core/shards/fan-out.ts";
import {
  bucketCount,
  bucketsOf,
  indexOfShard,
  type ListedShard,
  PER_STRIDE,
  placeOfShard,
  strideSize,
} from "../../core/shards/shards.ts";
import { set } from "../../core/write.ts";
import { eachAtOnce } from "../at-once.ts";
import type { Deps } from "../deps.ts";

type PageDeps = Pick<Deps, "table" | "clock">;

/** A shard with its number. */
export interface NumberedShard {
  readonly index: number;
  /** Absent in a run that has its shards by number. */
  readonly key?: string;
  readonly input?: Json;
}

const PAGES_AT_ONCE = 16;

type PageEntry = readonly [key: string, input?: Json];

/** The shards of a complete stride, or of the last one, stored as the job listed them: a page for each bucket. */
export const storeStride = async (
  { table, clock }: PageDeps,
  { occurrence, plan }: Pick<FanOut, "occurrence" | "plan">,
  { stride, shards }: { readonly stride: number; readonly shards: readonly ListedShard[] },
): Promise<void> => {
  const total = stride * PER_STRIDE + shards.length;
  const buckets = bucketCount(stride, total);
  await eachAtOnce(bucketsOf(stride, total), PAGES_AT_ONCE, async (bucket) => {
    const entries = shards
      .filter((_, within) => within % buckets === bucket)
      .map(({ key, input }): PageEntry => (input === undefined ? [key] : [key, input]));
    await table.write({
      key: pageKey({ occurrence, plan, stride, bucket }),
      changes: [set("v", JSON.stringify(entries)), set("expiresAtS", expiresAtS(clock.nowMs()))],
    });
  });
};

const readPage = async (
  { table }: PageDeps,
  { occurrence, plan }: FanOut,
  place: { readonly stride: number; readonly bucket: number },
): Promise<readonly PageEntry[]> => {
  const item = await table.get(pageKey({ occurrence, plan, ...place }), { consistent: true });
  const text = item?.["v"];
  return typeof text === "string" ? (JSON.parse(text) as PageEntry[]) : [];
};

const shardOf = (index: number, entry: PageEntry | undefined): NumberedShard => {
  if (entry === undefined) throw new Error(`shard ${index} is not stored any more`);
  const [key, input] = entry;
  return input === undefined ? { index, key } : { index, key, input };
};

/** Of a run whose shards were listed. */
export const readShard = async (deps: PageDeps, fan: FanOut, index: number): Promise<NumberedShard> => {
  const place = placeOfShard(index, fan.total);
  const page = await readPage(deps, fan, place);
  return shardOf(index, page[place.seat]);
};

/** The stride's shards in order; those by number are not stored anywhere. */
export const readStride = async (
  deps: PageDeps,
  fan: FanOut,
  stride: number,
): Promise<readonly NumberedShard[]> => {
  const { total, listed } = fan;
  if (!listed) {
    const first = stride * PER_STRIDE;
    return Array.from({ length: strideSize(stride, total) }, (_, within) => ({ index: first + within }));
  }
  const shards: NumberedShard[] = [];
  await eachAtOnce(bucketsOf(stride, total), PAGES_AT_ONCE, async (bucket) => {
    const page = await readPage(deps, fan, { stride, bucket });
    shards.push(...page.map((entry, seat) => shardOf(indexOfShard({ stride, bucket, seat }, total), entry)));
  });
  if (shards.length !== strideSize(stride, total)) throw new Error("not all shards are stored any more");
  return shards.sort((left, right) => left.index - right.index);
};
