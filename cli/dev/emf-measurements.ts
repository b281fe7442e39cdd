import { isRecord } from "../../lib/core/json.ts";
import type { Measurement } from "./alarm-board.ts";

const readJson = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
};

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The metrics that a log line carries in CloudWatch's embedded format; none in any other line. */
export const measurementsIn = (line: string): readonly Measurement[] => {
  // Most lines that a job prints have none, and need not be parsed for it.
  if (!line.includes('"_aws"')) return [];
  const event = readJson(line);
  const meta = isRecord(event) ? event["_aws"] : undefined;
  if (!isRecord(event) || !isRecord(meta) || typeof meta["Timestamp"] !== "number") return [];
  const atMs = meta["Timestamp"];
  const names = list(meta["CloudWatchMetrics"]).flatMap((directive) =>
    isRecord(directive) ? list(directive["Metrics"]) : [],
  );
  return names.flatMap((metric): Measurement[] => {
    const id = isRecord(metric) ? metric["Name"] : undefined;
    const value = typeof id === "string" ? event[id] : undefined;
    return typeof id === "string" && typeof value === "number" ? [{ id, atMs, value }] : [];
  });
};
