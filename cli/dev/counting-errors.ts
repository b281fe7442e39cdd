import { systemClock as clock } from "../../lib/adapters/system/system.ts";
import type { WatchedFunction } from "../../lib/core/alarms/alarm.ts";
import { measurement } from "./alarm-board.ts";
import type { Host } from "./child.ts";

/** The handler, with each error that it throws measured as Lambda does. */
export const countingErrors =
  <Arguments extends readonly unknown[], Answer>(
    watched: WatchedFunction,
    { measured }: Pick<Host, "measured">,
    handler: (...given: Arguments) => Promise<Answer>,
  ) =>
  async (...given: Arguments): Promise<Answer> => {
    try {
      return await handler(...given);
    } catch (error) {
      measured([measurement({ of: "function", function: watched, name: "Errors" }, clock.nowMs())]);
      throw error;
    }
  };
