import { DEFINITION_RANGE, definitionKey, HEALTH_NOTE, ITEM_VERSION, MANIFEST_KEY } from "../core/items.ts";
import type { JobDefinition } from "../core/jobs/job.ts";
import { type Item, remove, set } from "../core/write.ts";
import type { Deps } from "./deps.ts";
import { noteOpenRuns } from "./path/open-runs.ts";
import { lookAt } from "./watchdog/looks.ts";

type DefinitionDeps = Pick<Deps, "table" | "clock" | "jobs">;

/** Since when each subject's schedule has been as it is now; slots before that are nobody's business. */
export type ScheduleSince = ReadonlyMap<string, number>;

export interface SyncedDefinitions {
  readonly since: ScheduleSince;
  /** When each job had its schedule changed, came back or was removed last. */
  readonly changed: ReadonlyMap<string, number>;
}

/** The part of a definition that decides when it fires. */
export const scheduleText = (job: JobDefinition): string => {
  const { schedules, timezone, dst, startsAtMs, endsAtMs, stages } = job;
  return JSON.stringify([schedules, timezone, dst, startsAtMs, endsAtMs, stages]);
};

/**
 * Brings the definitions in the table up to this deployment's manifest, and answers since when each schedule holds. A
 * new or changed schedule starts from the change; nothing else about a job moves it.
 */
export const syncDefinitions = async (deps: DefinitionDeps): Promise<SyncedDefinitions> => {
  const { table, clock, jobs } = deps;
  const manifest = await table.get(MANIFEST_KEY, { consistent: true });
  const stored = new Map((await table.query(DEFINITION_RANGE)).map((item) => [String(item["sk"]), item]));
  if (manifest?.["hash"] === jobs.hash) return instantsIn([...stored.values()]);
  const nowMs = clock.nowMs();
  for (const job of jobs.all) await storeDefinition(deps, job, stored.get(job.subject));
  const known = (subject: string) => jobs.bySubject(subject) !== undefined;
  for (const [subject, item] of stored) {
    if (known(subject) || item["removedAtMs"] !== undefined) continue;
    await noteOpenRuns(deps, subject);
    // What people know of it is over.
    await lookAt(deps, { subject, slotKey: HEALTH_NOTE }, { atMs: nowMs });
    await table.write({
      key: definitionKey(subject),
      changes: [set("removedAtMs", nowMs), set("changedAtMs", nowMs)],
    });
  }
  await table.write({ key: MANIFEST_KEY, changes: [set("hash", jobs.hash), set("atMs", nowMs)] });
  return instantsIn(await table.query(DEFINITION_RANGE));
};

const instantsIn = (items: readonly Item[]): SyncedDefinitions => {
  const named = (name: "sinceMs" | "changedAtMs") =>
    new Map(
      items.flatMap((item) => (item[name] === undefined ? [] : [[String(item["sk"]), Number(item[name])]])),
    );
  return { since: named("sinceMs"), changed: named("changedAtMs") };
};

const storeDefinition = async (
  deps: DefinitionDeps,
  job: JobDefinition,
  stored: Item | undefined,
): Promise<void> => {
  const { table, clock } = deps;
  const schedule = scheduleText(job);
  const same = stored?.["schedule"] === schedule && stored["removedAtMs"] === undefined;
  const changed = stored !== undefined && !same;
  // Slots of the old schedule are looked at no more, and one of them may have been claimed and not sent.
  if (changed) await noteOpenRuns(deps, job.subject);
  await table.write({
    key: definitionKey(job.subject),
    changes: [
      set("v", ITEM_VERSION),
      set("name", job.name),
      set("definition", JSON.stringify(job)),
      set("schedule", schedule),
      ...(same ? [] : [set("sinceMs", clock.nowMs())]),
      ...(changed ? [set("changedAtMs", clock.nowMs())] : []),
      remove("removedAtMs"),
    ],
  });
};
