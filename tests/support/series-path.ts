import { readSeries } from "../../lib/app/series/series.ts";
import { seriesView } from "../../lib/app/series/series-view.ts";
import { runKey, SERIES_KEY } from "../../lib/core/items.ts";
import type { JobDefinition } from "../../lib/core/jobs/job.ts";
import type { Key } from "../../lib/core/write.ts";
import { definition } from "./definitions.ts";
import { at, msOf, type Setup, setup } from "./path.ts";

export const NOW = "2026-10-08T12:00:00Z";
export const daily = (changes: Partial<JobDefinition> = {}) =>
  definition({ name: "daily", schedules: ["0 2 * * *"], ...changes });
export const NAME = { subject: "daily", kind: "backfill" } as const;
export const onSeries = ({ sk }: Key): boolean => sk === "B#backfill";
export const onRegistry = ({ sk }: Key): boolean => sk === "series";

/** A daily job in its second October week, and a range of five days of it. */
export const make = (job = daily(), others: readonly JobDefinition[] = []) => {
  const env = setup({ now: NOW, jobs: [job, ...others] });
  env.handle(() => ({ kind: "returned" }));
  let done = 0;
  return {
    env,
    job,
    range: { job, fromMs: msOf("2026-10-01T00:00:00Z"), toMs: msOf("2026-10-06T00:00:00Z") },
    series: () => readSeries(env.deps, NAME),
    view: async () => {
      const series = await readSeries(env.deps, NAME);
      if (series === undefined) throw new Error("no series");
      return seriesView(env.deps, series);
    },
    registry: () => env.table.get(SERIES_KEY, { consistent: true }),
    /** Works off what is in the queue, what that sends included. */
    drain: async () => {
      for (; done < env.sent.length; done++) {
        const one = env.sent[done];
        if (one !== undefined) await env.work(one.message);
      }
    },
    slots: () => env.sent.map(({ message }) => message.slotKey.slice(5, 10)),
  };
};

export type Made = ReturnType<typeof make>;

export const slotOfDay = (day: number) => at("daily", `2026-10-0${day}T02:00:00Z`);
export const put = (env: Setup, day: number, st: string, attributes = {}) =>
  env.put(runKey(slotOfDay(day)), {
    st,
    ep: 1,
    fence: 1,
    trigger: "schedule",
    claimedAtMs: msOf("2026-10-06T00:00:00Z"),
    ...attributes,
  });
