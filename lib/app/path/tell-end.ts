import { type Occurrence, runIdOf } from "../../core/identity.ts";
import type { Deps } from "../deps.ts";

interface End {
  readonly state: "dead" | "parked" | "cancelled";
  readonly reason: string;
}

/** Says and counts the end of a run that had no worker left to do so. */
export const tellEnd = (
  { journal }: Pick<Deps, "journal">,
  { job, occurrence }: { readonly job: { readonly name: string }; readonly occurrence: Occurrence },
  { state, reason }: End,
): void =>
  journal.notice(state === "dead" ? "error" : "warn", state, {
    runId: runIdOf(occurrence),
    job: job.name,
    reason,
  });
