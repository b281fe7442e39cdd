import type { Occurrence } from "../../core/identity.ts";
import type { Item } from "../../core/write.ts";
import type { ScheduleSince } from "../definitions.ts";
import type { Sighting } from "../health/health.ts";
import type { Subject } from "../subjects.ts";

/** Up to where earlier passes of the watchdog have looked: at slots, and at the notes of what to look at. */
export interface Cursor {
  readonly slotsUntilMs: number;
  readonly notesUntilMs: number;
  /** Jobs whose look at their slots failed in the last pass, with how far theirs have been looked at. */
  readonly behind: ReadonlyMap<string, number>;
  readonly lastPassMs?: number;
}

/** What one pass looks at: everything between the last pass and now, each range half-open. */
export interface Pass {
  readonly from: Cursor;
  readonly until: Cursor;
  readonly nowMs: number;
  readonly since: ScheduleSince;
  /** When each job had its schedule changed, came back or was removed last. */
  readonly changed: ReadonlyMap<string, number>;
  readonly control: Item | undefined;
  /** As the cursor has them, of this pass. */
  readonly behind: Map<string, number>;
  /** What the pass has come across so far. */
  readonly sightings: Map<string, Sighting[]>;
  /** Subjects whose health was noted for a look. */
  readonly noted: Set<string>;
  /** Those that it has read so far. */
  readonly subjects: Map<string, Subject>;
}

export const see = ({ sightings }: Pass, occurrence: Occurrence, run: Item | undefined): void => {
  const seen = sightings.get(occurrence.subject);
  if (seen === undefined) sightings.set(occurrence.subject, [{ occurrence, run }]);
  else seen.push({ occurrence, run });
};
