import { faultsIn } from "../planted.ts";

const STALE = "an attempt that lost its lease changes what the next one goes on from";
const AGAIN = "an effect that was recorded is done again";
const LOST = "what was saved is there for the next attempt";

const fencedFaults = faultsIn("lib/core/runs/fenced.ts", [
  [
    "a stale attempt saves over a newer one",
    '  condition: any(absent("fence"), lessThan("fence", fence), all(equals("fence", fence), lessThan("n", n))),\n',
    "",
    STALE,
  ],
  [
    "a late copy of an earlier save undoes a later one",
    'all(equals("fence", fence), lessThan("n", n))',
    'equals("fence", fence)',
    LOST,
  ],
  [
    "a save whose attempt has saved before is refused",
    'any(absent("fence"), lessThan("fence", fence), all(equals("fence", fence), lessThan("n", n)))',
    'any(absent("fence"), lessThan("fence", fence))',
    LOST,
  ],
]);

const keptFaults = faultsIn("lib/app/path/kept.ts", [
  [
    "every attempt is taken for the first",
    "const isFirst = ({ fence }: Keeper): boolean => fence === 1;",
    "const isFirst = ({ fence }: Keeper): boolean => fence > 0;",
    LOST,
  ],
  [
    "a saved state is kept in memory alone",
    '    await take(CHECKPOINT, [set("value", JSON.stringify(state))]);\n',
    "",
    LOST,
  ],
  [
    "a recorded effect is not told",
    '  if (item["done"] !== true) return undefined;',
    '  if (item["done"] !== false) return undefined;',
    AGAIN,
  ],
  [
    "a recorded effect is kept in memory alone",
    "      await take(effectName(key), changesOf(effect));\n",
    "",
    AGAIN,
  ],
  [
    "a save whose answer was lost is stale",
    '      if (answer.written || (item["fence"] === fence && Number(item["n"]) >= n)) return item;',
    "      if (answer.written) return item;",
    "a save knows its own success",
  ],
  [
    "a stale save counts as saved",
    '      if (answer.written || (item["fence"] === fence && Number(item["n"]) >= n)) return item;',
    "      return item;",
    STALE,
  ],
  [
    "there is no end of keys",
    "      if (!all.has(key)) checkEffectCount(all.size);\n",
    "",
    "at most 100 keys a run",
  ],
]);

const pieceFaults = faultsIn("lib/core/runs/transitions.ts", [
  [
    "a piece uses an attempt",
    '    increment("cont", 1),\n',
    '    increment("cont", 1),\n    increment("fence", 1),\n',
    "a piece is no attempt, and changes no fence",
  ],
  [
    "what went wrong before is charged to the next piece",
    '    set("attempts", 0),\n    set("crashes", 0),\n    set("tries", piece.tries),\n',
    '    set("tries", piece.tries),\n',
    "each piece has the attempts of a run",
  ],
]);

const repeatedFaults = faultsIn("lib/app/path/repeated.ts", [
  [
    "a result is given up at the first refusal to answer",
    "const TRIES = 3;",
    "const TRIES = 1;",
    "work that is done is not repeated for a lost answer",
  ],
]);

export const keepingFaults = [...fencedFaults, ...keptFaults, ...pieceFaults, ...repeatedFaults];
