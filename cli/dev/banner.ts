import type { JobDefinition, Manifest } from "../../lib/core/jobs/job.ts";
import { isMonitor } from "../../lib/core/monitors/monitor.ts";
import { shortIsoOf } from "../../lib/core/time.ts";
import { pingPath } from "../../lib/inbound/pings/router.ts";
import { scheduledJobs } from "./job-slots.ts";
import { localUrl } from "./network-port.ts";

export interface Started {
  readonly version: string;
  readonly manifest: Manifest;
  readonly port: number;
  readonly pingSecret: string;
  /** As the user would write it. */
  readonly folder: string;
  readonly isTemporary: boolean;
  /** Do the other verbs find it by themselves? */
  readonly isStandard: boolean;
  readonly attached: { readonly dynamodb?: string; readonly sqs?: string };
  readonly nowMs: number;
  readonly tookMs: number;
}

/** `Thu 2026-10-08 02:00 Asia/Shanghai`: the wall clock of the job's zone. */
const wallText = (atMs: number, timezone: string): string => {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: timezone,
    weekday: "short",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).formatToParts(atMs);
  const part = (type: Intl.DateTimeFormatPartTypes): string =>
    parts.find((p) => p.type === type)?.value ?? "";
  return `${part("weekday")} ${part("year")}-${part("month")}-${part("day")} ${part("hour")}:${part("minute")} ${timezone}`;
};

const slotText = (slotMs: number | undefined, timezone: string): string => {
  if (slotMs === undefined) return "no further slot";
  const utc = shortIsoOf(slotMs).replace(/:00Z$/, "Z");
  return timezone === "UTC"
    ? `next ${wallText(slotMs, timezone)}`
    : `next ${wallText(slotMs, timezone)} (${utc})`;
};

const unscheduledText = (job: JobDefinition, { pingSecret, port }: Started): string => {
  if (isMonitor(job)) return `runs elsewhere; its pings: ${localUrl(port)}${pingPath([pingSecret], job)}`;
  return job.schedules.length === 0 ? "by hand only" : "its schedule does not fire in this stage";
};

const jobLines = (started: Started): readonly string[] => {
  const { manifest, nowMs } = started;
  const width = Math.max(...manifest.jobs.map(({ name }) => name.length));
  const scheduled = new Map(scheduledJobs(manifest).map(({ job, source }) => [job.name, source]));
  return manifest.jobs.map((job) => {
    const source = scheduled.get(job.name);
    const text =
      source === undefined ? unscheduledText(job, started) : slotText(source.next(nowMs), job.timezone);
    return `  ${job.name.padEnd(width)}  ${text}`;
  });
};

const storeLine = ({ attached, folder, isTemporary }: Started): string => {
  const where = Object.entries(attached).map(([name, url]) => `${name} at ${url}`);
  const kept = isTemporary ? `${folder}, removed at the end` : folder;
  return `  data ${kept}${where.length === 0 ? "" : `; attached: ${where.join(", ")}`}`;
};

const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;

/** What a newcomer reads first: what runs, what strikes next, where to look. */
export const bannerLines = (started: Started): readonly string[] => {
  const { manifest, port, tookMs, version } = started;
  const pools = Object.keys(manifest.pools);
  const where = started.isStandard ? "" : ` --data "${started.folder}"`;
  const example = manifest.jobs.find((job) => !isMonitor(job))?.name ?? "<job>";
  return [
    `belfry ${version} is ready after ${(tookMs / 1_000).toFixed(1)} s: ${plural(manifest.jobs.length, "job")}, ${plural(pools.length, "pool")} (${pools.join(", ")})`,
    ...jobLines(started),
    storeLine(started),
    `  operate router on http://127.0.0.1:${port}, logs in ${started.folder}/logs`,
    "in a second terminal:",
    `  npx belfry list${where}`,
    `  npx belfry run ${example} --wait${where}`,
    `  npx belfry runs${where}`,
    "Edit a file in jobs/ and it is loaded. Ctrl-C stops.",
  ];
};
