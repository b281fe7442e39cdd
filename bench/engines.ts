import { CronExpressionParser } from "cron-parser";
import { Cron } from "croner";
import { parseSchedule } from "../lib/core/schedule/schedule.ts";

export const FROM = Date.parse("2026-11-30T12:00:00Z");
export const IN_A_ROW = 100;

export interface Engine {
  readonly name: string;
  /** `count` slots strictly after `from`. */
  run(expression: string, timezone: string, count: number, from?: number): number[];
}

const ours: Engine = {
  name: "belfry",
  run(expression, timezone, count, from = FROM) {
    const schedule = parseSchedule(expression, { timezone });
    const slots: number[] = [];
    for (
      let slot = schedule.next(from);
      slot !== undefined && slots.length < count;
      slot = schedule.next(slot)
    ) {
      slots.push(slot);
    }
    return slots;
  },
};

const croner: Engine = {
  name: "croner",
  run(expression, timezone, count, from = FROM) {
    const cron = new Cron(expression, { timezone, paused: true });
    const slots: number[] = [];
    for (
      let date = cron.nextRun(new Date(from));
      date !== null && slots.length < count;
      date = cron.nextRun(date)
    ) {
      slots.push(date.getTime());
    }
    return slots;
  },
};

const cronParser: Engine = {
  name: "cron-parser",
  run(expression, timezone, count, from = FROM) {
    const cron = CronExpressionParser.parse(expression, { tz: timezone, currentDate: new Date(from) });
    return Array.from({ length: count }, () => cron.next().getTime());
  },
};

export const ENGINES = [ours, croner, cronParser];

/** What all three accept. */
export const EXPRESSIONS = [
  ["every minute", "* * * * *"],
  ["every 15 minutes", "*/15 * * * *"],
  ["hourly", "5 * * * *"],
  ["working hours", "*/10 9-17 * * 1-5"],
  ["daily", "30 2 * * *"],
  ["weekly", "0 9 * * 1"],
  ["monthly", "0 0 1 * *"],
  ["last day", "0 0 L * *"],
  ["last Friday", "0 9 * * 5L"],
  ["second Monday", "0 9 * * 1#2"],
  ["either day", "0 9 13 * 5"],
  ["yearly", "0 0 1 1 *"],
  ["leap day", "0 0 29 2 *"],
] as const;

export const TIMEZONES = [
  "UTC",
  "Asia/Shanghai",
  "America/New_York",
  "Australia/Lord_Howe",
  "Africa/Casablanca",
] as const;
