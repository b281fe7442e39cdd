import type { AutomationRequest } from "../../../lib/app/automations/automations.ts";
import { createFor } from "../../../lib/app/automations/automations.ts";
import { watch } from "../../../lib/app/watchdog/watch.ts";
import type { JobDefinition } from "../../../lib/core/jobs/job.ts";
import { MINUTE_MS, shortIsoOf } from "../../../lib/core/time.ts";
import { definition } from "../../support/definitions.ts";
import { msOf, type Setup, setup } from "../../support/path.ts";

/** A job without a schedule of its own, as users' run-time schedules carry it out. */
export const REPORT = definition({ name: "report", overlap: "allow" });

export const NOON = "2026-12-01T12:00:00Z";

/** A deployment at eleven that the watchdog has seen once. */
export const deployed = async (job: JobDefinition = REPORT): Promise<Setup> => {
  const env = setup({ now: "2026-12-01T11:00:00Z", jobs: [job] });
  await watch(env.deps);
  return env;
};

export const create = (env: Setup, changes: Partial<AutomationRequest> = {}) =>
  createFor(env.deps, { id: "noon", job: "report", owner: "ann", cron: "0 12 * * *", ...changes });

/** A pass each minute until then; over days, each so many minutes. */
export const watchUntil = async (env: Setup, iso: string, everyMinutes = 1): Promise<void> => {
  const everyMs = everyMinutes * MINUTE_MS;
  for (let atMs = env.now() + everyMs; atMs <= msOf(iso); atMs += everyMs) {
    await env.moveTo(shortIsoOf(atMs));
    await watch(env.deps);
  }
};

/** `<subject> <slot>: <state>` of all runs of run-time schedules. */
export const ends = (env: Setup): string[] =>
  env.table
    .items()
    .filter(({ pk, sk }) => String(pk).startsWith("J#automation:") && String(sk).startsWith("R#"))
    .map(({ pk, sk, st }) => `${String(pk).slice(13)} ${String(sk).slice(7, 18)}: ${st}`);
