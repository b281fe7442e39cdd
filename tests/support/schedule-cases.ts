import { readFileSync } from "node:fs";

/** A line of tests/fixtures/schedule/time.jsonl. */
export interface TimeCase {
  readonly id: string;
  readonly dialect: "unix" | "aws";
  readonly expression: string;
  readonly timezone: string;
  /** ISO 8601 in UTC. */
  readonly from: string;
  /** The first five slots strictly after `from`. */
  readonly expect?: readonly string[];
  readonly error?: true;
  /** Other answers that count. */
  readonly alt?: readonly (string | readonly string[])[];
  readonly certainty: string;
}

export const timeCases = (): readonly TimeCase[] =>
  readFileSync(new URL("../fixtures/schedule/time.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line): TimeCase => JSON.parse(line));

/** Zones with every kind of clock change: half hours, midnight gaps, Ramadan, two hours, a lost day, none. */
export const ZONES = [
  "UTC",
  "America/New_York",
  "Europe/London",
  "Europe/Berlin",
  "Asia/Shanghai",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Australia/Sydney",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Africa/Juba",
  "America/Sao_Paulo",
  "America/Santiago",
  "America/St_Johns",
  "America/Nuuk",
  "America/Argentina/Tucuman",
  "America/Boa_Vista",
  "Antarctica/Troll",
  "Antarctica/Casey",
  "Asia/Gaza",
  "Asia/Tehran",
  "Asia/Beirut",
  "Asia/Amman",
  "Atlantic/Azores",
  "Europe/Moscow",
  "Pacific/Apia",
  "Pacific/Chatham",
  "Pacific/Kiritimati",
  "Pacific/Norfolk",
  "Pacific/Pago_Pago",
] as const;
