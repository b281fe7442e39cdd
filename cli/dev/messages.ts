import type { RingingAlarm } from "../../lib/core/alarms/alarm.ts";
import { isRecord } from "../../lib/core/json.ts";
import type { Measurement } from "./alarm-board.ts";
import type { Endpoints } from "./environment.ts";

/** One result of the build: what a control or worker process runs. */
export interface Build {
  readonly manifestFile: string;
  readonly jobsFile: string;
}

/** What the supervisor tells a child. `start` comes once, first; a handle may come with it. */
export type Order<Start> =
  | { readonly kind: "start"; readonly start: Start }
  | { readonly kind: "reload"; readonly build: Build }
  /** What rings now, and messages for the notifier's queue of what has changed. */
  | {
      readonly kind: "alarms";
      readonly ringing: readonly RingingAlarm[];
      readonly messages: readonly string[];
    }
  | { readonly kind: "stop" };

/** What a child tells the supervisor. */
export type Report =
  /** It does its work from now on; after a reload: on the new build. */
  | { readonly kind: "ready" }
  /** It cannot start or reload as told; the text is for people. */
  | { readonly kind: "fault"; readonly text: string }
  /** One line for people. */
  | { readonly kind: "note"; readonly text: string }
  /** What no log line says. */
  | { readonly kind: "measured"; readonly measurements: readonly Measurement[] };

export interface EmulatorsStart {
  /** Absolute; kept between starts. */
  readonly folder: string;
  /** Loopback ports; absent = this one is not embedded. */
  readonly dynamodbPort?: number;
  readonly sqsPort?: number;
}

export interface ControlStart {
  readonly endpoints: Endpoints;
  readonly build: Build;
  /** What a caller of the operate router must know. */
  readonly key: string;
  /** What the addresses of monitors begin with and are made of. */
  readonly pings: { readonly url: string; readonly secret: string };
  /** Do the schedules strike? */
  readonly strikes: boolean;
}

export interface WorkerStart {
  readonly endpoints: Endpoints;
  readonly build: Build;
  readonly pool: string;
}

/** Undefined when the message is none of ours. */
export const readReport = (value: unknown): Report | undefined => {
  if (!isRecord(value)) return undefined;
  const { kind, measurements, text } = value;
  if (kind === "ready") return { kind };
  if (kind === "measured" && Array.isArray(measurements)) return { kind, measurements };
  if ((kind === "fault" || kind === "note") && typeof text === "string") return { kind, text };
  return undefined;
};

/** Both ends of the channel are this package's own, of one version: the kind tells the rest. */
export const readOrder = <Start>(value: unknown): Order<Start> | undefined => {
  if (!isRecord(value) || !["start", "reload", "alarms", "stop"].includes(String(value["kind"])))
    return undefined;
  return value as unknown as Order<Start>;
};
