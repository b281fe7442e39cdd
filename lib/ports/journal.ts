import type { Json } from "../core/json.ts";
import type { LogLevel } from "./attempts.ts";

/** What is worth knowing of an attempt that is over; the last one of a run is the run's own event. */
export interface AttemptEvent {
  readonly runId: string;
  /** Key of the shard, where the attempt was one of a shard; the state is then the shard's. */
  readonly shard?: string;
  readonly job: string;
  readonly trigger: string;
  readonly slotMs: number;
  readonly attempt: number;
  /** The run's state after it. */
  readonly state: string;
  readonly outcome: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** From the slot to the run's first start. */
  readonly latenessMs: number;
  readonly reason?: string;
  readonly error?: { readonly name: string; readonly message: string };
  readonly result?: Json;
}

/** What should not happen often: each has a code to count it by. */
export type NoticeCode =
  | "duplicate-delivery"
  | "off-schedule-event"
  | "stale-result"
  | "lease-lost"
  | "poison-message"
  | "unknown-job"
  | "record-gone"
  | "sent-again"
  | "caught-up"
  | "missed"
  | "expired"
  | "skipped"
  | "dead"
  | "parked"
  | "cancelled"
  | "late"
  | "stuck"
  | "page-threshold"
  | "health"
  | "message-failed"
  | "not-hidden"
  | "invocation-failed"
  | "watchdog-pass"
  | "notifier-pass"
  | "alert-told"
  | "alert-not-told"
  | "alert-given-up"
  | "alert-untold"
  | "ping"
  | "ping-refused"
  | "series-stopped"
  | "automation-unreadable";

/** The log. Each call is one line of JSON that carries its own metrics. Never throws. */
export interface Journal {
  attempt(event: AttemptEvent): void;
  notice(level: LogLevel, code: NoticeCode, fields: { readonly [name: string]: Json }): void;
  /** A line of the handler's own. */
  handlerLine(level: LogLevel, message: string, fields: { readonly [name: string]: Json }): void;
}
