import { InvalidInput, messageOf } from "../errors.ts";
import type { Json } from "../json.ts";

/** What a handler may keep from one attempt of its run to the next, and the limits of it. */

/** A position, not the data: it is written whole each time, and each kilobyte is a write unit. */
export const CHECKPOINT_BYTES = 32 * 1024;
export const EFFECT_BYTES = 4 * 1024;
const EFFECT_KEY_LENGTH = 100;
/** Each is an item of its own, read again by each later attempt. */
export const MAX_EFFECTS = 100;
/** A run that goes on and on without an end is one that nobody meant. */
export const MAX_PIECES = 1_000;

/** A side effect that was done: what its function returned, or why that could not be kept. */
export type Effect = { readonly result?: Json } | { readonly refused: string };

const jsonText = (value: unknown, what: string): string | undefined => {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    const hint = "give texts, numbers, lists and plain objects";
    throw new InvalidInput("not_json", `${what} is nothing that JSON can carry: ${why}`, { hint }, { cause });
  }
};

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/**
 * The state as it will be loaded: as JSON carries it.
 * @throws InvalidInput `not_json` (BigInt, a cycle, undefined), `too_large` over 32 KB
 */
export const checkpointOf = (state: unknown): Json => {
  const text = jsonText(state, "the checkpoint");
  if (text === undefined) {
    throw new InvalidInput("not_json", "the checkpoint is nothing that JSON can carry: undefined", {
      hint: "save null to forget what was saved",
    });
  }
  const bytes = bytesOf(text);
  if (bytes > CHECKPOINT_BYTES) {
    throw new InvalidInput(
      "too_large",
      `the checkpoint has ${bytes} bytes of JSON; at most ${CHECKPOINT_BYTES} fit`,
      { hint: "save where the work stands, and leave the data where it is" },
    );
  }
  return JSON.parse(text);
};

/** @throws InvalidInput `bad_key` unless the key is a text of 1 to 100 characters */
export const checkEffectKey = (key: unknown): void => {
  const refuse = (message: string): InvalidInput =>
    new InvalidInput("bad_key", message, {
      hint: "name the effect, by the same name in each attempt: the id of what it is about, for example",
    });
  if (typeof key !== "string") throw refuse("once: the key must be a text");
  if (key === "") throw refuse("once: the key is empty");
  if (key.length > EFFECT_KEY_LENGTH) {
    throw refuse(`once: the key has ${key.length} characters; at most ${EFFECT_KEY_LENGTH} fit`);
  }
};

/** @throws InvalidInput `too_many_keys` when the run has no room for another key */
export const checkEffectCount = (count: number): void => {
  if (count < MAX_EFFECTS) return;
  throw new InvalidInput("too_many_keys", `once: the run has ${MAX_EFFECTS} keys already`, {
    hint: "keep the position of many equal steps in the checkpoint",
  });
};

/**
 * What to keep of an effect that was done. A result that cannot be kept does not undo the effect: so the reason is
 * kept in its place, and the effect is not repeated. Never throws.
 */
export const effectOf = (key: string, result: unknown): Effect => {
  try {
    const text = jsonText(result, `the result of once("${key}")`);
    if (text === undefined) return {};
    const bytes = bytesOf(text);
    return bytes <= EFFECT_BYTES
      ? { result: JSON.parse(text) }
      : {
          refused: `the result of once("${key}") has ${bytes} bytes of JSON; at most ${EFFECT_BYTES} fit. The effect is done, and is not repeated`,
        };
  } catch (error) {
    const why = messageOf(error);
    return { refused: `${why}. The effect is done, and is not repeated` };
  }
};

/** @throws InvalidInput `not_kept` when the effect was done and its result could not be kept */
export const resultOf = (effect: Effect): Json | undefined => {
  if ("refused" in effect) throw new InvalidInput("not_kept", effect.refused);
  return effect.result;
};

/** How far a handler says it is. */
export interface Progress {
  readonly done: number;
  readonly total?: number;
}

/** The decimals that anybody reads; the table refuses numbers far smaller. */
const DECIMALS = 6;

const counted = (value: unknown, what: string): number => {
  const fits =
    typeof value === "number" && Number.isFinite(value) && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
  if (fits) return Number(value.toFixed(DECIMALS));
  throw new InvalidInput(
    "bad_progress",
    `progress: ${what} must be a number from 0 on, and is ${String(value)}`,
  );
};

/** @throws InvalidInput `bad_progress` unless both are numbers of 0 to 2^53 - 1 */
export const progressOf = (done: unknown, total?: unknown): Progress => ({
  done: counted(done, "done"),
  ...(total === undefined ? {} : { total: counted(total, "total") }),
});
