import type { Command } from "commander";
import type { JobSummary } from "../../lib/app/inspect/list-jobs.ts";
import type { AlarmsAnswer, JobsAnswer } from "../../lib/inbound/operate/answers.ts";
import { connect } from "../client.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { note, printJson, printLines, tableLines } from "../output.ts";
import { localText } from "../times.ts";
import { addVerb, type CommonOptions, ending } from "../verb.ts";
import { alarmLine } from "./alarms.ts";

const HEADINGS = ["JOB", "HEALTH", "SCHEDULE", "ZONE", "NEXT (ZONE)", "NEXT (UTC)", "LAST OUTCOME"];

const pausedText = ({ reason, until }: NonNullable<JobSummary["paused"]>, zone: string): string =>
  `paused${until === undefined ? "" : ` until ${localText(until, zone)}`} (${reason})`;

/** `failing x3 since 2027-01-02T09:00`, with what is planned. */
const healthText = ({ health, healthSince, failuresInARow, paused, muted, timezone }: JobSummary): string => {
  const isWrong = health !== "up" && health !== "new";
  const times = failuresInARow > 1 ? ` x${failuresInARow}` : "";
  const since = isWrong && healthSince !== null ? ` since ${localText(healthSince, timezone)}` : "";
  const told = paused === null ? `${health}${times}${since}` : pausedText(paused, timezone);
  return muted === null ? told : `${told}, muted until ${localText(muted.until, timezone)}`;
};

const scheduleText = ({ inWords, monitor }: JobSummary): string =>
  `${inWords ?? "by hand only"}${monitor === true ? ", pinged from elsewhere" : ""}`;

const rowOf = (job: JobSummary): readonly string[] => {
  const { name, timezone, nextSlot, lastRun } = job;
  return [
    name,
    healthText(job),
    scheduleText(job),
    timezone,
    nextSlot === null ? "-" : localText(nextSlot, timezone),
    nextSlot ?? "-",
    lastRun === null ? "-" : `${lastRun.state} ${localText(lastRun.slot, timezone)} (${lastRun.slot})`,
  ];
};

const list = async (options: CommonOptions): Promise<ExitCode> => {
  const operate = connect(options);
  const { jobs } = await operate.get<JobsAnswer>("/v1/jobs");
  if (options.json) {
    printJson(jobs);
    return EXIT.done;
  }
  if (jobs.length === 0) note("there are no jobs: each file in jobs/ is one");
  else printLines(tableLines(HEADINGS, jobs.map(rowOf)));
  // Those of a stage are in CloudWatch.
  if (options.stage === undefined) printLines([alarmLine(await operate.get<AlarmsAnswer>("/v1/alarms"))]);
  return EXIT.done;
};

/** `belfry list`: all jobs at a glance. */
export const addList = (program: Command): void => {
  addVerb(program, {
    usage: "list",
    summary: "show all jobs: schedule in words, next slot, last outcome, health",
    examples: [
      ["list", "the jobs of the local stack"],
      ["list --json", "the same for a program"],
    ],
    exits: ["0  shown", "4  no stack answers"],
  }).action(ending(list));
};
