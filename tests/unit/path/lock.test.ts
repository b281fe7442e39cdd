import { describe, expect, test } from "vitest";
import {
  type Contender,
  claimLock,
  handOver,
  holdersOf,
  joinWaiters,
  nudgeHolder,
  releaseHolder,
  removeWaiter,
  waitersOf,
} from "../../../lib/core/runs/lock.ts";
import { applied, holds, type Item, type Write } from "../../../lib/core/write.ts";
import { at } from "../../support/path.ts";

const A = at("job", "2026-10-25T00:58:00Z").slotKey;
const B = at("job", "2026-10-25T00:59:00Z").slotKey;
const C = at("job", "2026-10-25T01:00:00Z").slotKey;

const contender = (slotKey: string, changes: Partial<Contender> = {}): Contender => ({
  occurrence: { subject: "job", slotKey },
  epoch: 1,
  class: 0,
  ...changes,
});
const holder = (slotKey: string, epoch = 1, sentAtMs = 5): Item => ({
  [`h#${slotKey}`]: { epoch, owner: "x", sentAtMs, class: 0 },
});
const waiter = (slotKey: string, epoch = 1) =>
  ({ slotKey, epoch, class: 0, text: `0~${slotKey}~${epoch}` }) as const;
const w = (...texts: readonly string[]): Item => ({ w: new Set(texts) });

const claimOf = (newestOnly: boolean, max = 1): Write =>
  claimLock({ contender: contender(B), token: "me", nowMs: 7, max, newestOnly });
const handing = handOver("job", waiter(B), { token: "me", nowMs: 7, max: 1 });

type Row = readonly [
  what: string,
  write: Write,
  accepted: readonly (Item | undefined)[],
  refused: readonly (Item | undefined)[],
];

const rows: readonly Row[] = [
  [
    "the claim of a new slot needs room, nobody waiting, and no claim of a slot as new",
    claimOf(true),
    [undefined, {}, { held: 0 }, { held: 0, top: A }],
    [
      { held: 1 },
      { held: 0, top: B },
      { held: 0, top: C },
      { held: 0, ...w(`1~${A}~1`) },
      { held: 0, ...holder(B) },
    ],
  ],
  [
    "a claim that knows its record needs room, and nobody waiting",
    claimOf(false),
    [undefined, { held: 0, top: B }, { held: 0, top: C }],
    [{ held: 1 }, { held: 0, ...w(`1~${A}~1`) }, { held: 0, ...holder(B) }],
  ],
  ["a claim among two finds room beside one", claimOf(false, 2), [{ held: 1, ...holder(A) }], [{ held: 2 }]],
  [
    "a release is for the entry of its own attempt set",
    releaseHolder({ subject: "job", slotKey: B }, 1),
    [{ held: 1, ...holder(B) }],
    [undefined, {}, { held: 1, ...holder(A) }, { held: 1, ...holder(B, 2) }],
  ],
  [
    "a waiter is removed by its spelling",
    removeWaiter("job", `0~${B}~1`),
    [w(`0~${B}~1`)],
    [undefined, {}, w(`1~${B}~1`), w(`0~${B}~2`)],
  ],
  [
    "the lock is handed over where there is room, to one that waits and does not hold",
    handing,
    [{ held: 0, ...w(`0~${B}~1`) }, w(`0~${B}~1`, `0~${C}~1`)],
    [
      undefined,
      { held: 0 },
      { held: 1, ...w(`0~${B}~1`) },
      { held: 0, ...w(`0~${B}~1`), ...holder(B) },
      { held: 0, ...w(`1~${B}~1`) },
    ],
  ],
  [
    "a run joins once, under whichever class, and not beside its own entry",
    joinWaiters(contender(B)),
    [undefined, { held: 1, ...holder(A) }, w(`0~${A}~1`), w(`0~${B}~2`)],
    [w(`0~${B}~1`), w(`1~${B}~1`), w(`2~${B}~1`), { held: 1, ...holder(B) }, { held: 1, ...holder(B, 2) }],
  ],
  [
    "a holder is nudged by one of those who saw the same last send",
    nudgeHolder(
      "job",
      { slotKey: B, epoch: 1, owner: "x", sentAtMs: 5, class: 0, nudgedBy: undefined },
      { nowMs: 9, token: "t" },
    ),
    [holder(B)],
    [undefined, {}, holder(A), holder(B, 2), holder(B, 1, 6)],
  ],
];

describe.each(rows)("%s", (_what, write, accepted, refused) => {
  test.each(accepted.map((item) => [item]))("accepted by %o", (item) => {
    expect(holds(write.condition, item)).toBe(true);
  });
  test.each(refused.map((item) => [item]))("refused by %o", (item) => {
    expect(holds(write.condition, item)).toBe(false);
  });
});

test("the number of holders is that of the entries, through claim, hand-over and release", () => {
  let lock = applied(claimOf(true), undefined);
  expect(lock).toMatchObject({
    held: 1,
    top: B,
    [`h#${B}`]: { epoch: 1, owner: "me", sentAtMs: 7, class: 0 },
  });
  lock = applied(joinWaiters(contender(C, { class: 2 })), lock);
  lock = applied(releaseHolder({ subject: "job", slotKey: B }, 1), lock);
  expect(lock).toMatchObject({ held: 0, top: B, w: new Set([`2~${C}~1`]) });
  lock = applied(
    handOver("job", { ...waiter(C), class: 2, text: `2~${C}~1` }, { token: "me", nowMs: 8, max: 1 }),
    lock,
  );
  expect(lock).toMatchObject({ held: 1, [`h#${C}`]: { epoch: 1, class: 2 } });
  expect(lock).not.toHaveProperty("w");
  expect(holdersOf(lock)).toEqual([{ slotKey: C, epoch: 1, owner: "me", sentAtMs: 8, class: 2 }]);
});

test("a claim that knows its record leaves the newest claimed slot as it is", () => {
  expect(applied(claimOf(false), { held: 0, top: C })).toMatchObject({ top: C });
});

test("waiters get the lock live before by hand before backfill, then by slot", () => {
  const lock = w(`2~${A}~1`, `1~${B}~2`, `1~${A}~1`, `0~${C}~1`, `0~${B}~1`);
  expect(waitersOf(lock).map(({ text }) => text)).toEqual([
    `0~${B}~1`,
    `0~${C}~1`,
    `1~${A}~1`,
    `1~${B}~2`,
    `2~${A}~1`,
  ]);
  expect(waitersOf(lock)[3]).toEqual({ slotKey: B, epoch: 2, class: 1, text: `1~${B}~2` });
});
