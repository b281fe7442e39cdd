import { automationIn, definitionOf } from "../core/automations/automation.ts";
import { automationIdIn } from "../core/identity.ts";
import { automationKey, definitionKey } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import type { Deps } from "./deps.ts";

export interface RemovedJob {
  /** As it was last deployed. */
  readonly job: JobDefinition;
  readonly removedAtMs: number;
}

/** Of a run-time schedule, the job that carried it out. Undefined where no deploy has removed it. */
export const removedJob = async (
  { table }: Pick<Deps, "table">,
  subject: string,
): Promise<RemovedJob | undefined> => {
  const id = automationIdIn(subject);
  const record = id === undefined ? undefined : await table.get(automationKey(id), { consistent: true });
  const automation = automationIn(record);
  const kept = await table.get(definitionKey(automation?.job ?? subject), { consistent: true });
  if (kept?.["removedAtMs"] === undefined) return undefined;
  const carrier = JSON.parse(String(kept["definition"])) as JobDefinition;
  const job = automation === undefined ? carrier : definitionOf(automation, carrier);
  return { job, removedAtMs: Number(kept["removedAtMs"]) };
};
