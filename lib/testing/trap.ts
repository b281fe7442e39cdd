import { InvalidInput } from "../core/errors.ts";

const KILL_POINTS = [
  "before-handler",
  "after-checkpoint",
  "after-effect",
  "before-record",
  "after-record",
] as const;

/**
 * Where the process that runs the handler is killed:
 *
 * - `before-handler`: the run is started, and its handler is not called;
 * - `after-checkpoint`: a state has just been saved;
 * - `after-effect`: the function of a `once` has ended, and nobody has recorded it;
 * - `before-record`: the handler has ended, and nobody has recorded how;
 * - `after-record`: the end is recorded, and the message is not deleted.
 */
export type KillPoint = (typeof KILL_POINTS)[number];

/** Shared by all workers of a test. */
export interface Trap {
  /** The worker that comes to the point for the `nth` time from now, counted over all workers, is killed there. */
  set(point: KillPoint, nth: number): void;
  /** A worker comes to the point: is it killed? */
  springs(point: KillPoint): boolean;
  /** How many were. */
  kills(): number;
}

const check = (point: string, nth: number): void => {
  if (!KILL_POINTS.some((known) => known === point)) {
    throw new InvalidInput(
      "invalid_kill_point",
      `"${point}" is no place to kill a worker at: ${KILL_POINTS.join(", ")}`,
      { field: "point" },
    );
  }
  if (Number.isInteger(nth) && nth >= 1) return;
  throw new InvalidInput("invalid_kill_point", `the ${nth}th time is none: 1 is the next`, { field: "nth" });
};

export const makeTrap = (): Trap => {
  let kills = 0;
  let armed: { readonly point: KillPoint; left: number }[] = [];
  return {
    set: (point, nth) => {
      check(point, nth);
      armed.push({ point, left: nth });
    },
    springs: (point) => {
      for (const one of armed) if (one.point === point) one.left -= 1;
      const sprung = armed.filter(({ left }) => left === 0);
      armed = armed.filter(({ left }) => left > 0);
      if (sprung.length > 0) kills += 1;
      return sprung.length > 0;
    },
    kills: () => kills,
  };
};
