import { defineJob } from "belfry";
import { DAY_MS, ZONE } from "./store/calendar.ts";
import { openNotesStore } from "./store/notes-store.ts";
import { NOTES_ACCESS } from "./store/table.ts";

const MAX_AGE_DAYS = 30;

/** Safe to repeat: the age is counted from the slot, and each session is deleted, and counted, once. */
export default defineJob({
  description: "Deletes sessions that were last used more than 30 days before the slot",
  schedule: "0 2 * * *",
  timezone: ZONE,
  timeout: "2 minutes",
  ...NOTES_ACCESS,

  async handler({ slot, signal, log }) {
    const store = await openNotesStore();
    const until = new Date(slot.getTime() - MAX_AGE_DAYS * DAY_MS);
    let deletedCount = 0;
    for await (const session of store.sessionsBefore(until, signal)) {
      if (await store.deleteSession(session)) deletedCount += 1;
    }
    log.info("sessions deleted", { deletedCount, until });
    return { deletedCount };
  },
});
