/**
 * Where an alert goes: `notify` can wait for the morning; `page` wakes somebody, and is told to the channels of
 * `notify` as well. What ends a trouble has the topic of the worst that was told of it: so it ends the page too.
 */
export type AlertTopic = "notify" | "page";

export type AlertKind =
  // About a job; told by its flips.
  | "failed"
  | "failing"
  | "late"
  | "missed"
  | "stuck"
  | "overrun"
  | "slow"
  | "parked"
  | "paused"
  | "flapping"
  | "reminder"
  | "recovered"
  | "removed"
  // About the machinery; told by alarms.
  | "alarm"
  | "alarm-over"
  | "watchdog-back"
  | "test";

/** Something that a person should hear of, once. What is not known of it is absent. */
export interface Alert {
  /** The same event has the same id, whoever says it and however often: it is told once. */
  readonly id: string;
  readonly topic: AlertTopic;
  readonly kind: AlertKind;
  readonly atMs: number;
  /** One sentence: what is the matter, and why. */
  readonly reason: string;
  readonly job?: string;
  /** The oldest name of a job that was renamed: what is told of it is one matter, before and after. */
  readonly subject?: string;
  /** Id of the run-time schedule whose run it is; `job` is what that runs. */
  readonly automation?: string;
  readonly owner?: string;
  readonly runbook?: string;
  readonly slotMs?: number;
  /** IANA; the zone in which the slot is shown beside UTC. */
  readonly timezone?: string;
  readonly runId?: string;
  /** The alarm's full name, where an alarm tells. */
  readonly alarm?: string;
  /** What to do about it, where that is known: one sentence. */
  readonly remedy?: string;
  readonly error?: { readonly name: string; readonly message: string };
  /** Its end is not told: it is over already, or has none, or nobody wants to hear of ends. */
  readonly passing?: true;
  /** Failures in a row, or how many slots the alert speaks of. */
  readonly count?: number;
}
