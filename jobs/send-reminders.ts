import { defineJob } from "belfry";
import { openOutbox } from "./store/outbox.ts";
import { NOTES_ACCESS } from "./store/table.ts";

/** For each of the run's attempts, of which there are four at most: `once` remembers a hundred effects. */
const AT_MOST = 25;

/**
 * Safe to repeat: a reminder is taken before it is sent, by one run only. A run that is killed in between takes its own
 * up again; one that never comes back loses them to a later run. Either may send twice, under the same id.
 */
export default defineJob({
  description: "Sends the reminders that are due",
  schedule: "* * * * *",
  timeout: "50 seconds",
  // What these do not bring about, a later minute's run does.
  retry: { retries: 2, crashes: 1 },
  ...NOTES_ACCESS,

  async handler({ slot, runId, signal, once }) {
    const outbox = await openOutbox();
    let sentCount = 0;
    for await (const reminder of outbox.due(slot, signal)) {
      if (sentCount === AT_MOST) break;
      if (!(await outbox.take(reminder, runId))) continue;
      await once(reminder.id, () => outbox.deliver(reminder));
      if (await outbox.markSent(reminder, runId)) sentCount += 1;
    }
    return { sentCount };
  },
});
