import { type Ask, claimAndSend } from "../../lib/app/path/claims.ts";
import type { Occurrence } from "../../lib/core/identity.ts";
import { runKey } from "../../lib/core/items.ts";
import type { Trigger } from "../../lib/core/runs/message.ts";
import { claim } from "../../lib/core/runs/transitions.ts";
import { definition } from "./definitions.ts";
import { at, msOf, type Setup, setup } from "./path.ts";

export const NOW = "2026-12-31T23:59:59.999Z";
export const NOW_MS = msOf(NOW);
const side = definition({ name: "side-by-side", schedules: ["* * * * *"], overlap: "allow" });
export const single = definition({ name: "single", schedules: ["* * * * *"] });
export const A = at("single", "2026-12-31T23:57:00Z");
export const B = at("single", "2026-12-31T23:58:00Z");
export const C = at("single", "2026-12-31T23:59:00Z");

export const make = () => setup({ now: NOW, jobs: [side, single] });

type Wanted = Partial<Ask> & { readonly token?: string };

export const ask = (env: Setup, occurrence: Occurrence, { token = "mine", ...changes }: Wanted = {}) => {
  const job = occurrence.subject === "single" ? single : side;
  const base = {
    job,
    occurrence,
    epoch: 1,
    trigger: "schedule",
    queuedAtMs: NOW_MS,
    recorded: false,
  } as const;
  return claimAndSend(env.deps, { ...base, ...changes }, token);
};

/** T1 of a run that has its record before it has the lock. */
export const recorded = async (env: Setup, occurrence: Occurrence, trigger: Trigger = "manual") => {
  await env.table.write(claim({ occurrence, token: "recorder", nowMs: NOW_MS, trigger }));
};

export const byHand = async (env: Setup, occurrence: Occurrence, token = "by-hand") => {
  await recorded(env, occurrence);
  return ask(env, occurrence, { token, trigger: "manual", recorded: true });
};

export const setState = (env: Setup, occurrence: Occurrence, st: string, ep = 1) =>
  env.put(runKey(occurrence), { st, ep, trigger: "schedule" });

export const holders = async (env: Setup) =>
  Object.keys((await env.lock("single")) ?? {}).filter((name) => name.startsWith("h#"));
export const waiters = async (env: Setup) => {
  const texts = (await env.lock("single"))?.["w"];
  return texts instanceof Set ? [...texts] : [];
};
export const sentSlots = (env: Setup) => env.sent.map(({ message }) => message.slotKey);
