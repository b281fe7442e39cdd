import { runKey } from "../../../lib/core/items.ts";
import type { RunMessage } from "../../../lib/core/runs/message.ts";
import { definition } from "../../support/definitions.ts";
import { at, msOf, type Setup, type SetupOptions, setup } from "../../support/path.ts";

export const SLOT = "2026-10-25T01:00:00Z";
const NOW = "2026-10-25T01:00:02Z";
export const NOW_MS = msOf(NOW);
export const LEASE_MS = 60_000;
export const BOUND_MS = 30_000;
export const TIMEOUT_MS = 5 * 60_000;

const side = definition({
  name: "side-by-side",
  schedules: ["0 * * * *"],
  overlap: "allow",
  input: { kind: "job's" },
});
const single = definition({ name: "single", schedules: ["0 * * * *"] });
export const careful = definition({
  name: "careful",
  schedules: ["0 * * * *"],
  overlap: "allow",
  onUnknown: "park",
});
const fragile = definition({
  name: "fragile",
  schedules: ["0 * * * *"],
  retry: { ...single.retry, crashes: 1 },
});

export const make = (options: Partial<SetupOptions> = {}) =>
  setup({ now: NOW, jobs: [side, single, careful, fragile], ...options });
export const run = at("side-by-side", SLOT);

export const messageOf = (subject: string, changes: Partial<RunMessage> = {}): RunMessage => ({
  ...at(subject, SLOT),
  epoch: 1,
  trigger: "schedule",
  queuedAtMs: NOW_MS - 1_000,
  ...changes,
});

/** The state of a run before the message comes. */
export const given = (env: Setup, subject: string, attributes: Parameters<Setup["put"]>[1]) =>
  env.put(runKey(at(subject, SLOT)), { ep: 1, trigger: "schedule", ...attributes });

export const runningTill = (leaseUntilMs: number) => ({
  st: "running",
  fence: 1,
  own: "lost worker",
  leaseUntilMs,
  startedAtMs: NOW_MS - 200_000,
  attemptAtMs: NOW_MS - 200_000,
});
export const LAST_MS_OF_BOUND = NOW_MS - BOUND_MS;
export const ENDED = LAST_MS_OF_BOUND - 1;
