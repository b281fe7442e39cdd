import { expect, test } from "vitest";
import { stopSeriesByHand } from "../../../lib/app/series/begin-series.ts";
import { retryDead } from "../../../lib/app/series/retry-dead.ts";
import { readSeries } from "../../../lib/app/series/series.ts";
import { slotKeyOf } from "../../../lib/core/identity.ts";
import { badKeyOf, badMonthOf, runKey } from "../../../lib/core/items.ts";
import { MINUTE_MS } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { failure, msOf } from "../../support/path.ts";
import { daily, make, put, slotOfDay } from "../../support/series-path.ts";

/** The retry of all dead runs of a job. */

test("runs that are dead are retried a few at a time, each once, and those that die from then on are not", async () => {
  const job = daily({ overlap: "allow", retry: { ...daily().retry, retries: 0 } });
  const { env, drain } = make(job);
  env.handle(() => failure());
  for (const day of [1, 2, 3, 4, 5, 6, 7]) {
    const atMs = env.now() - day * 1_000;
    await put(env, day, "dead", { badMonth: badMonthOf(atMs), badKey: badKeyOf(atMs, slotOfDay(day)) });
  }
  await put(env, 8, "missed", { badMonth: "2026-10", badKey: badKeyOf(env.now() - 1, slotOfDay(8)) });
  const series = await retryDead(env.deps, job);
  expect(series).toMatchObject({ kind: "retry", total: 7, parallel: 5, asked: 5 });
  expect(env.sent).toHaveLength(5);
  await drain();
  expect(env.attempts).toHaveLength(7);
  expect(await readSeries(env.deps, { subject: "daily", kind: "retry" })).toMatchObject({
    state: "done",
    asked: 7,
    ended: { dead: 7 },
  });
  expect(await env.run(slotOfDay(1))).toMatchObject({ st: "dead", ep: 2 });
  expect(await env.run(slotOfDay(8))).toMatchObject({ st: "missed", ep: 1 });
});

test("dead runs of three months, and of more than a page, are all found, and those of other jobs left", async () => {
  const job = daily({ overlap: "allow" });
  const other = definition({ name: "other", overlap: "allow" });
  const { env, drain } = make(job, [other]);
  const slotMs = (n: number) => msOf("2026-08-01T00:00:00Z") + n * 12 * 60 * MINUTE_MS;
  const dead = async (subject: string, n: number) => {
    const occurrence = { subject, slotKey: slotKeyOf(slotMs(n)) };
    const bad = { badMonth: badMonthOf(slotMs(n)), badKey: badKeyOf(slotMs(n), occurrence) };
    await env.put(runKey(occurrence), {
      st: "dead",
      ep: 1,
      trigger: "schedule",
      claimedAtMs: env.now(),
      ...bad,
    });
  };
  for (let n = 0; n < 120; n++) await dead("daily", n);
  for (let n = 0; n < 120; n++) await dead("other", n);
  expect(await retryDead(env.deps, job)).toMatchObject({ total: 120 });
  await drain();
  expect(env.attempts).toHaveLength(120);
  expect(new Set(env.attempts.map(({ request }) => request.job))).toEqual(new Set(["daily"]));
});

test("a retry of dead runs that goes on is taken up, one that stops is refused, and none is begun for none", async () => {
  const job = daily({ overlap: "allow" });
  const { env } = make(job);
  expect(await retryDead(env.deps, job)).toBeUndefined();
  for (const day of [1, 2]) {
    const atMs = env.now() - day * 1_000;
    await put(env, day, "dead", { badMonth: badMonthOf(atMs), badKey: badKeyOf(atMs, slotOfDay(day)) });
  }
  const first = await retryDead(env.deps, job, 1);
  expect(await retryDead(env.deps, job, 1)).toMatchObject({ id: first?.id, asked: 1 });
  await stopSeriesByHand(env.deps, job, "retry");
  await expect(retryDead(env.deps, job)).rejects.toMatchObject({ code: "in_flight" });
  await expect(retryDead(env.deps, job, 10)).rejects.toMatchObject({ code: "too_parallel" });
});
