import type { AttemptServices } from "../../lib/ports/attempts.ts";

/** For a handler that asks for nothing, or for what nobody looks at: there is no earlier run and no earlier attempt. */
export const QUIET_SERVICES: AttemptServices = {
  previous: async () => undefined,
  log: () => undefined,
  loadState: async () => undefined,
  saveState: async () => undefined,
  recallEffect: async () => undefined,
  recordEffect: async () => undefined,
  addShards: async () => undefined,
  progress: () => undefined,
};
