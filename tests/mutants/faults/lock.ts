import { faultsIn } from "../planted.ts";

const TOO_MANY = "more runs at once than may be";
const LOST = "an occurrence without an end";
const STUCK = "the lock lists what is over";

/**
 * The conditions on the overlap lock, clause by clause.
 *
 * Not planted, because it changes nothing: `exists(its)` left out of the nudge of a holder. Its other two clauses compare
 * names inside the same entry, and a comparison with an absent attribute is false.
 */
export const lockFaults = faultsIn("lib/core/runs/lock.ts", [
  [
    "a claim goes over its own entry",
    'const free = [absent(mine), roomFor(max), absent("w")];',
    'const free = [roomFor(max), absent("w")];',
    "two deliveries claim one slot",
  ],
  [
    "a claim where there is no room",
    'const free = [absent(mine), roomFor(max), absent("w")];',
    'const free = [absent(mine), absent("w")];',
    TOO_MANY,
  ],
  [
    "a claim past those who wait",
    'const free = [absent(mine), roomFor(max), absent("w")];',
    "const free = [absent(mine), roomFor(max)];",
    "who waits longest goes first",
  ],
  [
    "room for one more than may be (<= for <)",
    'const roomFor = (max: number) => any(absent("held"), lessThan("held", max));',
    'const roomFor = (max: number) => any(absent("held"), lessThan("held", max + 1));',
    TOO_MANY,
  ],
  [
    "a lock that nobody has held yet is taken for full",
    'const roomFor = (max: number) => any(absent("held"), lessThan("held", max));',
    'const roomFor = (max: number) => lessThan("held", max);',
    LOST,
  ],
  [
    "a claim of a slot that is not newer than the last one",
    'condition: newestOnly ? all(...free, any(absent("top"), lessThan("top", slotKey))) : all(...free),',
    "condition: all(...free),",
    "a slot delivered again claims again",
  ],
  [
    "a claim of the last claimed slot itself (<= for <)",
    'any(absent("top"), lessThan("top", slotKey))',
    'any(absent("top"), lessThan("top", slotKey.concat("~")))',
    "a slot delivered again claims again",
  ],
  [
    "the first claim of all is refused for its age",
    'any(absent("top"), lessThan("top", slotKey))',
    'lessThan("top", slotKey)',
    "a claim costs one write",
  ],
  [
    "a claim does not store that it is the newest",
    '      ...(newestOnly ? [set("top", slotKey)] : []),\n',
    "",
    "a slot delivered again claims again",
  ],
  [
    "a claim by hand moves the newest slot",
    '...(newestOnly ? [set("top", slotKey)] : []),',
    'set("top", slotKey),',
    "a live slot is judged by the key of a run by hand",
  ],
  [
    "a claim does not count its holder",
    '      set(mine, holderValue(contender, token, nowMs)),\n      increment("held", 1),\n',
    "      set(mine, holderValue(contender, token, nowMs)),\n",
    TOO_MANY,
  ],
  [
    "a release without the epoch",
    'condition: equals([holderAttribute(slotKey), "epoch"], epoch),\n',
    "condition: not(absent(holderAttribute(slotKey))),\n",
    TOO_MANY,
  ],
  [
    "a release without a condition",
    '  condition: equals([holderAttribute(slotKey), "epoch"], epoch),\n',
    "",
    TOO_MANY,
  ],
  [
    "a release does not count",
    'changes: [remove(holderAttribute(slotKey)), increment("held", -1)],',
    "changes: [remove(holderAttribute(slotKey))],",
    LOST,
  ],
  ["a waiter that is gone is taken for removed", '  condition: contains("w", text),\n', "", STUCK],
  [
    "a hand-over to one that does not wait",
    'condition: all(contains("w", waiter.text), roomFor(hand.max), absent(its)),',
    "condition: all(roomFor(hand.max), absent(its)),",
    STUCK,
  ],
  [
    "a hand-over where there is no room",
    'condition: all(contains("w", waiter.text), roomFor(hand.max), absent(its)),',
    'condition: all(contains("w", waiter.text), absent(its)),',
    TOO_MANY,
  ],
  [
    "a hand-over over an entry of its own",
    'condition: all(contains("w", waiter.text), roomFor(hand.max), absent(its)),',
    'condition: all(contains("w", waiter.text), roomFor(hand.max)),',
    "the count of holders is not that of the entries",
  ],
  [
    "a hand-over leaves its waiter in line",
    '      increment("held", 1),\n      deleteMembers("w", waiter.text),',
    '      increment("held", 1),',
    STUCK,
  ],
  [
    "a holder joins those who wait",
    "condition: all(absent(holderAttribute(slotKey)), ...spellings),",
    "condition: all(...spellings),",
    "a run waits for itself",
  ],
  [
    "a run joins under two spellings",
    "condition: all(absent(holderAttribute(slotKey)), ...spellings),",
    "condition: absent(holderAttribute(slotKey)),",
    "one entry per run among those who wait",
  ],
  [
    "a live slot joins beside its run by hand",
    "const CLASSES: readonly Class[] = [0, 1, 2];",
    "const CLASSES: readonly Class[] = [0];",
    "one entry per run among those who wait",
  ],
  [
    "a nudge of another attempt set's holder",
    'equals([its, "epoch"], holder.epoch), equals([its, "sentAtMs"], holder.sentAtMs)',
    'equals([its, "sentAtMs"], holder.sentAtMs)',
    "two passes send the same run",
  ],
  [
    "a nudge of a holder that somebody has just nudged",
    'equals([its, "epoch"], holder.epoch), equals([its, "sentAtMs"], holder.sentAtMs)',
    'equals([its, "epoch"], holder.epoch)',
    "two passes send the same run",
  ],
  [
    "waiters go in the order of their slots alone",
    "return [...texts].sort().map(",
    "return [...texts].sort((a: string, b: string) => (a.slice(2) < b.slice(2) ? -1 : 1)).map(",
    "live goes before by hand before backfill",
  ],
]);
