import { expect, test } from "vitest";
import type { Deps } from "../../../lib/app/deps.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import { Unavailable } from "../../../lib/core/errors.ts";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import { CURSOR_KEY } from "../../../lib/core/items.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { oneByOne } from "../../support/one-by-one.ts";
import { msOf, setup } from "../../support/path.ts";

test("a job that cannot be dispatched does not keep the watchdog from the others, and is looked at again", async () => {
  const jobs = ["broken", "fine"].map((name) =>
    definition({ name, schedules: ["0 2 * * *"], overlap: "allow", pool: name }),
  );
  const env = setup({ now: "2026-10-24T12:00:00Z", jobs });
  await watch(env.deps);
  await env.moveTo("2026-10-25T02:03:00Z");
  env.fail("send", "down", ({ pk }) => pk === "broken");
  await expect(watch(env.deps)).rejects.toThrow("down");
  expect(env.sent.map(({ pool }) => pool)).toEqual(["fine"]);
  await env.moveTo("2026-10-25T02:04:00Z");
  await watch(env.deps);
  expect(env.sent.map(({ pool }) => pool)).toContain("broken");
});

const everyMinute = { schedules: ["* * * * *"], overlap: "allow" } as const;
/** Its slots are caught up, which its queue prevents; those of the others are missed, and so over at once. */
const JOBS = [
  definition({
    ...everyMinute,
    name: "broken",
    misfire: { policy: "all", max: 100, withinMs: 2 * HOUR_MS },
  }),
  ...["a", "b"].map((name) => definition({ ...everyMinute, name, misfire: { policy: "skip", max: 1 } })),
];

/** A deployment whose passes are made a minute apart, with one queue that takes nothing for now. */
const withBrokenQueue = async () => {
  const env = setup({ now: "2026-10-24T12:00:30Z", jobs: JOBS });
  const away = { queue: true, notes: false };
  const sent: string[] = [];
  const read: string[] = [];
  const deps: Deps = {
    ...env.deps,
    table: {
      ...env.deps.table,
      getMany: (keys) => {
        read.push(...keys.map(({ pk }) => pk));
        return env.deps.table.getMany(keys);
      },
      write: (write) => {
        if (away.notes && write.key.pk.startsWith("O#")) throw new Unavailable("test", "no note is taken");
        return env.deps.table.write(write);
      },
    },
    queue: oneByOne({
      send: async (_pool, { slotKey }) => {
        if (away.queue) throw new Unavailable("test", "it takes nothing");
        sent.push(slotKey);
      },
    }),
  };
  await watch(deps);
  /** Answers how many records of the other jobs it has read. */
  const pass = async (): Promise<number> => {
    await env.moveBy(MINUTE_MS);
    read.length = 0;
    await watch(deps).catch(() => undefined);
    return read.filter((pk) => !pk.includes("broken")).length;
  };
  const cursor = () => env.table.get(CURSOR_KEY, { consistent: true });
  return { env, away, pass, cursor, sent };
};

test("a job that fails for an hour makes no pass dearer for the others, and has all of its slots in the end", async () => {
  const { env, away, pass, cursor, sent } = await withBrokenQueue();
  const read: number[] = [];
  for (let minute = 0; minute < 64; minute++) read.push(await pass());
  expect(read.at(-1)).toBe(read[10]);
  expect(await cursor()).toMatchObject({
    doneUntilMs: env.now() - 2 * MINUTE_MS,
    behind: { broken: msOf("2026-10-24T12:00:30Z") },
  });
  away.queue = false;
  await pass();
  const slots = Array.from({ length: 60 }, (_, n) => msOf("2026-10-24T12:01:00Z") + n * MINUTE_MS);
  const missing = slots.filter((slotMs) => !sent.includes(slotKeyOf(slotMs)));
  expect(missing).toEqual([]);
  expect(await cursor()).not.toHaveProperty("behind");
});

test("a pass that stood still for minutes tells of the absence, and the next pass does not again", async () => {
  const env = setup({ now: "2026-10-24T12:00:00Z", jobs: [definition({ name: "a" })] });
  await watch(env.deps);
  await env.moveBy(MINUTE_MS);
  let stillForMs = 6 * MINUTE_MS;
  const { table } = env.deps;
  const write: Deps["table"]["write"] = async (asked) => {
    const forMs = asked.key.pk === CURSOR_KEY.pk && asked.key.sk === CURSOR_KEY.sk ? stillForMs : 0;
    if (forMs > 0) {
      stillForMs = 0;
      await env.moveBy(forMs);
    }
    return table.write(asked);
  };
  await watch({ ...env.deps, table: { ...table, write } });
  await env.moveBy(MINUTE_MS);
  await watch(env.deps);
  const told = env.table.items().map(({ pk }) => String(pk));
  expect(told.filter((pk) => pk.startsWith("A#watchdog-back"))).toHaveLength(1);
});

test("where a look that failed cannot be noted again either, the pass is repeated as a whole, and is no absence", async () => {
  const { env, away, pass, cursor } = await withBrokenQueue();
  // Until the watchdog has notes of runs that it could not send.
  for (let minute = 0; minute < 8; minute++) await pass();
  away.notes = true;
  const before = await cursor();
  for (let minute = 0; minute < 10; minute++) await pass();
  expect(await cursor()).toMatchObject({ doneUntilMs: before?.["doneUntilMs"] });
  away.notes = false;
  await pass();
  expect(Number((await cursor())?.["doneUntilMs"])).toBeGreaterThan(Number(before?.["doneUntilMs"]));
  const told = env.table.items().map(({ pk }) => String(pk));
  expect(told.filter((pk) => pk.startsWith("A#watchdog-back"))).toEqual([]);
});
