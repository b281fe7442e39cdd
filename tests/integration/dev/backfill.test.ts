import { expect, test, vi } from "vitest";
import type { SeriesView } from "../../../lib/app/series/series-view.ts";
import { type Dev, descendants, makeProject, readyDev } from "./support.ts";

/** `npm run backfill-year` has all 365, which takes as many minutes' slots as it lasts. */
const DAYS = Number(process.env["BELFRY_BACKFILL_DAYS"] ?? 30);
const DAY_MS = 24 * 60 * 60 * 1_000;
const GRACE_MS = 5 * 60_000;

const DAILY = `
import { setTimeout as wait } from "node:timers/promises";
import { defineJob } from "belfry";
export default defineJob({
  schedule: "0 2 * * *",
  timeout: "20 seconds",
  retry: { firstWait: "1 second" },
  handler: async ({ slot }) => {
    await wait(100);
    return { slot };
  },
});
`;

const MINUTELY = `
import { defineJob } from "belfry";
export default defineJob({ schedule: "* * * * *", handler: async () => ({ done: true }) });
`;

/** Two daily jobs: one in a piece, one in five shards. */
const SPLIT = `
import { defineJob } from "belfry";
export default defineJob({
  schedule: "0 3 * * *",
  timeout: "20 seconds",
  retry: { firstWait: "1 second" },
  shards: 5,
  handler: async ({ shard }) => shard.index,
  join: async ({ shards, slot }) => ({ slot, done: shards.done }),
});
`;
const BACKFILLED = ["daily", "split"];

interface Body {
  readonly series?: SeriesView;
  readonly runs?: readonly {
    readonly state: string;
    readonly trigger: string;
    readonly latenessMs: number;
    readonly result: unknown;
  }[];
}

const ask = async (dev: Dev, method: string, path: string, body?: object): Promise<Body> =>
  (await dev.ask(method, path, body)).body as Body;

const seriesOf = async (dev: Dev, job: string): Promise<SeriesView> => {
  const { series } = await ask(dev, "GET", `/v1/jobs/${job}/series/backfill`);
  if (series === undefined) throw new Error("no backfill");
  return series;
};

test("a backfill on the running stack outlives its worker, and the live slots of its pool are on time", {
  timeout: 600_000,
}, async () => {
  const project = makeProject({
    "jobs/daily.ts": DAILY,
    "jobs/split.ts": SPLIT,
    "jobs/minutely.ts": MINUTELY,
  });
  const dev = await readyDev({ project });
  const now = Date.now();
  const range = { from: new Date(now - DAYS * DAY_MS).toISOString(), to: new Date(now).toISOString() };
  for (const job of BACKFILLED) {
    const { series } = await ask(dev, "POST", `/v1/jobs/${job}/backfill`, range);
    expect(series).toMatchObject({ state: "open", total: DAYS });
  }
  const someDone = async (): Promise<void> => {
    for (const job of BACKFILLED) expect((await seriesOf(dev, job)).ended["succeeded"]).toBeGreaterThan(5);
  };
  await vi.waitFor(someDone, { timeout: 60_000, interval: 50 });
  const worker = descendants(dev.child.pid ?? 0).find(({ command }) => command.endsWith("worker.ts"));
  process.kill(worker?.pid ?? 0, "SIGKILL");
  const allDone = async (): Promise<void> => {
    for (const job of BACKFILLED) expect((await seriesOf(dev, job)).state).toBe("done");
  };
  await vi.waitFor(allDone, { timeout: 500_000, interval: 500 });
  for (const job of BACKFILLED) {
    expect(await seriesOf(dev, job)).toMatchObject({
      asked: DAYS,
      left: 0,
      ended: { succeeded: DAYS },
      outstanding: [],
    });
    const { runs: all = [] } = await ask(dev, "GET", `/v1/runs?job=${job}&limit=1000`);
    const past = all.filter(({ trigger, state }) => trigger === "backfill" && state === "succeeded");
    expect(past).toHaveLength(DAYS);
    if (job === "split") for (const { result } of past) expect(result).toMatchObject({ done: 5 });
  }
  const { runs: live = [] } = await ask(dev, "GET", "/v1/runs?job=minutely&limit=1000");
  const late = live.filter(({ state, latenessMs }) => state === "skipped" || latenessMs > GRACE_MS);
  expect(late).toEqual([]);
  // A year of them takes more than a minute, whatever the machine.
  if (DAYS >= 365) expect(live.length).toBeGreaterThan(0);
});
