import { messageOf } from "../../lib/core/errors.ts";
import type { Timers } from "../../lib/ports/clock.ts";

export interface PassLoop {
  /** Resolves when the pass under way is over; none begins after the call. */
  stop(): Promise<void>;
}

export interface PassLoopOptions {
  /** Whose passes they are. */
  readonly who: string;
  readonly everyMs: number;
  readonly timers: Timers;
  readonly report: (line: string) => void;
}

/**
 * One pass at once, then one after each wait, never two at a time. A pass that fails is said once for as long as
 * passes fail; the next one is tried all the same, for it begins where the last good pass has ended.
 */
export const startPasses = (
  pass: () => Promise<void>,
  { who, everyMs, timers, report }: PassLoopOptions,
): PassLoop => {
  let stopped = false;
  let failing = false;
  let timer: { cancel(): void } | undefined;
  let running: Promise<void> = Promise.resolve();

  const look = async (): Promise<void> => {
    try {
      await pass();
      if (failing) report(`the ${who} works again`);
      failing = false;
    } catch (error) {
      if (!failing) report(`the ${who} failed, trying on: ${messageOf(error)}`);
      failing = true;
    }
    if (!stopped) timer = timers.after(everyMs, again);
  };

  const again = (): void => {
    running = look();
  };

  again();
  return {
    stop: async () => {
      stopped = true;
      timer?.cancel();
      await running;
    },
  };
};
