import type { SeriesView } from "../lib/app/series/series-view.ts";
import type { BackfillPlanAnswer } from "../lib/inbound/operate/answers.ts";
import { bothTexts } from "./times.ts";

const slotsText = (count: number): string => `${count} slot${count === 1 ? "" : "s"}`;

/** What would become of the slots in one state. */
const fateText = (state: string, { slots, toRun }: { slots: number; toRun: number }): string => {
  if (toRun === slots) return "run again";
  if (toRun > 0) return `${toRun} run again, the others are too old for that`;
  const canRun = ["missed", "expired", "skipped", "dead", "cancelled"].includes(state);
  return canRun ? `left alone; --redo ${state} runs them again` : "left alone";
};

/** A plan for people: one kind of slot a line. */
export const planLines = (plan: BackfillPlanAnswer): readonly string[] => {
  const { timezone, slots, firstSlot, lastSlot, unrecorded, beyondRecords, recorded, toRun, parallel } = plan;
  if (slots === 0) return [`${plan.job} has no slots from ${plan.from} to ${plan.to} that have passed`];
  const rows: readonly (readonly [count: number, text: string])[] = [
    ...(unrecorded === 0 ? [] : [[unrecorded, "without a record: run"] as const]),
    ...Object.entries(recorded).map(
      ([state, fate]) => [fate.slots, `${state}: ${fateText(state, fate)}`] as const,
    ),
  ];
  const width = String(slots).length;
  return [
    `${plan.job} has ${slotsText(slots)} from ${bothTexts(firstSlot, timezone)} to ${bothTexts(lastSlot, timezone)}`,
    ...rows.map(([count, text]) => `  ${String(count).padStart(width)}  ${text}`),
    ...(beyondRecords === 0
      ? []
      : [
          `  ${beyondRecords} of them passed before the 90 days that records are kept: what ran then runs again`,
        ]),
    ...(plan.paused ? ["the job is paused; a backfill goes ahead all the same"] : []),
    `${slotsText(toRun)} would run, ${parallel === 1 ? "one at a time" : `at most ${parallel} at once`}`,
  ];
};

const endedCount = ({ ended }: SeriesView): number =>
  Object.values(ended).reduce((sum, count) => sum + count, 0);

const doneCount = (series: SeriesView): number => endedCount(series) + series.left;

/** `160 succeeded, 2 dead, 3 left alone` */
export const endsText = ({ ended, left }: SeriesView): string => {
  const parts = [
    ...Object.entries(ended).map(([state, count]) => `${count} ${state}`),
    ...(left === 0 ? [] : [`${left} left alone`]),
  ];
  return parts.length === 0 ? "nothing is over yet" : parts.join(", ");
};

const BAR_WIDTH = 20;

/** `[=====>              ]  27 %  98 of 365, 96 succeeded, 2 dead` */
export const barText = (series: SeriesView): string => {
  const { total } = series;
  const share = total === 0 ? 1 : Math.min(1, doneCount(series) / total);
  const full = Math.floor(share * BAR_WIDTH);
  const head = full === BAR_WIDTH ? "" : ">";
  const bar = `${"=".repeat(full)}${head}`.padEnd(BAR_WIDTH);
  return `[${bar}] ${String(Math.floor(share * 100)).padStart(3)} %  ${doneCount(series)} of ${total}, ${endsText(series)}`;
};

/** `backfill of daily (2026-10-01T00:00:00Z to 2026-11-01T00:00:00Z): done, 31 succeeded` */
export const seriesLine = (series: SeriesView): string => {
  const { kind, job, from, to, state, reason } = series;
  const range = from === undefined || to === undefined ? "" : ` (${from} to ${to})`;
  const why = reason === undefined ? "" : ` (${reason})`;
  return `${kind} of ${job}${range}: ${state}${why}, ${endsText(series)}`;
};

export const SERIES_HEADINGS = ["JOB", "KIND", "STATE", "DONE", "OF", "ENDED", "ON ITS WAY"];

export const seriesRow = (series: SeriesView): readonly string[] => [
  series.job,
  series.kind,
  series.state,
  String(doneCount(series)),
  String(series.total),
  endsText(series),
  series.outstanding.map(({ runId, state }) => `${runId} ${state}`).join(", ") || "-",
];
