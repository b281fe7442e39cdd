import { randomUUID } from "node:crypto";
import type { Clock, Random, Timers } from "../../ports/clock.ts";

export const systemClock: Clock = { nowMs: () => Date.now() };

/** Node's timers hold 31 bits of milliseconds; longer waits are taken in pieces. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemTimers: Timers = {
  after(waitMs, callback) {
    let timer: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const pieceMs = Math.min(leftMs, LONGEST_TIMER_MS);
      timer = setTimeout(() => (leftMs > pieceMs ? arm(leftMs - pieceMs) : callback()), pieceMs);
    };
    arm(Math.max(0, waitMs));
    return { cancel: () => clearTimeout(timer) };
  },
};

export const systemRandom: Random = {
  // Node keeps random bytes for these in store; shorter in base64, since a token is stored in each record.
  token: () => Buffer.from(randomUUID().replaceAll("-", ""), "hex").toString("base64url"),
  fraction: () => Math.random(),
};
