import type { Alert, AlertTopic } from "../alerts/alert.ts";
import type { Fact, TroubleKind } from "./health-facts.ts";

/**
 * `late`: a run has not started, overruns, or its worker is gone. `failing`: the newest runs failed, or one waits for a
 * person. `down`: so many failed in a row that somebody is woken.
 */
export const HEALTH_STATES = ["up", "late", "failing", "down", "paused"] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

/** How loud a row of failures is: not at all yet, worth a notice, worth a page. */
export type Level = 0 | 1 | 2;

/** The failures since the last success, in the order of their slots. */
export interface Streak {
  readonly count: number;
  /** Those after the job paused itself last: a person who resumes it wants to see some more. */
  readonly sincePause: number;
  readonly level: Level;
  readonly firstSlotKey: string;
  readonly lastSlotKey: string;
}

/** A run that is not as it should be, until it is over. */
export interface Trouble {
  readonly kind: TroubleKind;
  readonly slotKey: string;
  readonly epoch: number;
  readonly sinceMs: number;
  /** People know of it, or of one like it. */
  readonly known: boolean;
}

/** What people were told, and not yet told to be over. */
export interface Known {
  /** The worst so far. */
  readonly topic: AlertTopic;
  readonly level: Level;
  readonly paused: boolean;
  /** When they were told last. */
  readonly atMs: number;
  readonly what: string;
}

/** A job's health, as it is kept from look to look. Plain JSON. */
export interface Health {
  readonly state: HealthState;
  readonly sinceMs: number;
  /** Number of the last flip. */
  readonly flips: number;
  readonly streak?: Streak;
  readonly troubles: readonly Trouble[];
  readonly known?: Known;
  /** Its last run was slow. */
  readonly slow: boolean;
  /** Runs that were late and have started by then are the same matter, which people know. */
  readonly lateUntilMs?: number;
  /** What was told of single runs: `<kind>~<slotKey>~<epoch>`. */
  readonly noted: readonly string[];
  /** Of the last few flips. */
  readonly changesMs: readonly number[];
  /** It changes so often that nothing but a page is told. */
  readonly flappingSinceMs?: number;
  /** The newest slot that had failed when the job paused itself. */
  readonly pausedThrough?: string;
  /** When it is to be looked at again, whatever happens. */
  readonly lookAtMs?: number;
}

/** Of a job that nothing is known of. */
export const unknownHealth = (nowMs: number): Health => ({
  state: "up",
  sinceMs: nowMs,
  flips: 0,
  troubles: [],
  slow: false,
  noted: [],
  changesMs: [],
});

/** A run that is as it should be cannot change it; a pause, or the end of one, can. */
export const isSound = (health: Health): boolean =>
  (health.state === "up" || health.state === "paused") &&
  health.known === undefined &&
  health.flappingSinceMs === undefined &&
  health.troubles.length === 0 &&
  !health.slow;

export interface Seen {
  readonly nowMs: number;
  /** What this pass of the watchdog came across. */
  readonly fresh: readonly Fact[];
  /** The job's newest runs, at least back to its last success, and those in trouble before. */
  readonly runs: readonly Fact[];
  readonly paused?: { readonly byItself: boolean; readonly untilMs?: number };
  /** A planned silence lasts until then. */
  readonly mutedUntilMs?: number;
}

/** A change of a job's health, numbered from 1, with what is told of it. */
export interface Flip {
  readonly n: number;
  readonly atMs: number;
  readonly from: HealthState;
  readonly to: HealthState;
  readonly alert?: Alert;
}
