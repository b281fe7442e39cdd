import { runIdOf } from "../core/identity.ts";
import { SERIES_KEY, seriesKey, slotKeyInSortKey, subjectInPartitionKey } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { registeredIn, SERIES_KINDS, type Series, seriesIn } from "../core/runs/series.ts";
import type { Item, Key } from "../core/write.ts";

/** A live slot skips for live ones only; behind a backfill's run one waits, and that is the one it skips for. */
export const skippedForBackfill = (items: readonly Item[]): readonly string[] => {
  const runIdIn = ({ pk, sk }: Item): string =>
    runIdOf({ subject: subjectInPartitionKey(String(pk)), slotKey: slotKeyInSortKey(String(sk)) });
  const backfilled = new Set(items.filter(({ trigger }) => trigger === "backfill").map(runIdIn));
  return items
    .filter(({ st, reason }) => st === "skipped" && reason !== "queue full")
    .filter(({ blockedBy }) => backfilled.has(String(blockedBy)))
    .map((item) => `${runIdIn(item)} was skipped for a backfill, ${String(item["blockedBy"])}`);
};

const addsUp = ({ kind, state, asked, left, total, ended }: Series): boolean => {
  const over = Object.values(ended).reduce((sum, count) => sum + count, 0);
  return asked === over && (kind === "retry" || state !== "done" || asked + left === total);
};

/** The series of a job, when all is quiet: those that do not end, and those whose counters do not add up. */
export const brokenSeries = async (
  read: (key: Key) => Promise<Item | undefined>,
  { subject }: Pick<JobDefinition, "subject">,
): Promise<{ readonly wrong: readonly string[]; readonly stuck: readonly string[] }> => {
  const items = await Promise.all(
    SERIES_KINDS.map(async (kind) => seriesIn({ subject, kind }, await read(seriesKey({ subject, kind })))),
  );
  const series = items.filter((one) => one !== undefined);
  const registered = registeredIn(await read(SERIES_KEY)).filter((one) => one.subject === subject);
  return {
    wrong: series
      .filter((one) => one.state !== "open" && !addsUp(one))
      .map(({ kind, ...counts }) => `the ${kind} of ${subject} does not add up: ${JSON.stringify(counts)}`),
    stuck: [
      ...series
        .filter(({ state }) => state === "open")
        .map(({ kind }) => `the ${kind} of ${subject} does not end`),
      ...registered.map(({ kind }) => `the ${kind} of ${subject} keeps its places`),
    ],
  };
};
