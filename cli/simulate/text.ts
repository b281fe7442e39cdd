import type { JobReport } from "../../lib/simulation/report.ts";
import { pairLines, tableLines } from "../output.ts";
import { spanText } from "../times.ts";
import type { SimulationAnswer } from "./simulate.ts";

const span = (ms: number | null): string => (ms === null ? "-" : spanText(ms));

/** Shown where any job has some. */
const COLUMNS: readonly (readonly [heading: string, count: (job: JobReport) => number, always?: true])[] = [
  ["SLOTS", ({ slots }) => slots, true],
  ["SUCCEEDED", ({ succeeded }) => succeeded, true],
  ["DEAD", ({ dead }) => dead, true],
  ["SKIPPED", ({ skipped }) => skipped, true],
  ["MISSED", ({ missed }) => missed, true],
  ["EXPIRED", ({ expired }) => expired],
  ["CANCELLED", ({ cancelled }) => cancelled],
  ["PARKED", ({ parked }) => parked],
  ["OPEN", ({ open }) => open],
  ["FAILURES", ({ failures }) => failures],
  ["CRASHES", ({ crashes }) => crashes],
  ["CAUGHT UP", ({ catchUps }) => catchUps],
  ["DUPLICATES", ({ duplicates }) => duplicates],
  ["REPEATED EFFECTS", ({ repeatedEffects }) => repeatedEffects],
];

const jobsTable = (jobs: readonly JobReport[]): readonly string[] => {
  const shown = COLUMNS.filter(([, count, always]) => always === true || jobs.some((job) => count(job) > 0));
  const headings = ["JOB", ...shown.map(([heading]) => heading), "LONGEST WAIT", "LONGEST RUN"];
  return tableLines(
    headings,
    jobs.map((job) => [
      job.job,
      ...shown.map(([, count]) => String(count(job))),
      span(job.longestWaitMs),
      span(job.longestRunMs),
    ]),
  );
};

const MOST_LINES = 10;

const list = (title: string, lines: readonly string[]): readonly string[] => {
  if (lines.length === 0) return [];
  const more = lines.length - MOST_LINES;
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${line}`);
  return ["", title, ...shown, ...(more > 0 ? [`  and ${more} more: see --json`] : [])];
};

const struckText = (faults: SimulationAnswer["faults"]): string =>
  Object.entries(faults)
    .map(([kind, times]) => `${kind} ${times}`)
    .join(", ") || "none";

/** What people read. */
export const answerLines = (answer: SimulationAnswer): readonly string[] => {
  const { jobs, deadRuns, faults, broken, from, to, seed, handlers, tookMs } = answer;
  const slots = jobs.reduce((sum, job) => sum + job.slots, 0);
  return [
    ...pairLines([
      ["simulated", `${from} to ${to}: ${slots} slots in ${spanText(tookMs)}`],
      ["handlers", handlers === "called" ? "called" : "not called (--dry)"],
      ["faults", seed === null ? "none" : `by seed ${seed}`],
    ]),
    "",
    ...jobsTable(jobs),
    ...list(
      "why slots did not run:",
      jobs.flatMap(({ job, reasons }) =>
        Object.entries(reasons).map(([reason, count]) => `${job}: ${count} ${reason}`),
      ),
    ),
    ...list(
      "clock changes:",
      jobs.flatMap(({ job, clockChanges }) => clockChanges.map((change) => `${job}: ${change}`)),
    ),
    ...list(
      "dead runs:",
      deadRuns.map(({ runId, error, reason }) =>
        error === null ? `${runId}: ${reason ?? ""}` : `${runId}: ${error.name}: ${error.message}`,
      ),
    ),
    ...list("faults that struck:", seed === null ? [] : [struckText(faults)]),
    ...list("BROKEN PROMISES (please report them, with this command):", broken),
    "",
    broken.length === 0 ? "every promise held" : `${broken.length} promises did not hold`,
  ];
};
