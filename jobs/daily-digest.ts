import { defineJob } from "belfry";
import { DAY_MS, localDate, ZONE } from "./store/calendar.ts";
import { openNotesStore } from "./store/notes-store.ts";
import { NOTES_ACCESS } from "./store/table.ts";

/** Safe to repeat: the slot says whose notes go where, so a second run writes the same digest in the same place. */
export default defineJob({
  description: "Writes the digest of yesterday's notes, to be read in the morning",
  schedule: "0 8 * * *",
  timezone: ZONE,
  timeout: "1 minute",
  ...NOTES_ACCESS,

  async handler({ slot, signal }) {
    const store = await openNotesStore();
    const date = localDate(slot);
    // The zone's clocks never change, so a day back is always the date before.
    const notesOf = localDate(new Date(slot.getTime() - DAY_MS));
    const lines = await store.notesOf(notesOf, signal);
    await store.writeDigest(date, { notesOf, lines });
    return { date, noteCount: lines.length };
  },
});
