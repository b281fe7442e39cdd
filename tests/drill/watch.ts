import { setTimeout as pause } from "node:timers/promises";
import { isoOf, SECOND_MS } from "../../lib/core/time.ts";
import type { Receiver, Told } from "./receiver.ts";

/** A failure that was made, and what has to be told of it. */
export interface Failure {
  readonly case: string;
  /** When it began. */
  readonly sinceMs: number;
  /** The messages of it, the one that is timed first: `chat failed notify throws~20261130T170000Z`. */
  readonly expected: readonly string[];
  /** So long is waited for them. */
  readonly patienceMs?: number;
  /** Beside the messages, what has to be so in the end; answers why it is not. */
  readonly check?: () => Promise<string | undefined>;
}

export interface Outcome {
  readonly case: string;
  /** What told of it first. */
  readonly alarm: string;
  /** From the failure until that was told. */
  readonly seconds: number | null;
  /** All that was told of it. */
  readonly told: readonly string[];
  readonly ok: boolean;
  /** Why not. */
  readonly why?: string;
}

const LOOK_EVERY_MS = 100;
const LONGEST_MS = 120 * SECOND_MS;

const secondsText = (ms: number): string => (ms / SECOND_MS).toFixed(1);

const alarmOf = (line: string): string => {
  const [, kind = "", topic = "", about = ""] = line.split(" ");
  return kind === "alarm" ? `${about.replace(/^belfry-dev-/, "")} (${topic})` : `${kind} (${topic})`;
};

/** Gives each message to the failure that it is of, once; what is left over was told for no reason, or twice. */
export const makeWatch = ({ told }: Pick<Receiver, "told">) => {
  const taken = new Set<Told>();

  const find = (line: string, sinceMs: number): Told | undefined =>
    told.find((message) => message.line === line && message.atMs >= sinceMs && !taken.has(message));

  /** The first such message, without taking it. */
  const until = async (
    line: string,
    sinceMs: number,
    endMs = Date.now() + LONGEST_MS,
  ): Promise<Told | undefined> => {
    while (Date.now() < endMs && find(line, sinceMs) === undefined) await pause(LOOK_EVERY_MS);
    return find(line, sinceMs);
  };

  /** Waits for all that has to be told of the failure. */
  const outcomeOf = async (failure: Failure): Promise<Outcome> => {
    const { expected, sinceMs, check, patienceMs = LONGEST_MS } = failure;
    const endMs = Date.now() + patienceMs;
    const messages: Told[] = [];
    const missing: string[] = [];
    for (const line of expected) {
      const message = await until(line, sinceMs, endMs);
      if (message === undefined) missing.push(line);
      else {
        taken.add(message);
        messages.push(message);
      }
    }
    const [first = ""] = expected;
    const timed = messages.find(({ line }) => line === first);
    const wrong = await check?.();
    const whys = [...missing.map((line) => `not told: ${line}`), ...(wrong === undefined ? [] : [wrong])];
    return {
      case: failure.case,
      alarm: alarmOf(first),
      seconds: timed === undefined ? null : Number(secondsText(timed.atMs - sinceMs)),
      told: messages.map(({ atMs, line }) => `${line} after ${secondsText(atMs - sinceMs)} s`),
      ok: whys.length === 0,
      ...(whys.length === 0 ? {} : { why: whys.join("; ") }),
    };
  };

  return {
    until,
    outcomeOf,
    /** What the room hears beside the chat is compared with that. */
    leftOver: (): readonly string[] =>
      told
        .filter((message) => !taken.has(message) && !message.line.startsWith("room "))
        .map(({ atMs, line }) => `${line} at ${isoOf(atMs)}`),
  };
};

export type Watch = ReturnType<typeof makeWatch>;
