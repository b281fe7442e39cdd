import { expect, test } from "vitest";
import {
  absent,
  addMembers,
  all,
  any,
  atMost,
  contains,
  deleteMembers,
  equals,
  exists,
  increment,
  lessThan,
  not,
  remove,
  set,
  setOnce,
} from "../../lib/core/write.ts";
import type { Table } from "../../lib/ports/table.ts";

/** What every table must do. `table` is asked for in each test; the partition is the test's own. */
export const tableContract = (table: () => Table): void => {
  let made = 0;
  const freshKey = () => ({ pk: `contract-${made++}`, sk: "a" });
  const read = (key: { pk: string; sk: string }) => table().get(key, { consistent: true });

  test("a write on an absent item makes it, and answers the item as it is now", async () => {
    const key = freshKey();
    const answer = await table().write({ key, condition: absent("st"), changes: [set("st", "queued")] });
    expect(answer).toEqual({ written: true, item: { ...key, st: "queued" } });
    expect(await read(key)).toEqual({ ...key, st: "queued" });
  });

  test("a refused write changes nothing, and answers the item that refused", async () => {
    const key = freshKey();
    await table().write({ key, changes: [set("st", "queued"), set("n", 1)] });
    const answer = await table().write({ key, condition: absent("st"), changes: [set("st", "lost")] });
    expect(answer).toEqual({ written: false, item: { ...key, st: "queued", n: 1 } });
    expect(await read(key)).toEqual({ ...key, st: "queued", n: 1 });
  });

  test("a write refused because there is no item answers none", async () => {
    const answer = await table().write({ key: freshKey(), condition: exists("st"), changes: [set("n", 1)] });
    expect(answer).toEqual({ written: false, item: undefined });
  });

  test.each([
    ["equal", equals("n", 5), true],
    ["not equal", equals("n", 6), false],
    ["of another type", equals("n", "5"), false],
    ["less", lessThan("n", 6), true],
    ["not less", lessThan("n", 5), false],
    ["at most", atMost("n", 5), true],
    ["less than an absent attribute", lessThan("gone", 5), false],
    ["in a set", contains("w", "x"), true],
    ["not in a set", contains("w", "z"), false],
    ["in an absent set", contains("gone", "x"), false],
    ["negated over an absent set", not(contains("gone", "x")), true],
    ["inside a map", equals(["h", "e"], 2), true],
    ["inside an absent map", equals(["gone", "e"], 2), false],
    ["all of two", all(equals("n", 5), exists("w")), true],
    ["all with one false", all(equals("n", 5), absent("w")), false],
    ["any with one true", any(equals("n", 6), exists("w")), true],
    ["any of none true", any(equals("n", 6), absent("w")), false],
  ])("a comparison %s decides", async (_name, condition, written) => {
    const key = freshKey();
    const changes = [set("n", 5), set("w", new Set(["x", "y"])), set("h", { e: 2 })];
    await table().write({ key, changes });
    expect((await table().write({ key, condition, changes: [set("m", 1)] })).written).toBe(written);
  });

  test("numbers count up from nothing, and sets go with their last member", async () => {
    const key = freshKey();
    const changes = [increment("held", 1), addMembers("w", "x", "y"), setOnce("first", 1)];
    await table().write({ key, changes });
    await table().write({
      key,
      changes: [increment("held", 2), deleteMembers("w", "x"), setOnce("first", 2)],
    });
    expect(await read(key)).toEqual({ ...key, held: 3, w: new Set(["y"]), first: 1 });
    const answer = await table().write({ key, changes: [deleteMembers("w", "y"), remove("first")] });
    expect(answer.item).toEqual({ ...key, held: 3 });
  });

  test("a map's own name is changed alone", async () => {
    const key = freshKey();
    await table().write({ key, changes: [set("h", { e: 1, o: "me" })] });
    const answer = await table().write({ key, changes: [set(["h", "e"], 2)] });
    expect(answer.item).toEqual({ ...key, h: { e: 2, o: "me" } });
  });

  test.each([
    { twice: "sets and removes the same attribute", changes: [set("a", 1), remove("a")] },
    { twice: "sets a map and a name in it", changes: [set("m", { b: 1 }), set(["m", "a"], 1)] },
  ])("a write that $twice is refused, whatever its condition", async ({ changes }) => {
    const key = freshKey();
    await table().write({ key, changes: [set("m", { b: 1 })] });
    await expect(table().write({ key, changes, condition: exists("m") })).rejects.toThrow(/overlap/);
    expect(await read(key)).toEqual({ ...key, m: { b: 1 } });
  });

  test("of many writers under one condition exactly one wins", async () => {
    const key = freshKey();
    const tries = Array.from({ length: 20 }, (_, owner) =>
      table().write({ key, condition: absent("own"), changes: [set("own", `owner-${owner}`)] }),
    );
    const answers = await Promise.all(tries);
    expect(answers.filter(({ written }) => written)).toHaveLength(1);
    const [winner] = answers.filter(({ written }) => written);
    for (const { item } of answers) expect(item?.["own"]).toBe(winner?.item?.["own"]);
  });

  test("a query answers its range in order, newest first where asked, and no more than its limit", async () => {
    const { pk } = freshKey();
    for (const sk of ["R#3", "R#1", "I#1", "R#2"]) await table().write({ key: { pk, sk }, changes: [] });
    const sortKeys = async (query: object) =>
      (await table().query({ pk, first: "R#", last: "R#~", ...query })).map(({ sk }) => sk);
    expect(await sortKeys({})).toEqual(["R#1", "R#2", "R#3"]);
    expect(await sortKeys({ descending: true, limit: 2 })).toEqual(["R#3", "R#2"]);
    expect(await sortKeys({ first: "R#2", last: "R#3" })).toEqual(["R#2", "R#3"]);
  });

  test("a query of more than one page answers all of it", async () => {
    const { pk } = freshKey();
    const big = "x".repeat(300_000);
    for (let n = 0; n < 5; n++)
      await table().write({ key: { pk, sk: `R#${n}` }, changes: [set("big", big)] });
    expect(await table().query({ pk, first: "R#", last: "R#~" })).toHaveLength(5);
  });

  test("the sparse index holds only items that carry its keys", async () => {
    const { pk } = freshKey();
    await table().write({ key: { pk, sk: "R#1" }, changes: [set("st", "succeeded")] });
    await table().write({ key: { pk, sk: "R#2" }, changes: [set("badMonth", pk), set("badKey", "b")] });
    const listed = await table().query({ pk, first: "a", last: "~", index: "bad" });
    expect(listed.map(({ sk }) => sk)).toEqual(["R#2"]);
  });

  test("any number of keys can be read at once; those without an item are left out", async () => {
    const { pk } = freshKey();
    const keys = Array.from({ length: 230 }, (_, n) => ({ pk, sk: `R#${String(n).padStart(3, "0")}` }));
    for (const key of keys.slice(0, 225)) await table().write({ key, changes: [] });
    expect(await table().getMany(keys)).toHaveLength(225);
    expect(await table().getMany([])).toEqual([]);
  });
};
