import { defineJob } from "belfry";
import { ZONE } from "./store/calendar.ts";
import { openSearchIndex } from "./store/search-index.ts";
import { NOTES_ACCESS } from "./store/table.ts";

const NOTES_A_STEP = 1_000;
/** Enough for one more step, and for the record. */
const SPARE_MS = 60_000;

interface Stand {
  readonly done: number;
  readonly total: number;
  /** The last note that is in the index. */
  readonly lastId: string;
}

/** Safe to repeat: a note's entries are put where they were. A killed run goes on after its last thousand notes. */
export default defineJob({
  description: "Builds the search index of all notes anew",
  schedule: "0 3 * * 0",
  timezone: ZONE,
  pool: "slow",
  timeout: "10 minutes",
  ...NOTES_ACCESS,

  async handler({ checkpoint, progress, remaining, continueLater, snooze, signal }) {
    const index = await openSearchIndex();
    const saved = await checkpoint.load<Stand>();
    let stand = saved ?? { done: 0, total: await index.countNotes(signal), lastId: " " };
    for (;;) {
      if (remaining() < SPARE_MS) return continueLater(stand);
      const notes = await index.notesAfter(stand.lastId, NOTES_A_STEP, signal);
      const last = notes.at(-1);
      if (last === undefined) return { noteCount: stand.done };
      if (!(await index.add(notes, signal))) return snooze("30 seconds");
      stand = { ...stand, done: stand.done + notes.length, lastId: last.id };
      progress(stand.done, stand.total);
      await checkpoint.save(stand);
    }
  },
});
