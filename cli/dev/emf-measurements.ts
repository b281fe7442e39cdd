import { jobMetricId } from "../../lib/core/alarms/alarm-state.ts";
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
  return list(meta["CloudWatchMetrics"]).flatMap((directive) => {
    if (!isRecord(directive)) return [];
    const isOfJob = list(directive["Dimensions"]).some((names) => list(names).includes("job"));
    return list(directive["Metrics"]).flatMap((metric): Measurement[] => {
      const name = isRecord(metric) ? metric["Name"] : undefined;
      const value = typeof name === "string" ? event[name] : undefined;
      if (typeof name !== "string" || typeof value !== "number") return [];
      return [{ id: isOfJob ? jobMetricId(name, String(event["job"])) : name, atMs, value }];
    });
  });
};
