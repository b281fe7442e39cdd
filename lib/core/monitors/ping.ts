import type { Occurrence } from "../identity.ts";
import { runKey } from "../items.ts";
import type { Json } from "../json.ts";
import { born, listedAsBad, optional } from "../runs/run-attributes.ts";
import type { ShortError } from "../runs/transitions.ts";
import {
  absent,
  all,
  type Change,
  type Condition,
  equals,
  type Item,
  increment,
  remove,
  set,
  setOnce,
  type Write,
} from "../write.ts";

/** What a job that runs elsewhere says of its run. */
export type Signal = "start" | "ok" | "fail";

/** A ping that has found its slot. */
export interface Ping {
  readonly occurrence: Occurrence;
  readonly signal: Signal;
  readonly token: string;
  readonly nowMs: number;
  /** Of a start: an end that has not come by then does not come. */
  readonly endsByMs: number;
  /** Of an end, as the job measured it. */
  readonly durationMs?: number;
  /** Of a success. */
  readonly result?: Json;
  /** Of a failure. */
  readonly error?: ShortError;
}

const STATE_OF = { start: "running", ok: "succeeded", fail: "dead" } as const;

/** Of an earlier end that no longer holds. */
const OF_THE_END = [
  "endedAtMs",
  "reason",
  "blockedBy",
  "result",
  "error",
  "badMonth",
  "badKey",
  "dismissedAtMs",
].map((name) => remove(name));

/**
 * The write that takes the ping, refused when the record is no longer as it was seen; undefined = the record says so
 * already, or more than the ping does. What a ping says of a run that is over makes a new attempt set of it: the
 * last word counts, so that a success after a failure heals, and no failure is lost behind a success.
 */
export const takePing = (seen: Item | undefined, ping: Ping): Write | undefined => {
  const state = seen?.["st"];
  if (state === STATE_OF[ping.signal]) return undefined;
  if (ping.signal === "start" && state === "succeeded") return undefined;
  const begun = state === undefined || state === "running" ? [] : reopened(Number(seen?.["ep"]), ping.nowMs);
  return {
    key: runKey(ping.occurrence),
    condition: unchanged(seen),
    changes: once([
      ...begun,
      set("st", STATE_OF[ping.signal]),
      set("own", ping.token),
      increment("fence", 1),
      ...(begun.length === 0 ? [setOnce("ep", 1)] : []),
      ...born(ping.nowMs, "ping"),
      ...(ping.signal === "start" ? started(ping, state !== undefined) : ended(ping, state === "running")),
    ]),
  };
};

/** A store takes one change of an attribute: the last one counts. */
const once = (changes: readonly Change[]): readonly Change[] => [
  ...new Map(changes.map((change) => [change.path, change])).values(),
];

const unchanged = (seen: Item | undefined): Condition =>
  seen?.["st"] === undefined
    ? absent("st")
    : all(equals("st", String(seen["st"])), equals("ep", Number(seen["ep"])));

const reopened = (epoch: number, nowMs: number): readonly Change[] => [
  set("ep", epoch + 1),
  set("reopenedAtMs", nowMs),
  ...OF_THE_END,
];

const started = ({ nowMs, endsByMs }: Ping, again: boolean): readonly Change[] => [
  again ? set("startedAtMs", nowMs) : setOnce("startedAtMs", nowMs),
  set("attemptAtMs", nowMs),
  set("leaseUntilMs", endsByMs),
];

const ended = (ping: Ping, wasStarted: boolean): readonly Change[] => {
  const { occurrence, nowMs, durationMs, result, error } = ping;
  const startedAtMs = durationMs === undefined ? undefined : nowMs - durationMs;
  return [
    set("endedAtMs", nowMs),
    remove("leaseUntilMs"),
    ...(wasStarted
      ? []
      : [startedAtMs === undefined ? remove("startedAtMs") : set("startedAtMs", startedAtMs)]),
    ...(ping.signal === "ok" ? optional("result", result) : []),
    ...(ping.signal === "fail"
      ? [...optional("error", error && { ...error }), ...listedAsBad({ occurrence, atMs: nowMs })]
      : []),
  ];
};
