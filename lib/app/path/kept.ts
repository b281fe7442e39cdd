import { Conflict } from "../../core/errors.ts";
import type { Occurrence } from "../../core/identity.ts";
import { CHECKPOINT, effectName, effectRange } from "../../core/items.ts";
import type { Json } from "../../core/json.ts";
import { takeFenced } from "../../core/runs/fenced.ts";
import { checkEffectCount, type Effect, MAX_EFFECTS } from "../../core/runs/kept.ts";
import { type Change, type Item, remove, set } from "../../core/write.ts";
import type { AttemptServices } from "../../ports/attempts.ts";
import { repeated } from "./repeated.ts";
import type { WorkDeps } from "./visit.ts";

type KeptDeps = Pick<WorkDeps, "table" | "clock">;

/** Whose things they are: a run's, or with a scope one of its shards'. */
export interface Keeper {
  readonly occurrence: Occurrence;
  /** Of the attempt; rises from one to the next. */
  readonly fence: number;
  /** What the names of all that is kept begin with. */
  readonly scope?: string;
}

/** Takes an item of the run over, with or without changes; see lib/core/runs/fenced.ts. */
type Take = (name: string, changes?: readonly Change[]) => Promise<Item>;

const taker = ({ table, clock }: KeptDeps, { occurrence, fence, scope = "" }: Keeper): Take => {
  let turns = 0;
  return (name, changes) => {
    const n = ++turns;
    return repeated(async () => {
      const kept = { occurrence, name: scope + name, nowMs: clock.nowMs() };
      const answer = await table.write(takeFenced(kept, { fence, n }, changes));
      const item = answer.item ?? {};
      // Refused by this very write, or a later one of ours: the answer of an earlier copy was lost.
      if (answer.written || (item["fence"] === fence && Number(item["n"]) >= n)) return item;
      throw new Conflict("lease_lost", "another attempt has this run by now: nothing was saved");
    });
  };
};

const jsonIn = (item: Item): Json | undefined => {
  const text = item["value"];
  return typeof text === "string" ? (JSON.parse(text) as Json) : undefined;
};

/** The first attempt ever of a run finds nothing, and need not look. */
const isFirst = ({ fence }: Keeper): boolean => fence === 1;

type Checkpoint = Pick<AttemptServices, "loadState" | "saveState">;

const makeCheckpoint = (take: Take, first: boolean): Checkpoint => {
  /** What is stored; undefined = this attempt does not know. */
  let stored: { readonly state?: Json } | undefined = first ? {} : undefined;
  let last: Promise<unknown> = Promise.resolve();
  /** One at a time, in the order of the calls: the last one called is the one that stands. */
  const inTurn = <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
    const answer = last.then(act);
    last = answer.catch(() => undefined);
    return answer;
  };
  const load = async (): Promise<Json | undefined> => {
    if (stored === undefined) {
      const state = jsonIn(await take(CHECKPOINT));
      stored = state === undefined ? {} : { state };
    }
    return stored.state;
  };
  const save = async (state: Json): Promise<void> => {
    stored = undefined;
    await take(CHECKPOINT, [set("value", JSON.stringify(state))]);
    stored = { state };
  };
  return { loadState: () => inTurn(load), saveState: (state) => inTurn(() => save(state)) };
};

type Effects = Pick<AttemptServices, "recallEffect" | "recordEffect">;

const effectIn = (item: Item): Effect | undefined => {
  if (item["done"] !== true) return undefined;
  if (typeof item["refused"] === "string") return { refused: item["refused"] };
  const result = jsonIn(item);
  return result === undefined ? {} : { result };
};

const changesOf = (effect: Effect): readonly Change[] => {
  const [kept, value, other] =
    "refused" in effect
      ? (["refused", effect.refused, "value"] as const)
      : ([
          "value",
          effect.result === undefined ? undefined : JSON.stringify(effect.result),
          "refused",
        ] as const);
  return [set("done", true), value === undefined ? remove(kept) : set(kept, value), remove(other)];
};

const makeEffects = (
  { table }: KeptDeps,
  { occurrence, scope, take, first }: Pick<Keeper, "occurrence" | "scope"> & { take: Take; first: boolean },
): Effects => {
  const known = new Map<string, Effect>();
  let keys: Promise<Set<string>> | undefined;
  /** Every key that the run has used so far. It may be some moments old: the limit bounds what is stored, no more. */
  const readKeys = async (): Promise<Set<string>> => {
    if (first) return new Set();
    const range = effectRange(occurrence, scope);
    const items = await table.query({ ...range, limit: MAX_EFFECTS });
    return new Set(items.map((item) => String(item["sk"]).slice(range.first.length)));
  };
  const used = (): Promise<Set<string>> => {
    keys ??= readKeys().catch((error: unknown) => {
      keys = undefined;
      throw error;
    });
    return keys;
  };
  return {
    recallEffect: async (key) => {
      const mine = known.get(key);
      if (mine !== undefined) return mine;
      const all = await used();
      if (!all.has(key)) checkEffectCount(all.size);
      all.add(key);
      if (first) return undefined;
      const found = effectIn(await take(effectName(key)));
      if (found !== undefined) known.set(key, found);
      return found;
    },
    recordEffect: async (key, effect) => {
      await take(effectName(key), changesOf(effect));
      known.set(key, effect);
    },
  };
};

/** What this attempt of a run takes over from earlier ones, and leaves to later ones. */
export const makeKept = (deps: KeptDeps, keeper: Keeper): Checkpoint & Effects => {
  const take = taker(deps, keeper);
  const first = isFirst(keeper);
  return {
    ...makeCheckpoint(take, first),
    ...makeEffects(deps, { ...keeper, take, first }),
  };
};

export type Kept = ReturnType<typeof makeKept>;
