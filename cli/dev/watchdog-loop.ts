import { messageOf } from "../../lib/core/errors.ts";
import type { Timers } from "../../lib/ports/clock.ts";

export interface WatchdogLoop {
  /** Resolves when the pass under way is over; none begins after the call. */
  stop(): Promise<void>;
}

/**
 * One pass at once, then one after each wait, never two at a time. A pass that fails is said once for as long as
 * passes fail; the next one is tried all the same, for its cursor is where the last good pass has left it.
 */
export const startWatchdog = (
  pass: () => Promise<void>,
  { everyMs, timers, report }: { everyMs: number; timers: Timers; report: (line: string) => void },
): WatchdogLoop => {
  let stopped = false;
  let failing = false;
  let timer: { cancel(): void } | undefined;
  let running: Promise<void> = Promise.resolve();

  const look = async (): Promise<void> => {
    try {
      await pass();
      if (failing) report("the watchdog works again");
      failing = false;
    } catch (error) {
      if (!failing) report(`the watchdog failed, trying on: ${messageOf(error)}`);
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
